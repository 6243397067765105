"""What a screen is made of: where it is, what stands on it, and what a tap does.

Everything here is immutable, so screens can be shared between a device and its copies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from swarm_ui.observation import Role

if TYPE_CHECKING:
    from swarm_ui.environments.phone.device.device import Device


class Screen(NamedTuple):
    """Address of a screen: equal addresses show the same place."""

    app: str
    kind: str = "list"
    of: str = ""
    """Table or category shown, where the app has several."""
    row: int = 0
    """Identity of the record shown; 0 where there is none."""


Path = tuple[Screen, ...]
"""Screens from an app's first screen to the one in front; empty at home."""


class Effect(Protocol):
    """What a tap does to a device."""

    def apply(self, device: Device) -> str:
        """Change the device; returns a note, empty if there is nothing to say."""
        ...


Zone = Literal["row", "status", "heading", "icon", "tile", "hero", "key", "toast", "dialog"]
"""Where on the glass a widget stands: see :mod:`swarm_ui.environments.phone.ui.geometry`."""


class Widget(msgspec.Struct, frozen=True, gc=False):
    """One thing on a screen, before it gets an index."""

    role: Role
    text: str
    value: str | None = None
    checked: bool | None = None
    effect: Effect | None = None
    """What a tap does; ``None``: nothing happens."""
    field: str | None = None
    """Name of the field of the form that typing fills; ``None``: not editable."""
    scrollable: bool = False
    submit: Effect | None = None
    """What the enter key does while this field is being typed in."""
    description: str = ""
    zone: Zone = "row"
