"""The old form of ``swarm-ui synthesize``: samples of one kind as chats in JSON lines."""

from __future__ import annotations

import asyncio
import json as jsonlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swarm_ui.cli import flags
from swarm_ui.cli.out_files import writing
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments import environment_findings, spec_of
from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.runs import open_environment
from swarm_ui.optim.preferences import chats
from swarm_ui.storage.run_directory import write_atomic


def write(
    kind: str, out: Path, count: int, place: EnvironmentSection, output: Output, *, force: bool
) -> int:
    """Write samples to a file, with a warning that this form of the command is deprecated.

    Args:
        kind: ``questions``, ``pages``, ``devices`` or ``steps``.
        out: the file.
        count: number of samples; for ``steps``, number of episodes.
        place: for ``steps``, the environment; its seed is used for all kinds.
        output: shows the result.
        force: whether an existing file is replaced.
    """
    new = {"steps": place.name}.get(kind, "screens")
    output.warn(
        f"'swarm-ui synthesize {kind}' will be removed in the next version; use: swarm-ui "
        f"synthesize {new} --out FOLDER, then swarm-ui export FOLDER trl --out FOLDER"
    )
    flags.expect_new(out, force)
    with output.progress.bar(f"synthesize {kind}", count, share=False) as bar:
        if kind == "steps":
            for _, mistake in environment_findings(place):
                raise ConfigError(mistake)
            lines = asyncio.run(_steps(place, count, bar))
        else:
            lines = list(_invented(kind, count, place.seed, bar))
    text = "".join(jsonlib.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with writing(out):
        write_atomic(out, text)
    levels = Counter(str(line["level"]) for line in lines)
    made = table(f"{kind}: samples by level of the method", ["level", "samples"])
    for name, number in sorted(levels.items()):
        made.add_row(name, str(number))
    output.show(made)
    output.say(f"wrote {out}, {_size(text)}")
    return output.done(file=str(out), samples=len(lines), levels=dict(levels))


def _size(text: str) -> str:
    count = len(text.encode())
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def _invented(kind: str, count: int, seed: int, bar: Bar) -> Iterator[dict[str, Any]]:
    """Samples of one kind, on invented screens."""
    from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
    from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
    from swarm_ui.optim.stage1.synthesis.screens import QuestionSample

    words = [word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2]
    mix = Mix(
        questions=float(kind == "questions"),
        pages=float(kind == "pages"),
        devices=float(kind == "devices"),
        demonstrations=0.0,
    )
    stream = Stream(seed, words, mix)
    for number in range(count):
        drawn = stream.draw()
        yield chats.quiz(drawn) if isinstance(drawn, QuestionSample) else chats.lesson(drawn)
        bar.update(number + 1)


async def _steps(place: EnvironmentSection, count: int, bar: Bar) -> list[dict[str, Any]]:
    """The steps of an environment's expert, episode by episode."""
    from swarm_ui.optim.stage1.synthesis.demonstrations import demonstrate

    rng, spec = random.Random(place.seed), spec_of(place.name)
    lines: list[dict[str, Any]] = []
    async with open_environment(place) as opened:
        names = await spec.task_names(place, opened)
        jobs = spec.training_jobs(place, names, count, rng, "train")
        async with opened.one() as environment:
            for done, (task, seed) in enumerate(jobs, start=1):
                for step in await demonstrate(environment, task=task, seed=seed, rng=rng):
                    lines.append({**chats.lesson(step), "task": task, "seed": seed})
                bar.update(done)
    return lines
