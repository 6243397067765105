"""The state of a simulated Android device: data of all apps, settings, and the current screen.

The device does not depend on apps or tasks. Containers are replaced and never changed in place, so
that copies share them and a copy takes a microsecond. A device without a :class:`System` is the
core device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.screen import Path, Screen

Row = Mapping[str, str]
"""One record; switches and check boxes hold ``"on"`` or ``"off"``."""
Rows = Mapping[int, Row]
"""Records of a table by identity, oldest first."""

DRAWER = Screen("system", "drawer")
"""The screen of the drawer, with all installed apps."""
SHADE = Screen("system", "shade")
"""The screen of the notifications, which opens over the current screen."""
HISTORY = Screen("system", "history")
"""The screen with the notifications that were opened or dismissed."""

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
    """Number of screen changes (:attr:`Device.moves`) after which it appears."""
    app: str = ""
    """The app in which it appears; empty: all."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the system UI. It is immutable: the methods return changed copies."""

    favorites: tuple[str, ...]
    """Apps on the home screen; the others are only in the drawer."""
    clock: str
    battery: str
    """Level of the battery in per cent."""
    notices: Mapping[int, Notice] = {}
    dismissed: Mapping[int, Notice] = {}
    """The history: notifications that were dismissed or opened."""
    read: frozenset[int] = frozenset()
    """Notifications that were opened."""
    grants: Mapping[str, str] = {}
    """``"app permission"`` -> ``"allow"``, ``"once"``, ``"deny"`` or ``"ask"`` (the default)."""
    pending: tuple[Interruption, ...] = ()
    """Future interruptions, in order."""

    def granted(self, key: str, value: str) -> System:
        """A copy with another answer to a permission request."""
        return msgspec.structs.replace(self, grants={**self.grants, key: value})

    def settled(self) -> System:
        """A copy without the first pending interruption, which was answered."""
        return msgspec.structs.replace(self, pending=self.pending[1:])

    def notified(self, identity: int, notice: Notice) -> System:
        """A copy with one more notification."""
        return msgspec.structs.replace(self, notices={**self.notices, identity: notice})

    def dismiss(self, *identities: int) -> System:
        """A copy with notifications moved to the history."""
        gone = {key: self.notices[key] for key in identities}
        left = {key: value for key, value in self.notices.items() if key not in gone}
        return msgspec.structs.replace(self, notices=left, dismissed={**self.dismissed, **gone})

    def put_back(self, identity: int) -> System:
        """A copy with a notification restored from the history."""
        left = {key: value for key, value in self.dismissed.items() if key != identity}
        back = {**self.notices, identity: self.dismissed[identity]}
        return msgspec.structs.replace(self, notices=back, dismissed=left)


class Device:
    """The stored data, and the screen that the user sees."""

    __slots__ = (
        "answer",
        "catalogue",
        "copied",
        "draft",
        "focus",
        "installed",
        "moves",
        "next_row",
        "page",
        "settings",
        "stack",
        "system",
        "tables",
        "toast",
    )

    def __init__(self, installed: tuple[str, ...] = (), catalogue: object = None) -> None:
        self.catalogue = catalogue
        """The definitions of its apps, read with
        :func:`swarm_ui.environments.phone.apps.catalogue_of`; ``None``: the phone's own apps."""
        self.installed = installed
        """Apps on the home screen."""
        self.settings: Mapping[str, str] = {}
        self.tables: Mapping[str, Rows] = {}
        self.stack: Path = ()
        self.draft: Row = {}
        """Contents of the current form; cleared when the screen is left."""
        self.page = 0
        """The page of the current list."""
        self.copied: tuple[str, ...] = ()
        """All copied values, oldest first."""
        self.toast = ""
        """A short message that is shown until the next action."""
        self.answer: str | None = None
        self.next_row = 1
        self.system: System | None = None
        """The system UI of a full device; ``None`` on a core device."""
        self.focus = ""
        """Field that the on-screen keyboard types into; empty: no keyboard is shown."""
        self.moves = 0
        """Number of screen changes; decides when an interruption is due."""

    def clone(self) -> Device:
        """An independent copy."""
        copy = Device.__new__(Device)
        copy.catalogue = self.catalogue
        copy.installed = self.installed
        copy.settings = self.settings
        copy.tables = self.tables
        copy.stack = self.stack
        copy.draft = self.draft
        copy.page = self.page
        copy.copied = self.copied
        copy.toast = self.toast
        copy.answer = self.answer
        copy.next_row = self.next_row
        copy.system = self.system
        copy.focus = self.focus
        copy.moves = self.moves
        return copy

    @property
    def screen(self) -> Screen | None:
        """The current screen; ``None`` on the home screen."""
        return self.stack[-1] if self.stack else None

    def show(self, stack: Path, draft: Row | None = None) -> None:
        """Bring a screen to the front, unscrolled, its form filled with ``draft``."""
        self.stack = stack
        self.draft = draft or {}
        self.page = 0
        self.focus = ""
        self.moves += 1

    def back(self) -> None:
        self.show(self.stack[:-1])

    def insert(self, table: str, row: Row) -> int:
        """Add a record; return its identity."""
        identity = self.next_row
        self.next_row = identity + 1
        self.tables = {**self.tables, table: {**self.tables.get(table, {}), identity: row}}
        return identity

    def update(self, table: str, identity: int, changes: Row) -> None:
        rows = self.tables[table]
        row = {**rows[identity], **changes}
        self.tables = {**self.tables, table: {**rows, identity: row}}

    def remove(self, table: str, identity: int) -> None:
        rows = {key: row for key, row in self.tables[table].items() if key != identity}
        self.tables = {**self.tables, table: rows}

    def set(self, key: str, value: str) -> None:
        self.settings = {**self.settings, key: value}
