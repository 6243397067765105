"""A simulated Android phone in this process: apps, tasks, a reference solver, splits, pictures.

It is a simulation: scores on it are never AndroidWorld scores.

    phone = PhoneEnvironment()
    observation = await phone.reset(task="contacts-add", seed=7)
    step = await phone.step(phone.expert())

There are two suites of tasks on two devices (:mod:`swarm_ui.environments.phone.splits`). The core
templates run on the core device, with apps, forms and lists. The extended templates run on the full
device, with drawer, status bar, keyboard, notifications, permissions, interruptions and six more
apps.
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
    training_jobs,
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
    "training_jobs",
    "vocabulary",
]
