"""Phones with invented apps by name: which devices and seeds a split has, and what is refused."""

from __future__ import annotations

import random

import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone.benchmark import Invented
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    InventedPhone,
    blind_tasks,
)
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.benchmarks import held_out_rule
from swarm_ui.rollout import Job


def numbers(jobs: list[Job]) -> set[int]:
    """Numbers of the devices."""
    return {int(task.split("-")[1]) for task, _ in jobs}


async def drawn(env: Invented, split: str, episodes: int) -> list[Job]:
    async with env.open(split) as opened:
        return await env.jobs(split, episodes, 0, opened)


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
    jobs = await drawn(Invented(devices=3), split, 60)
    assert len(jobs) == 60 and all(seed in seeds for _, seed in jobs)
    assert numbers(jobs) == {first, first + 1, first + 2}
    assert jobs == await drawn(Invented(devices=3), split, 60)


async def test_training_uses_training_devices_and_seeds_only() -> None:
    env = Invented(devices=2)
    assert env.training_split() == "train" and env.solver() is not None
    async with env.open("train") as opened:
        tasks = await env.task_names("train", opened)
        jobs = env.training_jobs(tasks, 50, random.Random(0))
    assert numbers(jobs) == {0, 1} and all(seed in TRAIN_SEEDS for _, seed in jobs)


async def test_the_blind_split_is_all_of_the_blind_set() -> None:
    jobs = await drawn(Invented(devices=5), "blind", 600)
    assert {task for task, _ in jobs} == set(blind_tasks())
    assert numbers(jobs) == set(range(BLIND, BLIND + BLIND_DEVICES))
    assert all(seed in TEST_SEEDS for _, seed in jobs)


def test_the_blind_set_is_held_out_of_stage_1_and_of_corpora() -> None:
    rule = held_out_rule([Invented()])
    for task in blind_tasks():
        assert rule.why("invented phone (simulated)", task, 3) == f"task '{task}' is held out"
    with pytest.raises(ConfigError, match="would leak a test split into training"):
        rule.check("invented phone (simulated)", [(blind_tasks()[-1], 3)], "stage 1")


def test_training_refuses_a_task_of_the_blind_set() -> None:
    ((task, seed),) = Invented().training_jobs(blind_tasks()[:1], 1, random.Random(0))
    with pytest.raises(ConfigError, match="is held out for tests"):
        at_once(InventedPhone(devices=1).reset(task=task, seed=seed))
