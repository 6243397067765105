"""What a task template is."""

from __future__ import annotations

from collections.abc import Callable
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
]
"""The first four are the core templates of the published study, on the plain phone; the extended
ones run on a whole phone."""
Make = Callable[[Sampler, Device], Goal]


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of task; with random parameters it becomes a task."""

    name: str
    apps: tuple[str, ...]
    """Apps that must be installed; empty: any."""
    split: TemplateSplit
    steps: int
    """Most actions the reference solver needs, the one that ends the episode not counted."""
    goals: tuple[str, ...]
    """Phrasings, the plainest first; names in braces are filled from the goal's words."""
    make: Make
    """Chooses parameters, puts what the task needs on the device, and says what is wanted."""
    tags: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Apps that must not be installed."""
    rows: tuple[int, int] = (3, 5)
    """Least and most records in the tables of ``apps``."""

    @property
    def full_device(self) -> bool:
        """Whether it runs on a full device, with a drawer, notifications and so on."""
        return self.split.startswith("extended")

    @property
    def complexity(self) -> float:
        """How hard it is: a tenth of the budget, as AndroidWorld has it."""
        return self.budget / 10

    @property
    def budget(self) -> int:
        """Actions an agent has: twice what the solver needs at most, and three."""
        return 2 * self.steps + 3
