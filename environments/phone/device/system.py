"""The system UI of a full device: home screen, notifications, permissions, interruptions.

A device without a :class:`System` is the core device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.screen import Path, Screen

DRAWER = Screen("system", "drawer")
"""All installed apps."""
SHADE = Screen("system", "shade")
"""The notifications, over the screen in front."""
HISTORY = Screen("system", "history")
"""The notifications that were opened or dismissed."""

SYSTEM_TITLES: Mapping[str, str] = {
    "drawer": "all apps",
    "shade": "notifications",
    "history": "notification history",
    "updating": "system update",
    "store": "store",
}
"""Kind of screen -> title."""

PERMISSIONS: Mapping[str, str] = {
    "camera": "take pictures and record video",
    "microphone": "record audio",
    "location": "access the location of this device",
    "contacts": "access your contacts",
}
"""Permission -> its description in the request."""


class Notice(msgspec.Struct, frozen=True):
    """A notification."""

    app: str
    title: str
    text: str
    path: Path
    """The screens that a tap on it opens."""


InterruptionKind = Literal["update", "rating", "battery"]


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """A dialog that appears by itself and stays until it is answered."""

    kind: InterruptionKind
    due: int
    """It appears after this many screen changes (:attr:`Device.moves`)."""
    app: str = ""
    """The app in which it appears; empty: all."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the system UI. It is immutable: the methods return changed copies."""

    favorites: tuple[str, ...]
    """Apps on the home screen; the others are only in the drawer."""
    clock: str
    battery: str
    """Per cent."""
    notices: Mapping[int, Notice] = {}
    dismissed: Mapping[int, Notice] = {}
    grants: Mapping[str, str] = {}
    """``"app permission"`` -> ``"allow"``, ``"once"``, ``"deny"`` or ``"ask"`` (the default)."""
    pending: tuple[Interruption, ...] = ()
    """Future interruptions, in order."""

    def granted(self, key: str, value: str) -> System:
        """With another answer to a permission request."""
        return msgspec.structs.replace(self, grants={**self.grants, key: value})

    def settled(self) -> System:
        """Without the first interruption."""
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
        """With a notification restored from the history."""
        left = {key: value for key, value in self.dismissed.items() if key != identity}
        back = {**self.notices, identity: self.dismissed[identity]}
        return msgspec.structs.replace(self, notices=back, dismissed=left)
