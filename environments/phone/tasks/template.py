"""The definition of a task template."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.parameters import Sampler
from swarm_ui.environments.phone.tasks.goal import Goal

TemplateSplit = Literal[
    "train",
    "validation",
    "new_templates",
    "new_apps",
    "extended_train",
    "extended_validation",
    "extended_templates",
    "extended_apps",
    "twins",
    "extended_twins",
    "invented",
]
"""The first four are the core templates of the published study, on the core device; the extended
ones run on the full device. The twins of infeasible tasks are in no other split. Tasks of invented
apps are only for training."""
Make = Callable[[Sampler, Device], Goal]
"""Draws parameters, stores what the task needs on the device, and returns the goal."""


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A task with parameters that are drawn at random for each episode."""

    name: str
    split: TemplateSplit
    apps: tuple[str, ...]
    """Apps that must be installed; empty: any."""
    make: Make
    steps: int
    """Maximum number of actions of the reference solver, without the one that ends the episode."""
    tags: tuple[str, ...] = ()
    goals: tuple[str, ...] = ()
    """Goal texts, the plainest first; names in braces are filled from ``Goal.words``."""
    rows: tuple[int, int] = (3, 5)
    """Minimum and maximum number of records in the tables of ``apps``."""

    @property
    def full_device(self) -> bool:
        """Whether it runs on a full device, with a drawer, notifications and so on."""
        return self.split.startswith("extended")

    @property
    def budget(self) -> int:
        """Maximum number of actions of an agent: twice the solver's maximum, plus three."""
        return 2 * self.steps + 3

    def phrased(self, *goals: str) -> Template:
        """The same template with these goal texts."""
        return msgspec.structs.replace(self, goals=goals)


def template(
    split: TemplateSplit, name: str, make: Make, steps: int, apps: str, tags: str
) -> Template:
    """A template without goal texts; ``apps`` and ``tags`` are names separated by spaces."""
    return Template(
        name=name,
        split=split,
        apps=tuple(apps.split()),
        make=make,
        steps=steps,
        tags=tuple(tags.split()),
    )


extended_train = partial(template, "extended_train")
extended_validation = partial(template, "extended_validation")
extended_templates = partial(template, "extended_templates")
extended_apps = partial(template, "extended_apps")
