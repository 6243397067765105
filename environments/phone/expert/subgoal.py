"""A subgoal of the reference solver."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from swarm_ui.environments.phone.device.screen import Effect, Path
from swarm_ui.environments.phone.tasks.goal import Source


class Subgoal(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to set right: go to a screen, fill its form, tap something."""

    path: Path
    tap: Effect | None = None
    """The tap that completes it; ``None``: to be there is enough."""
    fields: Mapping[str, str] = {}
    """What the form must hold before the tap."""
    source: Source | None = None
    """What must be looked up before the form is filled."""
