"""Phones with invented apps by name: which devices and seeds a split has, and what is refused."""

from __future__ import annotations

import random

import pytest

from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone.invented import UNSEEN, InventedPhone
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.runs import open_environment
from swarm_ui.rollout.pool import Job

SPEC = spec_of("invented")


def numbers(jobs: list[Job]) -> set[int]:
    """Numbers of the devices."""
    return {int(task.split("-")[1]) for task, _ in jobs}


async def drawn(section: EnvironmentSection) -> list[Job]:
    async with open_environment(section) as environment:
        return await SPEC.jobs(section, environment)


@pytest.mark.parametrize(
    ("split", "seeds", "first"),
    [
        ("", TEST_SEEDS, UNSEEN),
        ("devices", TEST_SEEDS, UNSEEN),
        ("parameters", TEST_SEEDS, 0),
        ("validation", VALIDATION_SEEDS, 0),
        ("train", TRAIN_SEEDS, 0),
    ],
)
async def test_splits_have_their_devices_and_seeds(split: str, seeds: range, first: int) -> None:
    section = EnvironmentSection(name="invented", split=split, devices=3, episodes=60)
    jobs = await drawn(section)
    assert len(jobs) == 60 and all(seed in seeds for _, seed in jobs)
    assert numbers(jobs) == {first, first + 1, first + 2}
    assert jobs == await drawn(section)


async def test_training_uses_training_devices_and_seeds_only() -> None:
    assert SPEC.trains_on == "train" and SPEC.critic is not None
    section = EnvironmentSection(name="invented", split="train", devices=2)
    async with open_environment(section) as environment:
        tasks = await SPEC.task_names(section, environment)
        jobs = SPEC.training_jobs(section, tasks, 50, random.Random(0))
    assert numbers(jobs) == {0, 1} and all(seed in TRAIN_SEEDS for _, seed in jobs)


def test_an_unknown_task_is_named_with_one_that_exists() -> None:
    section = EnvironmentSection(name="invented", tasks=("invented-0-fly-kite",), split="train")
    ((where, problem),) = SPEC.all_findings(section)
    assert where == ("environment", "tasks")
    assert "no task 'invented-0-fly-kite'; such as invented-0-open-" in problem


def test_a_task_of_any_device_can_be_named() -> None:
    named = InventedPhone(devices=1, first=500).tasks[0]
    assert list(SPEC.all_findings(EnvironmentSection(name="invented", tasks=(named,)))) == []
