"""The phone's own tasks and those of invented devices, in one environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from swarm_ui.environments.phone.assignment import Assignment, assign
from swarm_ui.environments.phone.invented.invented_phone import InventedPhone
from swarm_ui.environments.phone.invented.wordings import Wordings
from swarm_ui.environments.phone.tasks import TEMPLATES

SIMPLE_KINDS = (
    "open", "create", "delete", "missing", "check", "show", "edit", "read", "toggle", "state",
    "setting", "absent", "choice",
)  # fmt: skip
"""Kinds of tasks on invented devices with one goal in one app, as on the phone."""


class MixedPhone(InventedPhone):
    """The phone's own tasks and those of all invented devices."""

    @property
    def tasks(self) -> Sequence[str]:
        return (*super().tasks, *TEMPLATES)

    def has(self, task: str) -> bool:
        return task in TEMPLATES or super().has(task)

    def assign(self, task: str, seed: int) -> Assignment:
        return super().assign(task, seed) if task.startswith("invented-") else assign(task, seed)


@cache
def simple_tasks(first: int, count: int, wordings: Wordings = "few") -> tuple[str, ...]:
    """The tasks of ``count`` devices from number ``first`` on that are of :data:`SIMPLE_KINDS`."""
    phone = InventedPhone(devices=count, first=first, wordings=wordings)
    return of_kinds(phone.tasks, SIMPLE_KINDS)


def of_kinds(tasks: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """The tasks of invented devices that are of these kinds."""
    return tuple(task for task in tasks if task.split("-")[2] in kinds)
