"""The recipes of the included agents: the base agent, and the general agent that continues it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import distributed

from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Mix, Stream, demonstrate
from demos.base_agent.training import Progress, Stage1Config, print_progress, train
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment, tasks, vocabulary
from swarm_ui.environments.phone.invented import InventedPhone, simple_tasks
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
from swarm_ui.rollout import Job

FIRST_DEVICE, DEVICES = 5_000, 1_024
"""Number of the first device of the general agent, and their count. No study trains on them: seed
``s`` of a study begins at 10,000 times ``s``."""
BASE, GENERAL = Stage1Config(), Stage1Config(steps=5_000, questions_first=0.0, seed=7)
HALF_DEMONSTRATIONS = Mix(questions=0.0, pages=0.39, devices=0.11, demonstrations=0.5)
"""The other half are on invented pages and devices, in the base agent's own proportion."""


def make_agent(
    folder: Path,
    config: Stage1Config,
    *,
    start: Path | None = None,
    mix: Mix,
    shown: Sequence[ActionSample] = (),
    report: Callable[[Progress], None] = print_progress,
) -> Progress:
    """Train an agent, or continue the one in ``start``, and save it into ``folder``.

    Every process of ``torchrun`` draws samples of its own; the first one reports and saves.
    ``shown``: demonstrations besides those of the :func:`pool`."""
    torch.set_num_threads(1)
    rank = distributed.get_rank() if distributed.is_initialized() else 0
    learner = LocalModel.load(start) if start else LocalModel.untrained(
        ScreenTokenizer(vocabulary()), width=64, layers=3, heads=4, seed=config.seed
    )  # fmt: skip
    config = replace(config, seed=config.seed * 1000 + rank)
    stream = Stream(config.seed, mix, [*pool(), *shown])
    done = train(learner, stream, config, report=None if rank else report)
    if rank == 0:
        learner.save(folder)
    return done


def pool() -> list[ActionSample]:
    """The solver's steps in two episodes of each training template: few, as on a real device."""
    rng = random.Random(0)
    jobs = [(task, rng.choice(TRAIN_SEEDS)) for task in tasks("train") for _ in range(2)]
    return asyncio.run(solver_steps(PhoneEnvironment(), jobs, rng))


async def general_demonstrations(
    seed: int, devices: int = DEVICES, on_devices: int = 4_096, on_phone: int = 2_048
) -> list[ActionSample]:
    """The solver's steps in episodes of the phone's training templates and of invented devices."""
    rng = random.Random(f"general agent {seed}")
    drawn = PhoneEnvironment.training_jobs(on_phone, seed=rng.getrandbits(32))
    steps = await solver_steps(InventedPhone(devices=1), drawn, rng)
    names = simple_tasks(FIRST_DEVICE, devices, "few")
    drawn = InventedPhone.training_jobs(on_devices, seed=rng.getrandbits(32), tasks=names)
    return steps + await solver_steps(InventedPhone(devices=1, wordings="few"), drawn, rng)


async def solver_steps(
    environment: Environment, jobs: Sequence[Job], rng: random.Random
) -> list[ActionSample]:
    """The solver's steps in these episodes, and the way back from random actions."""
    steps: list[ActionSample] = []
    for task, seed in jobs:
        steps += await demonstrate(environment, task=task, seed=seed, rng=rng)
    return steps
