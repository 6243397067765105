"""``swarm-ui synthesize``: writes training data for stage 1."""

from __future__ import annotations

import asyncio
import json as jsonlib
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from swarm_ui.cli import flags
from swarm_ui.cli.output import Output, table
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments import ENVIRONMENTS, environment_findings, spec_of
from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.runs import open_environment
from swarm_ui.optim.preferences import chats
from swarm_ui.storage.run_directory import write_atomic

Level = Literal["questions", "pages", "devices", "steps"]


def synthesize(
    level: Annotated[Level, typer.Argument(help="kind of samples")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE",
                                      help="JSON lines file to write")],
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1,
                                       help="number of samples (for steps: of episodes)")] = 100,
    env: Annotated[str, typer.Option(metavar="ENV", help="for steps: an environment with an expert",
                                     autocompletion=flags.one_of(*ENVIRONMENTS))]
    = "phone",
    task: Annotated[list[str] | None, typer.Option("--task", metavar="NAME",
                    help="for steps: only this task; repeatable")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="equal seeds give equal samples")] = 0,
    force: flags.Force = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> int:  # fmt: skip
    """Generate samples for stage 1, as chats in JSON lines.

    Questions about screens, one-step instructions on invented pages or devices, or the steps of
    an environment's expert on training episodes.

    Example: [bold]swarm-ui synthesize steps -n 20 -o steps.jsonl[/]
    """
    output = Output(machine=json, quiet=quiet)
    flags.expect_new(out, force)
    with output.progress.bar(f"synthesize {level}", count, share=False) as bar:
        if level == "steps":
            place = EnvironmentSection(name=env, tasks=tuple(task or ()), seed=seed)
            for _, mistake in environment_findings(place):
                raise ConfigError(mistake)
            lines = asyncio.run(_steps(place, count, bar))
        else:
            lines = list(_invented(level, count, seed, bar))
    text = "".join(jsonlib.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_atomic(out, text)
    levels = Counter(str(line["level"]) for line in lines)
    made = table(f"{level}: samples by level of the method", ["level", "samples"])
    for name, number in sorted(levels.items()):
        made.add_row(name, str(number))
    output.show(made)
    output.say(f"wrote {out}, {_size(text)}")
    return output.done(file=str(out), samples=len(lines), levels=dict(levels))


def _size(text: str) -> str:
    count = len(text.encode())
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def _invented(level: Level, count: int, seed: int, bar: Bar) -> Iterator[dict[str, Any]]:
    """Samples of one kind, on invented screens."""
    from swarm_ui.nodes.models.tiny_agent.vocabulary import GENERAL_WORDS
    from swarm_ui.optim.stage1.synthesis.curriculum import Mix, Stream
    from swarm_ui.optim.stage1.synthesis.screens import QuestionSample

    words = [word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2]
    mix = Mix(
        questions=float(level == "questions"),
        pages=float(level == "pages"),
        devices=float(level == "devices"),
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
        environment = await opened.one()
        try:
            jobs = spec.training_jobs(place, names, count, rng)
            for done, (task, seed) in enumerate(jobs, start=1):
                for step in await demonstrate(environment, task=task, seed=seed, rng=rng):
                    lines.append({**chats.lesson(step), "task": task, "seed": seed})
                bar.update(done)
        finally:
            await environment.close()
    return lines
