"""The phone whose apps are open side by side, one for each agent."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from swarm_ui.credit import CreditAssigner
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments.spec import (
    DEFAULT_EPISODES,
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
)
from swarm_ui.rollout.pool import Job

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.phone.split import SplitPhone

    yield OpenEnvironment(SplitPhone)


def _known() -> Sequence[str]:
    from swarm_ui.environments.phone.split import SplitPhone

    return SplitPhone().tasks


def _tasks(section: EnvironmentSection) -> Sequence[str]:
    """The templates of a split; those of ``parameters`` are the training templates."""
    from swarm_ui.environments.phone.split import split_tasks

    return split_tasks("new_templates" if section.split == "templates" else "train")


def _test_jobs(section: EnvironmentSection) -> list[Job]:
    from swarm_ui.environments import phone

    count = section.episodes or (len(section.tasks) or DEFAULT_EPISODES)
    own = {"validation": phone.VALIDATION_SEEDS, "train": phone.TRAIN_SEEDS}
    seeds = own.get(section.split, phone.TEST_SEEDS)
    names = section.tasks or tuple(_tasks(section))
    return phone.draw_jobs(tuple(names), count, section.seed, seeds=seeds)


def _training_jobs(
    section: EnvironmentSection, names: Sequence[str], count: int, rng: random.Random
) -> list[Job]:
    from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs

    return draw_jobs(tuple(names), count, rng.getrandbits(32), seeds=TRAIN_SEEDS)


def _validation_jobs(
    section: EnvironmentSection, names: Sequence[str], count: int, rng: random.Random
) -> list[Job]:
    from swarm_ui.environments.phone import VALIDATION_SEEDS, draw_jobs

    return draw_jobs(tuple(names), count, rng.getrandbits(32), seeds=VALIDATION_SEEDS)


def _critic(seed: int) -> CreditAssigner:
    from swarm_ui.environments.phone.split import SplitPhone
    from swarm_ui.optim.credit.assigners.critic import ScriptedCritic

    return ScriptedCritic(SplitPhone, seed=seed)


def _held_out() -> HeldOut:
    """Every template that is not for training, and the seeds of validation and tests."""
    from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS
    from swarm_ui.environments.phone.split import split_tasks
    from swarm_ui.optim.stage1 import HeldOut

    others = [*split_tasks("validation"), *split_tasks("new_templates")]
    return HeldOut.of(tasks=others, seeds=[VALIDATION_SEEDS, TEST_SEEDS])


SPEC = EnvironmentSpec(
    name="phone-split",
    label="The phone is simulated, its apps are open side by side; not AndroidWorld scores",
    open=_open,
    splits=("parameters", "templates", "validation", "train"),
    trains_on="train",
    tasks=_tasks,
    known_tasks=_known,
    test_jobs=_test_jobs,
    training_jobs=_training_jobs,
    validation_jobs=_validation_jobs,
    held_out=_held_out,
    critic=_critic,
)
