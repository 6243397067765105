"""The study of invented devices again, with a teacher where no agent finds a right action."""

from __future__ import annotations

from functools import partial

from benchmarks.studies.invented_training import (
    BASE,
    GENERAL,
    TAUGHT_EPISODES,
    more,
    roles,
    stage2,
    study,
    tests,
    untrained,
)
from benchmarks.study import Arm
from swarm_ui.environments.phone.invented import BLIND, BLIND_DEVICES
from swarm_ui.nodes import BASE_AGENT, GENERAL_AGENT

FIRST_BLIND = BLIND + 2 * BLIND_DEVICES
EVERY = partial(tests, FIRST_BLIND)
SIZE = {"train.episodes": TAUGHT_EPISODES, "train.update.steps": 300, "train.rank": 64}
"""Chosen on 128 episodes of devices that no study uses."""
MAIN = "stage 2 with a teacher, 512 invented devices"
TAUGHT = partial(stage2, set=SIZE, roles=partial(roles, teacher=True))
MORE = partial(more, "invented_training_teacher", MAIN, devices=512, episodes=TAUGHT_EPISODES)
ARMS: dict[str, Arm] = {
    BASE: untrained(BASE_AGENT, FIRST_BLIND),
    "stage 2 without a teacher, 512 invented devices": stage2(512, set=SIZE, tests=EVERY),
    MAIN: TAUGHT(512, tests=EVERY),
    "more stage 1, 512 invented devices": MORE(tests=EVERY),
    **{
        f"stage 2 with a teacher, {count} invented devices": TAUGHT(count) for count in (0, 32, 128)
    },
    "more stage 1 at rate 4e-3, 512 invented devices": MORE(tests=tests, rate=4e-3),
    GENERAL: untrained(GENERAL_AGENT, FIRST_BLIND),
}
STUDY = study(
    ARMS,
    MAIN,
    BASE,
    (
        "more stage 1, 512 invented devices",
        "stage 2 without a teacher, 512 invented devices",
    ),
    (
        "stage 2 with a teacher, 0 invented devices",
        "stage 2 with a teacher, 32 invented devices",
        "stage 2 with a teacher, 128 invented devices",
        "more stage 1 at rate 4e-3, 512 invented devices",
    ),
    shown=(
        BASE, "stage 2 without a teacher, 512 invented devices",
        "stage 2 with a teacher, 512 invented devices", "more stage 1, 512 invented devices",
        GENERAL,
    ),
)  # fmt: skip
