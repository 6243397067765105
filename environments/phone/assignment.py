"""Assignments: a task template with random parameters, and the device that an episode starts on."""

from __future__ import annotations

import random
from zlib import crc32

import msgspec

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.apps.settings import BATTERY
from swarm_ui.environments.phone.device.device import PERMISSIONS, Device, Notice, System
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.splits import (
    EXTENDED_TEST_APPS,
    EXTENDED_TRAIN_APPS,
    TRAIN_APPS,
    parameter_split,
)
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.tasks.goal import Goal
from swarm_ui.environments.phone.tasks.template import Template
from swarm_ui.errors import ConfigError

ALWAYS_INSTALLED = ("settings", "files")
"""Apps that every full device has."""
_FAVORITES = 7
"""Apps on the home screen of a full device."""
_NOTIFYING = ("messages", "calendar", "tasks", "files", "contacts")
"""Apps that may have a notification at the start."""
_PERMISSIONS = {
    name: [f"{name} {need}" for need in sorted(set(app.needs.values()) & set(PERMISSIONS))]
    for name, app in APPS.items()
    if app.needs
}
"""App -> the permissions that it may ask for."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its parameters, and the device at the start."""

    template: Template
    text: str
    """The goal as the agent reads it."""
    goal: Goal
    start: Device
    """The device at the start; do not change it."""
    parameters: frozenset[str]
    """All random values on the device and in the goal, closed choices excepted."""
    salt: int
    """Decides order and decoys of this episode's screens."""


def assign(task: str, seed: int) -> Assignment:
    """Draw the parameters of a task; equal arguments give equal assignments.

    Raises:
        ConfigError: the task does not exist, or the seed belongs to no split.
    """
    template = TEMPLATES.get(task)
    if template is None:
        raise ConfigError(f"phone: no task {task!r}; expected one of {', '.join(TEMPLATES)}")
    salt = crc32(task.encode(), seed & 0xFFFFFFFF)
    sampler = Sampler(random.Random(salt << 32 | seed), parameter_split(seed))
    device = Device(_installed(template, sampler))
    others = (1, 2) if template.full_device else (1, 3)
    for name in device.installed:
        least, most = template.rows if name in template.apps else others
        APPS[name].fill(device, sampler, least, most)
    if template.full_device:
        _add_system(device, sampler)
    goal = template.make(sampler, device)
    return Assignment(
        template=template,
        text=sampler.pick(template.goals).format_map(goal.words),
        goal=goal,
        start=device,
        parameters=frozenset(sampler.values),
        salt=salt,
    )


def _installed(template: Template, sampler: Sampler) -> tuple[str, ...]:
    """The apps of the task, and a random choice of others."""
    needed, candidates, counts = template.apps, TRAIN_APPS, (6, 7, 8)
    if template.full_device:
        needed = tuple(dict.fromkeys((*template.apps, *ALWAYS_INSTALLED)))
        candidates, counts = EXTENDED_TRAIN_APPS, (9, 11, 13)
        if set(template.apps) & set(EXTENDED_TEST_APPS):
            candidates = (*EXTENDED_TRAIN_APPS, *EXTENDED_TEST_APPS)
    others = [name for name in candidates if name not in needed]
    count = max(0, sampler.pick(counts) - len(needed))
    return (*needed, *sampler.rng.sample(others, min(count, len(others))))


def _add_system(device: Device, sampler: Sampler) -> None:
    """Add the system UI of a full device, whose apps are installed and filled already."""
    favorites = sampler.rng.sample(device.installed, min(_FAVORITES, len(device.installed)))
    device.settings = {**device.settings, "wifi": "on", **dict.fromkeys(BATTERY, "off")}
    notifying = [name for name in _NOTIFYING if name in device.installed]
    notices = {}
    for app in sampler.rng.sample(notifying, min(2, len(notifying))):
        notices[device.next_row] = Notice(app, sampler.noun(), sampler.phrase(2), (Screen(app),))
        device.next_row += 1
    device.system = System(
        favorites=tuple(favorites),
        clock=f"{int(sampler.rng.random() * 24):02d}:{int(sampler.rng.random() * 60):02d}",
        battery=str(20 + int(sampler.rng.random() * 80)),
        notices=notices,
        grants={
            key: "ask" for name in sorted(device.installed) for key in _PERMISSIONS.get(name, ())
        },
    )
