"""Phones with invented apps: any number of training environments.

phone = InventedPhone(devices=16, wordings="many")
observation = await phone.reset(task=phone.tasks[0], seed=7)
"""

from __future__ import annotations

from swarm_ui.environments.phone.invented.devices import BLIND, BLIND_DEVICES, UNSEEN
from swarm_ui.environments.phone.invented.environment import (
    InventedPhone,
    blind_tasks,
    is_simple,
    simple_tasks,
)
from swarm_ui.environments.phone.invented.wordings import Wordings

__all__ = [
    "BLIND",
    "BLIND_DEVICES",
    "UNSEEN",
    "InventedPhone",
    "Wordings",
    "blind_tasks",
    "is_simple",
    "simple_tasks",
]
