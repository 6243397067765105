"""The settings, arms, episodes and contrasts of the studies, fixed before they were run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from swarm_ui.environments.phone import TEST_SEEDS, draw_jobs, jobs, tasks
from swarm_ui.environments.phone.invented import (
    BLIND,
    BLIND_DEVICES,
    UNSEEN,
    MixedPhone,
    simple_tasks,
)
from swarm_ui.experiment.environments.phone_jobs import mixed_training_jobs
from swarm_ui.experiment.settings import Settings
from swarm_ui.rollout import Job

WORDINGS: Literal["few"] = "few"
"""Plain wordings, as on the phone, so that only apps and screens are more varied."""
DEVICES_APART = 10_000
"""Devices of seed ``s`` begin at this number times ``s``: every seed has devices of its own."""
TEST_DRAW = 1
BASE = "base"
"""The agent that a study starts from, without further training."""
GENERAL = "general"
"""The general agent beside a study that starts from the base agent; see ``docs/base_agent.md``."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings. Method, learning rate, temperature and rehearsal are those of the learning
    benchmark, which were chosen on validation seeds."""

    iterations: int = 4
    episodes: int = 64
    """Training episodes in each iteration. In arms with invented devices, half of the episodes are
    on them."""
    steps: int = 50
    """Optimiser steps of the shared adapter in each iteration."""
    rank: int = 16
    """Rank of the adapter."""
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
    teacher: bool = False
    """Whether a teacher takes part: it shows the solver's action where no agent is right."""

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


STUDIES = {
    "base": Plan(),
    "general": Plan(start="general"),
    "teacher": Plan(episodes=256, steps=300, rank=64, teacher=True),
}
"""The settings of the studies by name. Episodes, steps and rank of the one with a teacher were
chosen on 128 episodes of invented devices that no study uses."""


def quick(plan: Plan) -> Plan:
    """A study that shows that every arm works; its figures mean nothing."""
    return msgspec.structs.replace(
        plan, iterations=1, episodes=8, steps=3, parameters=4, templates=4, apps=4, devices=4,
        blind=4,
    )  # fmt: skip


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
    stage1_of: str = ""
    """More stage 1 in place of stage 2, with demonstrations on the same devices and for the CPU
    time of this other arm; empty: stage 2."""
    rate: float = 1e-3
    """Peak learning rate of more stage 1. The default is that of the learning benchmark: the agent
    is trained already. The general agent was trained with 4e-3."""
    teacher: bool = False
    """Whether a teacher shows the solver's action where no agent is right."""

    control: bool = False
    """Whether the arm is a control beside the curve over numbers of devices."""


@dataclass(frozen=True, slots=True)
class Design:
    """What a study compares."""

    arms: tuple[Arm, ...]
    """The contrasts need the first three, which are run first, seed by seed."""
    controls: tuple[str, ...]
    """The arms that the main arm is compared with."""
    first_blind: int
    """Number of the first device of its blind set; a device is played by one study."""

    @property
    def main(self) -> str:
        """The arm of the contrasts."""
        return self.arms[1].name

    @property
    def by_name(self) -> dict[str, Arm]:
        return {arm.name: arm for arm in self.arms}

    @property
    def contrasts(self) -> tuple[tuple[str, str], ...]:
        """The differences on new apps that were named before the study was run."""
        return tuple((self.main, name) for name in (BASE, *self.controls))

    @property
    def blind_arms(self) -> tuple[str, ...]:
        """The arms that play the blind set, besides the untrained teams."""
        return tuple(arm.name for arm in self.arms[:3])


DEVICES = (
    Arm("0", "stage 2, 0 invented devices"),
    Arm("32", "stage 2, 32 invented devices", 32),
    Arm("stage1", "more stage 1, 32 invented devices", 32, stage1_of="32", control=True),
    Arm("16", "stage 2, 16 invented devices", 16),
    Arm("64", "stage 2, 64 invented devices", 64),
    Arm("8", "stage 2, 8 invented devices", 8),
    Arm(
        "outcome", "stage 2, 32 invented devices, credit by outcome", 32, critic=False,
        control=True,
    ),
)  # fmt: skip
"""Arms of the studies without a teacher."""
TAUGHT = (
    Arm("untaught", "stage 2 without a teacher, 512 invented devices", 512, control=True),
    Arm("512", "stage 2 with a teacher, 512 invented devices", 512, teacher=True),
    Arm("stage1", "more stage 1, 512 invented devices", 512, stage1_of="512", control=True),
    Arm("0", "stage 2 with a teacher, 0 invented devices", teacher=True),
    Arm("32", "stage 2 with a teacher, 32 invented devices", 32, teacher=True),
    Arm("128", "stage 2 with a teacher, 128 invented devices", 128, teacher=True),
    Arm(
        "stage1-4e-3", "more stage 1 at rate 4e-3, 512 invented devices", 512,
        stage1_of="512", rate=4e-3, control=True,
    ),
)  # fmt: skip
"""Arms of the study with a teacher."""


def design_of(plan: Plan) -> Design:
    """The arms and contrasts of the study with these settings."""
    if plan.teacher:
        return Design(TAUGHT, ("stage1", "untaught"), BLIND + 2 * BLIND_DEVICES)
    first = BLIND if plan.start == "base" else BLIND + BLIND_DEVICES
    return Design(DEVICES, ("stage1", "0"), first)


SPLITS = {
    "parameters": "new parameters",
    "templates": "new templates",
    "apps": "new apps",
    "devices": "new invented devices",
    "blind": "blind set",
}


def make_environment() -> MixedPhone:
    return MixedPhone(devices=1, wordings=WORDINGS)


def device_tasks(first: int, count: int) -> tuple[str, ...]:
    """The tasks of ``count`` devices from number ``first`` on with one goal in one app."""
    return simple_tasks(first, count, WORDINGS)


def training_jobs(arm: Arm, seed: int, count: int, rng: random.Random) -> list[Job]:
    """Training episodes: of the phone, and for half of them of the arm's devices."""
    names = device_tasks(DEVICES_APART * seed, arm.devices) if arm.devices else ()
    return mixed_training_jobs(tasks("train"), names, count, rng)


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
    """Episodes of the blind set, each of another template. Every study has devices of its own,
    because the blind sets of the earlier ones had been played when it was planned."""
    names = device_tasks(design_of(plan).first_blind, BLIND_DEVICES)
    return {"blind": draw_jobs(names, plan.blind, TEST_DRAW, seeds=TEST_SEEDS)}
