"""Sets of tasks, policies and the contrast of the study, fixed before it was run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from swarm_ui.environments.miniwob import REFERENCE_TASKS, blind_tasks

Tasks = Literal["reference", "blind"]
LABELS: dict[Tasks, str] = {"reference": "reference tasks", "blind": "blind tasks"}
AGENT, RANDOM = "base agent", "random actions"
POLICIES = (AGENT, RANDOM)
CONTRAST = (AGENT, RANDOM)
"""The difference that was named before the study was run, on the reference tasks."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the study."""

    each: int = 20
    """Episodes of each task."""
    tasks: int | None = None
    """Only the first ones of a set; ``None``: all."""

    def of(self, tasks: Tasks) -> Sequence[str]:
        """The tasks of a set."""
        names = REFERENCE_TASKS if tasks == "reference" else blind_tasks()
        return names[: self.tasks]


QUICK = Plan(each=2, tasks=3)
"""A size for testing the study; its figures have no meaning."""
