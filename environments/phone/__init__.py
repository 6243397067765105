"""A simulated Android phone in this process: apps, tasks, a reference solver, splits, pictures.

It is a simulation: scores on it are never AndroidWorld scores.

    phone = PhoneEnvironment()
    observation = await phone.reset(task="contacts-add", seed=7)
    step = await phone.step(phone.expert())

There are two suites of tasks, on two devices (:mod:`swarm_ui.environments.phone.splits`): the core
templates run on a plain phone (apps, forms, lists), the extended ones on a whole one, with drawer,
status bar, keyboard, notifications, permissions, interruptions and six more apps.
"""

from __future__ import annotations

from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.splits import (
    EXTENDED_TEST_APPS,
    EXTENDED_TRAIN_APPS,
    TEST_APPS,
    TEST_SEEDS,
    TRAIN_APPS,
    TRAIN_SEEDS,
    VALIDATION_SEEDS,
    draw_jobs,
    jobs,
    parameter_split,
    tasks,
)
from swarm_ui.environments.phone.vocabulary import parameter_words, vocabulary

__all__ = [
    "EXTENDED_TEST_APPS",
    "EXTENDED_TRAIN_APPS",
    "TEST_APPS",
    "TEST_SEEDS",
    "TRAIN_APPS",
    "TRAIN_SEEDS",
    "VALIDATION_SEEDS",
    "PhoneEnvironment",
    "draw_jobs",
    "jobs",
    "parameter_split",
    "parameter_words",
    "tasks",
    "vocabulary",
]
