"""The recipes of the included agents: the base agent, and the general agent that continues it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import distributed

from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Mix, Stream, demonstrate
from demos.base_agent.training import Progress, Stage1Config, print_progress, train
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import (
    TRAIN_SEEDS,
    PhoneEnvironment,
    draw_jobs,
    tasks,
    vocabulary,
)
from swarm_ui.environments.phone.invented import InventedPhone, simple_tasks
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.rollout import Job

FIRST_DEVICE = 5_000
"""Devices of the general agent begin at this number. No study trains on them: seed ``s`` of a study
begins at 10,000 times ``s``."""
Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseAgentConfig:
    """Settings of training a base agent. The defaults produced the included checkpoint, in two
    processes."""

    width: int = 64
    layers: int = 3
    heads: int = 4
    stage1: Stage1Config = field(default_factory=Stage1Config)
    mix: Mix = field(default_factory=Mix)
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralAgentConfig:
    """Settings of training a general agent. The defaults produced the included checkpoint."""

    devices: int = 1_024
    """Invented devices with demonstrations, numbered from :data:`FIRST_DEVICE` on."""
    device_episodes: int = 4_096
    """Demonstrated episodes on the invented devices, spread over them and their tasks."""
    phone_episodes: int = 2_048
    """Demonstrated episodes on the phone's training templates, besides those of the base agent."""
    stage1: Stage1Config = field(
        default_factory=lambda: Stage1Config(steps=5_000, questions_first=0.0, seed=7)
    )
    mix: Mix = field(
        default_factory=lambda: Mix(questions=0.0, pages=0.39, devices=0.11, demonstrations=0.5)
    )
    """One half are demonstrations; the other half are on invented pages and devices, in the
    proportion of the base agent's own stage 1."""
    seed: int = 7


def make_base_agent(
    config: BaseAgentConfig,
    folder: Path,
    *,
    start: Path | None = None,
    report: Report = print_progress,
) -> None:
    """Train a base agent, or continue the one in ``start``, and save it into ``folder``.

    Every process of ``torchrun`` draws samples of its own; the first one reports and saves.
    """
    torch.set_num_threads(1)
    rank = distributed.get_rank() if distributed.is_initialized() else 0
    if start is None:
        shape = {"width": config.width, "layers": config.layers, "heads": config.heads}
        tokenizer = ScreenTokenizer(vocabulary())
        learner = LocalModel.untrained(tokenizer, **shape, seed=config.seed)
    else:
        learner = LocalModel.load(start)
    stream = Stream(config.seed * 1000 + rank, KNOWN_WORDS, config.mix, pool())
    settings = replace(config.stage1, seed=config.stage1.seed * 1000 + rank)
    train(learner, stream, settings, report=report if rank == 0 else lambda _: None)
    if rank == 0:
        learner.save(folder)


def make_general_agent(
    config: GeneralAgentConfig,
    folder: Path,
    *,
    start: Path = BASE_AGENT,
    report: Report = print_progress,
) -> Progress:
    """Continue stage 1 of the agent in ``start``, in this process, and save it into ``folder``."""
    torch.set_num_threads(1)
    learner = LocalModel.load(start)
    shown = [*pool(), *asyncio.run(general_demonstrations(config))]
    stream = Stream(config.seed, KNOWN_WORDS, config.mix, shown)
    done = train(learner, stream, config.stage1, report=report)
    learner.save(folder)
    return done


def pool() -> list[ActionSample]:
    """The solver's steps in two episodes of each training template: few, as on a real device."""
    rng = random.Random(0)
    jobs = [(task, rng.choice(TRAIN_SEEDS)) for task in tasks("train") for _ in range(2)]
    return asyncio.run(solver_steps(PhoneEnvironment(), jobs, rng))


async def general_demonstrations(config: GeneralAgentConfig) -> list[ActionSample]:
    """The solver's steps on the phone's training templates and on the invented devices."""
    rng = random.Random(f"general agent {config.seed}")
    drawn = draw_jobs(tasks("train"), config.phone_episodes, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    steps = await solver_steps(InventedPhone(devices=1), drawn, rng)
    names = simple_tasks(FIRST_DEVICE, config.devices, "few")
    drawn = draw_jobs(names, config.device_episodes, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    return steps + await solver_steps(InventedPhone(devices=1, wordings="few"), drawn, rng)


async def solver_steps(
    environment: Environment, jobs: Sequence[Job], rng: random.Random
) -> list[ActionSample]:
    """The solver's steps in these episodes, and the way back from random actions."""
    steps: list[ActionSample] = []
    for task, seed in jobs:
        steps += await demonstrate(environment, task=task, seed=seed, rng=rng)
    return steps
