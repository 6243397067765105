"""Environments of simulated phones whose apps are invented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

from swarm_ui.environments.base import TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone.environment import PhoneEnvironment
from swarm_ui.environments.phone.invented.devices import BLIND, BLIND_DEVICES, UNSEEN
from swarm_ui.environments.phone.invented.tasks import templates
from swarm_ui.environments.phone.invented.wordings import Wordings
from swarm_ui.environments.phone.kinds import Assignment, Template, draw
from swarm_ui.environments.phone.templates import TEMPLATES
from swarm_ui.errors import ConfigError

SIMPLE_KINDS = (
    "open", "create", "delete", "missing", "check", "show", "edit", "read", "toggle", "state",
    "setting", "absent", "choice",
)  # fmt: skip
"""Kinds of tasks on invented devices with one goal in one app, as on the phone."""


class InventedPhone(PhoneEnvironment):
    """Phones whose apps, words, screens and tasks are made up; for training.

    The number of a device determines all of its apps, so there is no limit to the number of
    devices. They contain no name, field or button of the phone's test apps. Observations, actions,
    success check, reference solver and the splits of parameters by seed are those of
    :class:`~swarm_ui.environments.phone.PhoneEnvironment`.
    """

    def __init__(
        self,
        *,
        devices: int = 32,
        first: int = 0,
        wordings: Wordings = "many",
        screenshots: bool = False,
    ) -> None:
        """
        Args:
            devices: number of devices in ``tasks``.
            first: number of the first device. Devices from number :data:`UNSEEN` on are for tests:
                training seeds are refused; those from :data:`BLIND` on are played with test seeds
                only.
            wordings: ``"few"``: two plain wordings for each kind of task; ``"many"``: thousands.
                Devices from number :data:`BLIND` on have plain wordings of their own.
            screenshots: see :class:`~swarm_ui.environments.phone.PhoneEnvironment`.

        Raises:
            ConfigError: a number is out of range, or the set of wordings does not exist.
        """
        super().__init__(screenshots=screenshots)
        if devices < 1 or first < 0:
            raise ConfigError(
                f"invented: expected devices >= 1 and first >= 0, got {devices} and {first}"
            )
        if wordings not in ("few", "many"):
            raise ConfigError(f"invented: no wordings {wordings!r}; expected 'few' or 'many'")
        self._first, self._devices, self._wordings = first, devices, wordings
        self.name = f"invented phone (simulated{', few wordings' * (wordings == 'few')})"

    @property
    def tasks(self) -> Sequence[str]:  # type: ignore[override]
        return task_names(self._first, self._devices, self._wordings)

    @classmethod
    def of_split(cls, split: Literal["train", "test"]) -> Sequence[str]:
        """The tasks of the first 32 devices for training, or of the first for tests."""
        first = 0 if split == "train" else UNSEEN
        return task_names(first, 32, "many")

    def has(self, task: str) -> bool:
        """Whether a task exists, on one of these devices or on another device."""
        return task in _templates(task, self._wordings)

    def assign(self, task: str, seed: int) -> Assignment:
        """Draw the parameters of a task. It may belong to any device, or be the phone's own.

        Equal arguments give equal assignments.

        Raises:
            ConfigError: the task does not exist, the seed belongs to no split, or the device is
                held out from the split of the seed.
        """
        if task in TEMPLATES:
            return super().assign(task, seed)
        number = _device_of(task)
        held_out = number >= UNSEEN and seed in TRAIN_SEEDS
        if held_out or (number >= BLIND and seed not in TEST_SEEDS):
            raise ConfigError(
                f"invented: device {number} of task {task!r} is held out for tests, got seed {seed}"
                f"; train on devices below {UNSEEN}, or play this one with a seed from "
                f"{TEST_SEEDS.start} to {TEST_SEEDS.stop - 1}"
            )
        template = _templates(task, self._wordings).get(task)
        if template is None:
            raise ConfigError(f"invented: no task {task!r}; expected one such as {self.tasks[0]!r}")
        return draw(template, seed)


def blind_tasks() -> tuple[str, ...]:
    """The tasks of the blind set."""
    return task_names(BLIND, BLIND_DEVICES, "few")


@lru_cache(maxsize=64)
def task_names(first: int, devices: int, wordings: Wordings) -> tuple[str, ...]:
    """The names of all tasks of these devices."""
    return tuple(
        name for number in range(first, first + devices) for name in templates(number, wordings)
    )


@cache
def simple_tasks(first: int, count: int, wordings: Wordings = "few") -> tuple[str, ...]:
    """The tasks of ``count`` devices from number ``first`` on that are of :data:`SIMPLE_KINDS`."""
    return of_kinds(task_names(first, count, wordings), SIMPLE_KINDS)


def of_kinds(tasks: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """The tasks of invented devices that are of these kinds."""
    return tuple(task for task in tasks if task.split("-")[2] in kinds)


def _device_of(task: str) -> int:
    """The number of the device in the name of a task, or -1."""
    parts = task.split("-")
    numbered = len(parts) > 2 and parts[0] == "invented" and parts[1].isdecimal()
    return int(parts[1]) if numbered else -1


def _templates(task: str, wordings: Wordings) -> Mapping[str, Template]:
    """All tasks of the device in the name of a task; empty if it names none."""
    number = _device_of(task)
    return templates(number, wordings) if number >= 0 else {}
