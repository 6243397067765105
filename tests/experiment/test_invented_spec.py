"""Phones with invented apps by name: which devices and seeds a split has, and what is refused."""

from __future__ import annotations

import random

import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    blind_tasks,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.runs import open_environment
from swarm_ui.rollout import Job

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
    assert SPEC.trains_on == "train" and SPEC.solver is not None
    section = EnvironmentSection(name="invented", split="train", devices=2)
    async with open_environment(section) as environment:
        tasks = await SPEC.task_names(section, environment)
        jobs = SPEC.training_jobs(section, tasks, 50, random.Random(0), "train")
    assert numbers(jobs) == {0, 1} and all(seed in TRAIN_SEEDS for _, seed in jobs)


async def test_the_blind_split_is_all_of_the_blind_set() -> None:
    section = EnvironmentSection(name="invented", split="blind", devices=5, episodes=600)
    jobs = await drawn(section)
    assert {task for task, _ in jobs} == set(blind_tasks())
    assert numbers(jobs) == set(range(BLIND, BLIND + BLIND_DEVICES))
    assert all(seed in TEST_SEEDS for _, seed in jobs)


def test_the_blind_set_is_held_out_of_stage_1_and_of_corpora() -> None:
    rule = SPEC.held_out_rule()
    for task in blind_tasks():
        assert rule.why("invented phone (simulated)", task, 3) == f"task '{task}' is held out"
    with pytest.raises(ConfigError, match="would leak a test split into training"):
        rule.check("invented phone (simulated)", [(blind_tasks()[-1], 3)], "stage 1")


def test_training_refuses_a_task_of_the_blind_set() -> None:
    section = EnvironmentSection(name="invented", tasks=blind_tasks()[:1], split="train")
    ((task, seed),) = SPEC.training_jobs(section, section.tasks, 1, random.Random(0), "train")
    with pytest.raises(ConfigError, match="belongs to the blind set"):
        at_once(InventedPhone(devices=1).reset(task=task, seed=seed))


def test_an_unknown_task_is_named_with_one_that_exists() -> None:
    section = EnvironmentSection(name="invented", tasks=("invented-0-fly-kite",), split="train")
    ((where, problem),) = SPEC.all_findings(section)
    assert where == ("environment", "tasks")
    assert "no task 'invented-0-fly-kite'; such as invented-0-open-" in problem


def test_a_task_of_any_device_can_be_named() -> None:
    named = InventedPhone(devices=1, first=500).tasks[0]
    assert list(SPEC.all_findings(EnvironmentSection(name="invented", tasks=(named,)))) == []
