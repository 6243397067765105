"""A simulated Android phone in this process: apps, tasks, a reference solver, splits, pictures.

It is a simulation: scores on it are never AndroidWorld scores.

    phone = PhoneEnvironment()
    observation = await phone.reset(task="contacts-add", seed=7)
    step = await phone.step(phone.expert())

:mod:`swarm_ui.environments.phone.templates` has the tasks and seeds of training and tests.
:mod:`swarm_ui.environments.phone.invented` makes further phones for training, and
:mod:`swarm_ui.environments.phone.split` gives each agent of a team one of the apps.
"""

from __future__ import annotations

from swarm_ui.environments.base import TEST_SEEDS, TRAIN_SEEDS, VALIDATION_SEEDS
from swarm_ui.environments.phone.apps import TEST_APPS, TRAIN_APPS
from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.templates import tasks, vocabulary

training_jobs = PhoneEnvironment.training_jobs

__all__ = [
    "TEST_APPS",
    "TEST_SEEDS",
    "TRAIN_APPS",
    "TRAIN_SEEDS",
    "VALIDATION_SEEDS",
    "PhoneEnvironment",
    "tasks",
    "training_jobs",
    "vocabulary",
]
