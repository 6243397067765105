"""Setting a device up for a task."""

from __future__ import annotations

import random
from zlib import crc32

import msgspec

from swarm_ui.environments.phone.apps import APPS
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_device import installed_whole, make_whole
from swarm_ui.environments.phone.goal import Goal
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.splits import TRAIN_APPS, parameter_split
from swarm_ui.environments.phone.tasks import TEMPLATES
from swarm_ui.environments.phone.tasks.template import Template
from swarm_ui.errors import ConfigError


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its parameters, and the device it begins on."""

    template: Template
    goal: str
    aim: Goal
    start: Device
    """The device at the beginning; not to be changed."""
    parameters: frozenset[str]
    """All random values on the device and in the goal (the closed choices excepted)."""
    salt: int
    """Decides order and decoys of this episode's screens."""


def assign(task: str, seed: int) -> Assignment:
    """Draw the parameters of a task; equal arguments give equal assignments.

    Raises:
        ConfigError: no such task, or a seed that belongs to no split.
    """
    template = TEMPLATES.get(task)
    if template is None:
        raise ConfigError(f"phone: no task {task!r}; expected one of {', '.join(TEMPLATES)}")
    salt = crc32(task.encode(), seed & 0xFFFFFFFF)
    draw = Draw(random.Random(salt << 32 | seed), parameter_split(seed))
    device = Device(
        installed_whole(template, draw) if template.whole else _installed(template, draw)
    )
    others = (1, 2) if template.whole else (1, 3)
    for name in device.installed:
        least, most = template.rows if name in template.apps else others
        APPS[name].fill(device, draw, least, most)
    if template.whole:
        make_whole(device, template, draw)
    aim = template.make(draw, device)
    goal = draw.pick(template.goals).format_map(aim.words)
    return Assignment(
        template=template,
        goal=goal,
        aim=aim,
        start=device,
        parameters=frozenset(draw.values),
        salt=salt,
    )


def _installed(template: Template, draw: Draw) -> tuple[str, ...]:
    """The task's apps and some others, as on nobody else's phone."""
    others = [name for name in TRAIN_APPS if name not in template.apps]
    count = max(0, draw.pick((6, 7, 8)) - len(template.apps))
    return (*template.apps, *draw.rng.sample(others, min(count, len(others))))
