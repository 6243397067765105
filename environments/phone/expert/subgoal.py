"""A subgoal of the reference solver."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.device.widget import Effect
from swarm_ui.environments.phone.tasks.goal import Source


class Subgoal(msgspec.Struct, frozen=True, kw_only=True):
    """Go to a screen, fill its form, and tap a widget."""

    path: Path
    tap: Effect | None = None
    """The tap that completes it; ``None`` if it is enough to open the screen."""
    fields: Mapping[str, str] = {}
    """The values of the form before the tap."""
    source: Source | None = None
    """A value to look up before the form is filled."""
