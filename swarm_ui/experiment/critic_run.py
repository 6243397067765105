"""``swarm-ui critic``: collects labelled replies, trains a critic on them, and measures it.

The folder of a run::

    critic_run.json   the settings, with which the same command continues
    replies/          one file for each environment and split: the source of the labels, then the
                      labelled replies of some episodes in each line
    validation.json   the figures on validation episodes
    final/            the adapter with its critic.json, for train --critic learned
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import BaseModel, ConfigDict

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environment import Graded
from swarm_ui.environments.benchmark import Benchmark, Count, Seeds
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.experiment.benchmarks import held_out_rule, opened
from swarm_ui.experiment.config import Environment
from swarm_ui.experiment.model_settings import Agent, Language, Model
from swarm_ui.experiment.models import adapter_names, check_adapters, load_in_process, open_model
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.stage1 import quiet, shown_name
from swarm_ui.files import LineFile, whole_lines, write_atomic
from swarm_ui.node import derive
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder, model_folder
from swarm_ui.optim.config import begin
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, rollout_many

if TYPE_CHECKING:
    from swarm_ui.optim.config import FinetuneConfig
    from swarm_ui.optim.credit.learned import Figures, LabelledReply

_PLAN, _FIGURES = "critic_run.json", "validation.json"
_TEMPERATURES: dict[Seeds, tuple[float, ...]] = {
    "train": (0.0, 0.8, 1.2, 1.6),  # the hot ones make more independent mistakes
    "validation": (0.0, 0.5, 0.6, 0.8),  # the paper's, with a greedy first agent
}
AGENTS = 4
_GUIDE = 0.1
"""Share of the steps of training episodes at which a right action is executed instead of the
vote."""
_GRADED_AT_ONCE, _PLAYED_AT_ONCE = 32, 8
"""Numbers of concurrent episodes, with and without graded actions."""


class CriticRun(BaseModel):
    """The settings of a critic's training. They cannot change when it is continued."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Language
    """The language model that gets the adapter."""
    start: str = ""
    """The adapter that the training starts from: its folder, or its name in this package. Empty: a
    new one."""
    agent: Model
    """The model whose replies are judged."""
    places: tuple[Environment, ...]
    """The environments."""
    episodes: Count = 300
    """Training episodes in each environment. A fifth as many validation episodes are played:
    training tasks with seeds of validation."""
    finetune: dict[str, Any] = {}
    """Settings of the training that differ from those of a critic. Its seed chooses the episodes
    too."""

    def training(self) -> FinetuneConfig:
        """The settings of the training. Raises ``MissingExtra`` without torch."""
        try:
            from swarm_ui.optim.credit.learned import TRAINING
        except ImportError as error:
            raise MissingExtra("train", "a learned critic", error.name or "torch") from error
        return msgspec.structs.replace(TRAINING, **self.finetune)

    def check(self) -> None:
        """Raise ``ConfigError`` for a wrong setting or a missing package, before anything is
        done."""
        names = [place.name for place in self.places]
        if len({*names}) < len(names):
            raise ConfigError(f"an environment is named twice: {', '.join(names)}")
        if isinstance(self.agent, Agent | Language) and self.agent.adapters:
            check_adapters(self.agent, AGENTS)
        self.training()
        if self.start:
            from swarm_ui.nodes.models.transformers.adapter_files import read_adapter

            read_adapter(adapter_folder(self.start))  # one clear error for a foreign file
        for place in self.places:
            for _, mistake in place.mistakes():
                raise ConfigError(mistake)
            place.training_split()


class CriticResult(msgspec.Struct, frozen=True):
    """The result of a critic's training, by environment."""

    figures: dict[str, Any]
    """:func:`~swarm_ui.optim.credit.learned.critic_figures` on the validation episodes."""
    labels: dict[str, str]
    """The source of the labels: ``solver`` or ``outcome``."""


def make_critic(work: CriticRun, out: Path, display: ProgressDisplay) -> CriticResult:
    """Collect replies, train a critic and measure it, or continue an interrupted run.

    Raises ``ConfigError`` for wrong settings, a folder that holds something else, or nothing to
    learn from."""
    work.check()
    settings, advice = work.model_dump(mode="json"), "use the same, or choose another folder"
    begin(out, _PLAN, settings, "critic", advice)
    path = out / _FIGURES
    if not path.exists():
        import torch

        threads = torch.get_num_threads()
        asyncio.run(_collect(work, out, display))
        torch.set_num_threads(threads)  # the embedded agent sets one, too few for a training
        found = msgspec.json.encode(_train(work, out, display))
        write_atomic(path, msgspec.json.format(found, indent=1))
    try:
        return msgspec.json.decode(path.read_bytes(), type=CriticResult)
    except (OSError, msgspec.MsgspecError, UnicodeError) as error:
        raise ConfigError(f"'{path}' has no figures of a critic: {error}") from error


async def _collect(work: CriticRun, out: Path, display: ProgressDisplay) -> None:
    """Play the episodes that are in no file yet, and append their labelled replies."""
    async with open_model(work.agent) as model:
        names = adapter_names(work.agent, AGENTS)
        for section in work.places:
            split = section.training_split()
            async with opened(section, split) as environment:
                if environment.jobs is not None:
                    raise ConfigError(f"'{section.name}' is recorded; a critic learns from screens "
                                      "that its agents reached themselves")  # fmt: skip
                async with environment.one() as one:
                    name, graded = one.name, isinstance(one, Graded)
                tasks = await section.task_names(split, environment)
                most = _GRADED_AT_ONCE if graded else _PLAYED_AT_ONCE
                size = min(most, environment.max_concurrency or most)
                for kind, jobs in _jobs(work, section, tasks, name).items():
                    path = _replies_file(work, out, section, kind)
                    if not path.exists():
                        write_atomic(path, b"solver\n" if graded else b"outcome\n")
                    with (
                        closing(LineFile(path)) as file,
                        display.bar(f"{section.name}, {kind}", len(jobs), share=False,
                                    together=size) as bar,
                    ):  # fmt: skip
                        for at in range(size * (len(whole_lines(path)) - 1), len(jobs), size):
                            team = CollabGraph.collaborative(
                                AGENTS, 1, model=model, temperature=_TEMPERATURES[kind],
                                views="shuffle", adapters=names,
                            )  # fmt: skip
                            guide = _GUIDE if kind == "train" else 0.0
                            some = jobs[at : at + size]
                            replies = await _played(environment.make, graded, some, team, guide)
                            file.append(msgspec.json.encode(replies))
                            bar.update(min(at + size, len(jobs)))


def _jobs(
    work: CriticRun, section: Benchmark, tasks: Sequence[str], name: str
) -> dict[Seeds, list[Job]]:
    """The episodes of each split. Raises ``ConfigError`` if one has a held-out task or seed."""
    rng = random.Random(derive(work.training().seed, "critic", section.name))
    jobs: dict[Seeds, list[Job]] = {
        "train": section.training_jobs(tasks, work.episodes, rng),
        "validation": section.training_jobs(tasks, max(1, work.episodes // 5), rng, "validation"),
    }
    rule = held_out_rule([section])
    rule.check(name, jobs["train"], "critic")
    msgspec.structs.replace(rule, seeds=()).check(name, jobs["validation"], "critic")
    return jobs


async def _played(
    make: MakeEnvironment, graded: bool, jobs: Sequence[Job], team: CollabGraph, guide: float
) -> list[LabelledReply]:
    """Play jobs, and label the replies by the solver or by the outcome."""
    from swarm_ui.optim.adversary import ScriptedAdversary, ScriptedTeacher
    from swarm_ui.optim.credit.critic import Outcome, ScriptedCritic
    from swarm_ui.optim.credit.learned import labelled_replies
    from swarm_ui.optim.guidance import Guidance

    solver, guidance = ScriptedCritic(make) if graded else None, None
    if solver is not None:
        teacher = ScriptedTeacher(make)
        guidance = Guidance(solver, ScriptedAdversary(), teacher=teacher, guide=guide)
    episodes = await rollout_many(
        make, GraphPolicy(team, name="base team"), jobs, concurrency=len(jobs),
        intervention=guidance,
    )  # fmt: skip
    return labelled_replies(episodes, await (solver or Outcome())(episodes))


def _replies_file(work: CriticRun, out: Path, section: Benchmark, split: Seeds) -> Path:
    name = f"{work.places.index(section) + 1}-{section.name}".replace(":", ".").replace("/", ".")
    return out / "replies" / f"{name}-{split}.jsonl"


def read_replies(path: Path) -> tuple[str, list[LabelledReply]]:
    """The source of the labels in a file of replies, and the replies."""
    from swarm_ui.optim.credit.learned import LabelledReply

    try:
        first, *lines = whole_lines(path)
        decoder = msgspec.json.Decoder(list[LabelledReply])
        return first.decode(), [reply for line in lines for reply in decoder.decode(line)]
    except (OSError, msgspec.MsgspecError, UnicodeError, ValueError) as error:
        raise ConfigError(f"'{path}' is not a file of labelled replies: {error}") from error


def _train(work: CriticRun, out: Path, display: ProgressDisplay) -> CriticResult:
    """Train, scale, measure, and write the critic."""
    quiet()
    from swarm_ui.optim.credit import learned

    replies = [
        r for s in work.places for r in read_replies(_replies_file(work, out, s, "train"))[1]
    ]
    checked = {s.name: read_replies(_replies_file(work, out, s, "validation")) for s in work.places}
    solved = [r for labels, found in checked.values() if labels == "solver" for r in found]
    held_out = solved or [r for _, found in checked.values() for r in found]
    if not replies or not held_out:
        raise ConfigError(f"no {'validation' if replies else 'training'} episode in '{out}' "
                          "ended without a fault; choose another folder")  # fmt: skip
    origin: dict[str, object] = {"environments": [section.name for section in work.places]}
    if work.start:
        origin["start"] = shown_name(work.start)
    final = out / "final"
    if not (final / "critic.json").exists():
        base = shown_name(work.model.name)
        with display.bar("critic", 1.0) as bar:
            learned.train_critic(
                model_folder(work.model.name),
                replies,
                final,
                config=work.training(),
                card=learned.CriticCard(base_model=base, settings=origin),
                start=adapter_folder(work.start) if work.start else None,
                report=lambda step, steps, loss: bar.update(step / steps, f"loss {loss:.3f}"),
            )

    async def measured() -> dict[str, Figures]:
        critic = learned.learned_critic(load_in_process(work.model), final)
        await learned.calibrated(critic, held_out, final)
        return {
            name: await learned.critic_figures(critic, found)
            for name, (_, found) in checked.items()
        }

    labels = {name: source for name, (source, _) in checked.items()}
    return CriticResult(asyncio.run(measured()), labels)
