"""Phones with invented apps: any number of training environments.

phone = InventedPhone(devices=16, wordings="many")
observation = await phone.reset(task=phone.tasks[0], seed=7)
"""

from __future__ import annotations

from swarm_ui.environments.phone.invented.invented_phone import (
    APPS,
    UNSEEN,
    InventedPhone,
)
from swarm_ui.environments.phone.invented.wordings import Wordings

__all__ = ["APPS", "UNSEEN", "InventedPhone", "Wordings"]
