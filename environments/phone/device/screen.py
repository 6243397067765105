"""Addresses of screens, their widgets, and the effects of taps.

All of them are immutable, so that a device and its copies can share them.
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
    """A change of the device, such as that of a tap."""

    def apply(self, device: Device) -> str:
        """Change the device. Returns a note, or an empty string."""
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
