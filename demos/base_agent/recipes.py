"""The recipes of the included agents: the base agent, and the general agent that continues it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import torch

from demos.base_agent.screens import ActionSample, QuestionSample
from demos.base_agent.stream import Mix, Stream, demonstrate
from demos.base_agent.training import Progress, Stage1Config, in_processes, train
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import (
    TRAIN_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    tasks,
    vocabulary,
)
from swarm_ui.environments.phone.invented import InventedPhone, Wordings, simple_tasks
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, GENERAL_AGENT, LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.rollout import Job

FIRST_DEVICE = 5_000
"""Devices of the general agent begin at this number. No study trains on them: seed ``s`` of a study
begins at 10,000 times ``s``."""
HALF_DEMONSTRATIONS = Mix(questions=0.0, pages=0.39, devices=0.11, demonstrations=0.5)
"""Shares of the samples: one half are demonstrations, the other half are on invented pages and
devices, in the proportion of the base agent's own stage 1."""
TRAINING_FILE = "training.json"
"""Name of the file beside the weights that holds the :class:`Training` that made them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAgentConfig:
    """Settings of training a base agent. The defaults produced the included checkpoint."""

    width: int = 64
    layers: int = 3
    heads: int = 4
    demonstrations: int = 2
    """Demonstrated episodes of each training template: few, as on a real device."""
    processes: int = 2
    stage1: Stage1Config = field(default_factory=Stage1Config)
    mix: Mix = field(default_factory=Mix)
    seed: int = 0
    demonstrations_seed: int = 0
    """Seed for choosing the demonstrated episodes. It is separate from ``seed``, so that continuing
    stage 1 with another seed adds no new demonstrations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralAgentConfig:
    """Settings of training a general agent. The defaults produced the included checkpoint."""

    devices: int = 1_024
    """Invented devices with demonstrations, numbered from :data:`FIRST_DEVICE` on."""
    device_episodes: int = 4_096
    """Number of demonstrated episodes on the invented devices, spread over the devices and their
    tasks."""
    phone_episodes: int = 2_048
    """Demonstrated episodes on the phone's training templates, besides those of the base agent."""
    wordings: tuple[Wordings, ...] = ("few",)
    """Wordings of the goals on the devices; the episodes are divided between them."""
    mix: Mix = HALF_DEMONSTRATIONS
    stage1: Stage1Config = field(
        default_factory=lambda: Stage1Config(
            steps=5_000, learning_rate=4e-3, questions_first=0.0, seed=7
        )
    )
    seed: int = 7


class Training(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of work of a training, and its final loss."""

    steps: int
    samples: int
    tokens: int
    cpu_seconds: float
    loss: float
    """Mean loss of the last reported steps."""


Report = Callable[[Progress], None]


def make_base_agent(
    config: BaseAgentConfig,
    folder: Path,
    *,
    start: Path | None = None,
    report: Report | None = None,
) -> None:
    """Train a base agent and save it into ``folder``.

    ``start``: folder of an agent to start from. ``report``: called with the first process's
    progress; picklable if there are several processes.
    """
    in_processes(_train, (config, folder, start, report), processes=config.processes)


def pool(config: BaseAgentConfig) -> list[ActionSample]:
    """The demonstrated steps of the reference solver, on training templates and parameters."""
    rng = random.Random(config.demonstrations_seed)

    async def show() -> list[ActionSample]:
        environment = PhoneEnvironment()
        steps: list[ActionSample] = []
        for task in tasks("train"):
            for _ in range(config.demonstrations):
                seed = rng.choice(TRAIN_SEEDS)
                steps += await demonstrate(environment, task=task, seed=seed, rng=rng)
        return steps

    return asyncio.run(show())


def _train(rank: int, work: tuple[BaseAgentConfig, Path, Path | None, Report | None]) -> None:
    torch.set_num_threads(1)
    config, folder, start, report = work
    if start is None:
        learner = LocalModel.untrained(
            ScreenTokenizer(vocabulary()),
            width=config.width,
            layers=config.layers,
            heads=config.heads,
            seed=config.seed,
        )
    else:
        learner = LocalModel.load(start)
    stream = Stream(config.seed * 1000 + rank, KNOWN_WORDS, config.mix, pool(config))
    settings = replace(config.stage1, seed=config.stage1.seed * 1000 + rank)
    train(learner, stream, settings, report=report if rank == 0 else None)
    if rank == 0:
        learner.save(folder)


def make_general_agent(
    config: GeneralAgentConfig,
    folder: Path,
    *,
    start: Path = BASE_AGENT,
    report: Report | None = None,
) -> Training:
    """Continue stage 1 of the agent in ``start`` and save the result into ``folder``.

    It runs in this process, on one thread. ``report``: called with the progress.
    """
    torch.set_num_threads(1)
    learner = LocalModel.load(start)
    shown = [*pool(BaseAgentConfig()), *asyncio.run(general_demonstrations(config))]
    made = more_stage1(learner, shown, config.mix, config.stage1, seed=config.seed, report=report)
    done = msgspec.structs.replace(
        made, cpu_seconds=round(made.cpu_seconds, 1), loss=round(made.loss, 4)
    )
    learner.save(folder)
    write_atomic(folder / TRAINING_FILE, msgspec.json.format(msgspec.json.encode(done)) + b"\n")
    return done


def more_stage1(
    model: LocalModel,
    shown: Sequence[ActionSample],
    mix: Mix,
    config: Stage1Config,
    *,
    seed: int,
    report: Report | None = None,
) -> Training:
    """Train all weights of an agent further, on demonstrations and invented screens.

    Args:
        model: trained in place.
        shown: the demonstrations.
        mix: shares of demonstrations and screens.
        config: steps and learning rate.
        seed: seed of the samples.
        report: called with the progress.
    """
    stream = _Counted(seed, KNOWN_WORDS, mix, shown)
    done = train(model, stream, config, report=report)
    return Training(
        steps=done.steps, samples=stream.drawn, tokens=done.tokens,
        cpu_seconds=done.cpu_seconds, loss=done.loss,
    )  # fmt: skip


def shipped_training() -> Training:
    """How the included general agent was trained."""
    return msgspec.json.decode((GENERAL_AGENT / TRAINING_FILE).read_bytes(), type=Training)


async def general_demonstrations(config: GeneralAgentConfig) -> list[ActionSample]:
    """The solver's steps on the phone's training templates and on the invented devices."""
    rng = random.Random(f"general agent {config.seed}")
    drawn = draw_jobs(tasks("train"), config.phone_episodes, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    steps = await solver_steps(InventedPhone(devices=1), drawn, rng)
    for at, wordings in enumerate(config.wordings):
        count = len(range(at, config.device_episodes, len(config.wordings)))
        names = simple_tasks(FIRST_DEVICE, config.devices, wordings)
        drawn = draw_jobs(names, count, rng.getrandbits(32), seeds=TRAIN_SEEDS)
        environment = InventedPhone(devices=1, wordings=wordings)
        steps += await solver_steps(environment, drawn, rng)
    return steps


async def solver_steps(
    environment: Environment, jobs: Sequence[Job], rng: random.Random
) -> list[ActionSample]:
    """The solver's steps in these episodes, and the way back from random actions."""
    steps: list[ActionSample] = []
    for task, seed in jobs:
        steps += await demonstrate(environment, task=task, seed=seed, rng=rng)
    return steps


class _Counted(Stream):
    """Counts the samples that were drawn."""

    drawn = 0

    def draw(self, questions: float | None = None) -> ActionSample | QuestionSample:
        self.drawn += 1
        return super().draw(questions)
