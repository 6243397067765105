"""The settings, arms, episodes and contrasts of the study, fixed before it was run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS, draw_jobs, jobs, tasks
from swarm_ui.environments.phone.invented import BLIND, BLIND_DEVICES, UNSEEN
from swarm_ui.environments.phone.invented.mixed_phone import MixedPhone, simple_tasks
from swarm_ui.experiment.settings import Settings
from swarm_ui.rollout.pool import Job

WORDINGS: Literal["few"] = "few"
"""Plain wordings, as on the phone, so that only apps and screens are more varied."""
DEVICES_APART = 10_000
"""Devices of seed ``s`` begin at this number times ``s``: every seed has devices of its own."""
TEST_DRAW = 1
BASE = "base"
"""The agent that the study starts from, without further training."""
GENERAL = "general"
"""The general agent beside a study that starts from the base agent; see ``docs/base_agent.md``."""
MAIN = "32"
"""The arm of the contrasts."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings. Method, learning rate, temperature and rehearsal are those of the learning
    benchmark, which were chosen on validation seeds."""

    iterations: int = 4
    episodes: int = 64
    """Training episodes in each iteration. In arms with invented devices, half of the episodes are
    on them."""
    steps: int = 50
    """Optimiser steps of the shared adapter in each iteration."""
    parameters: int = 38
    """Test episodes on known templates; one of each."""
    templates: int = 39
    """On new templates; three of each."""
    apps: int = 135
    """On new apps; fifteen of each template."""
    devices: int = 40
    """On invented devices that no training uses."""
    test_devices: int = 8
    blind: int = 90
    """On the blind set; one of a template, and only with one goal in one app."""
    start: Literal["base", "general"] = "base"
    """The agent that is trained: the base agent or the general agent of this package."""

    def settings(self, seed: int) -> Settings:
        """The team: four agents without edges that vote once."""
        return Settings(
            seed=seed,
            rounds=1,
            method="rft",
            lr=3e-3,
            temperature=1.1,
            edges="fixed",
            iterations=self.iterations,
            shared_iterations=self.iterations,
            episodes=self.episodes,
            shared_steps=self.steps,
        )


QUICK = Plan(
    iterations=1, episodes=8, steps=3, parameters=4, templates=4, apps=4, devices=4, blind=4
)
"""Shows that every arm works; the figures mean nothing."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to train."""

    name: str
    label: str
    devices: int = 0
    """Invented devices in training."""
    critic: bool = True
    """Whether messages get the critic's credit; if not, the outcome of the episode. Guidance and
    the grading of negatives are the same."""
    stage1: bool = False
    """More stage 1 with demonstrations on the same devices, in place of stage 2."""


ARMS = (
    Arm("0", "stage 2, 0 invented devices"),
    Arm("32", "stage 2, 32 invented devices", 32),
    Arm("stage1", "more stage 1, 32 invented devices", 32, stage1=True),
    Arm("16", "stage 2, 16 invented devices", 16),
    Arm("64", "stage 2, 64 invented devices", 64),
    Arm("8", "stage 2, 8 invented devices", 8),
    Arm("outcome", "stage 2, 32 invented devices, credit by outcome", 32, critic=False),
)
"""The contrasts need the first three, which are run first, seed by seed."""
ARM = {arm.name: arm for arm in ARMS}
CONTRASTS = ((MAIN, BASE), (MAIN, "stage1"), (MAIN, "0"))
"""The differences on new apps that were named before the study was run."""
SPLITS = {
    "parameters": "new parameters",
    "templates": "new templates",
    "apps": "new apps",
    "devices": "new invented devices",
    "blind": "blind set",
}
BLIND_ARMS = ("0", "32", "stage1")
"""The arms that play the blind set, besides the untrained teams."""


def make_environment() -> MixedPhone:
    return MixedPhone(devices=1, wordings=WORDINGS)


def device_tasks(first: int, count: int) -> tuple[str, ...]:
    """The tasks of ``count`` devices from number ``first`` on with one goal in one app."""
    return simple_tasks(first, count, WORDINGS)


def training_jobs(arm: Arm, seed: int, count: int, rng: random.Random) -> list[Job]:
    """Training episodes: of the phone, and for half of them of the arm's devices."""
    own = count // 2 if arm.devices else 0
    drawn = draw_jobs(tasks("train"), count - own, rng.getrandbits(32), seeds=TRAIN_SEEDS)
    if own:
        names = device_tasks(DEVICES_APART * seed, arm.devices)
        drawn += draw_jobs(names, own, rng.getrandbits(32), seeds=TRAIN_SEEDS)
        rng.shuffle(drawn)
    return drawn


def held_out_jobs(plan: Plan) -> dict[str, Sequence[Job]]:
    """Test episodes by split, the same for every arm and seed."""
    seen = device_tasks(UNSEEN, plan.test_devices)
    return {
        "parameters": jobs("parameters", plan.parameters, TEST_DRAW),
        "templates": jobs("templates", plan.templates, TEST_DRAW),
        "apps": jobs("apps", plan.apps, TEST_DRAW),
        "devices": draw_jobs(seen, plan.devices, TEST_DRAW, seeds=TEST_SEEDS),
    }


def blind_jobs(plan: Plan) -> dict[str, Sequence[Job]]:
    """Episodes of the blind set, each of another template. The study that starts from the general
    agent has devices of its own, because the first blind set was played when it was planned."""
    first = BLIND if plan.start == "base" else BLIND + BLIND_DEVICES
    names = device_tasks(first, BLIND_DEVICES)
    return {"blind": draw_jobs(names, plan.blind, TEST_DRAW, seeds=TEST_SEEDS)}
