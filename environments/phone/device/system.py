"""What a whole phone has system its apps: home screen, notifications, permissions, interruptions.

A device without a :class:`System` is the plain phone of the core templates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from swarm_ui.environments.phone.device.screen import Path, Screen

if TYPE_CHECKING:
    from swarm_ui.environments.phone.device.device import Device

DRAWER = Screen("system", "drawer")
"""All installed apps."""
SHADE = Screen("system", "shade")
"""The notifications, pulled down over whatever is in front."""
HISTORY = Screen("system", "history")
"""Notifications that were opened or dismissed."""

SYSTEM_TITLES: Mapping[str, str] = {
    "drawer": "all apps",
    "shade": "notifications",
    "history": "notification history",
    "updating": "system update",
    "store": "store",
}
"""Kind of screen -> what it is called."""

PERMISSIONS: Mapping[str, str] = {
    "camera": "take pictures and record video",
    "microphone": "record audio",
    "location": "access the location of this device",
    "contacts": "access your contacts",
}
"""What an app may ask for -> how the question puts it."""


class Notice(msgspec.Struct, frozen=True):
    """A notification."""

    app: str
    title: str
    text: str
    path: Path
    """What a tap on it opens."""


InterruptionKind = Literal["update", "rating", "battery"]


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A dialog that comes up by itself and stays until it is answered."""

    kind: InterruptionKind
    due: int
    """It comes once so many screens were opened (:attr:`Device.moves`)."""
    app: str = ""
    """App in whose screens it comes; empty: in all."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """State of the phone system its apps. Replaced, never changed."""

    favorites: tuple[str, ...]
    """Apps on the home screen; the others are in the drawer only."""
    clock: str
    battery: str
    """Per cent."""
    notices: Mapping[int, Notice] = {}
    dismissed: Mapping[int, Notice] = {}
    grants: Mapping[str, str] = {}
    """``"app permission"`` -> ``"allow"``, ``"once"``, ``"deny"`` or ``"ask"`` (as is the rest)."""
    pending: tuple[Interruption, ...] = ()
    """Interruptions to come, the first one first."""

    def interruption(self, device: Device) -> Interruption | None:
        """The interruption over the present screen."""
        if not self.pending:
            return None
        first = self.pending[0]
        if device.moves < first.due:
            return None
        if first.app and (not device.stack or device.stack[0].app != first.app):
            return None
        return first

    def granted(self, key: str, value: str) -> System:
        """With another answer to a question for a permission."""
        return msgspec.structs.replace(self, grants={**self.grants, key: value})

    def settled(self) -> System:
        """With the first interruption over."""
        return msgspec.structs.replace(self, pending=self.pending[1:])

    def notified(self, identity: int, notice: Notice) -> System:
        """With one more notification."""
        return msgspec.structs.replace(self, notices={**self.notices, identity: notice})

    def dismiss(self, *identities: int) -> System:
        """With notifications moved to the history."""
        gone = {key: self.notices[key] for key in identities}
        left = {key: value for key, value in self.notices.items() if key not in gone}
        return msgspec.structs.replace(self, notices=left, dismissed={**self.dismissed, **gone})

    def put_back(self, identity: int) -> System:
        """With a notification of the history shown again."""
        left = {key: value for key, value in self.dismissed.items() if key != identity}
        back = {**self.notices, identity: self.dismissed[identity]}
        return msgspec.structs.replace(self, notices=back, dismissed=left)
