"""Phones with invented apps: any number of training environments.

phone = InventedPhone(devices=16, wordings="many")
observation = await phone.reset(task=phone.tasks[0], seed=7)
"""

from __future__ import annotations

from swarm_ui.environments.phone.invented.invented_apps import BLIND, BLIND_DEVICES, UNSEEN
from swarm_ui.environments.phone.invented.invented_phone import APPS, InventedPhone, blind_tasks
from swarm_ui.environments.phone.invented.wordings import Wordings

__all__ = [
    "APPS",
    "BLIND",
    "BLIND_DEVICES",
    "UNSEEN",
    "InventedPhone",
    "Wordings",
    "blind_tasks",
]
