"""Widgets of a screen, and the effects of taps on them.

Both are immutable, so that a device and its copies can share them.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from swarm_ui.environments.phone.device.device import Device
from swarm_ui.observation import Role


class Effect(Protocol):
    """A change of the device, such as that of a tap."""

    def apply(self, device: Device) -> str | None:
        """Change the device. Returns a note if the change is not possible."""
        ...


Zone = Literal["row", "status", "heading", "icon", "tile", "hero", "key", "toast", "dialog"]
"""The place of a widget: see :mod:`swarm_ui.environments.phone.ui.geometry`."""


class Widget(msgspec.Struct, frozen=True, gc=False):
    """An element of a screen before it has an index."""

    role: Role
    text: str
    value: str | None = None
    checked: bool | None = None
    effect: Effect | None = None
    """The effect of a tap; ``None``: none."""
    field: str | None = None
    """Name of the field of the form that typing fills; ``None``: not editable."""
    scrollable: bool = False
    submit: Effect | None = None
    """The effect of the enter key while this field has the focus."""
    description: str = ""
    zone: Zone = "row"
