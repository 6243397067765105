"""State of a simulated Android device: data of all apps, settings, and the screen in front.

The device knows nothing of particular apps or tasks. All containers are replaced, never changed in
place, so that a copy shares them and costs a microsecond.
"""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.system import System

Row = Mapping[str, str]
"""One record; switches and check boxes hold ``"on"`` or ``"off"``."""
Rows = Mapping[int, Row]
"""Records of a table by identity, oldest first."""


class Device:
    """A phone: what is stored on it, and where its user is."""

    __slots__ = (
        "answer",
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

    def __init__(self, installed: tuple[str, ...] = ()) -> None:
        self.installed = installed
        """Apps on the home screen."""
        self.settings: Mapping[str, str] = {}
        self.tables: Mapping[str, Rows] = {}
        self.stack: Path = ()
        self.draft: Row = {}
        """Contents of the form in front; given up when the screen is left."""
        self.page = 0
        """How far the list in front is scrolled."""
        self.copied: tuple[str, ...] = ()
        """Everything copied so far, oldest first."""
        self.toast = ""
        """Short message that is shown until the next action."""
        self.answer: str | None = None
        self.next_row = 1
        self.system: System | None = None
        """What a whole phone has system its apps; ``None``: home screen and apps are all."""
        self.focus = ""
        """Field that the on-screen keyboard types into; empty: no keyboard is shown."""
        self.moves = 0
        """How often another screen came to the front; decides when an interruption is due."""

    def clone(self) -> Device:
        """An independent copy."""
        copy = Device.__new__(Device)
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
        """The screen in front; ``None`` at home."""
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
        """Add a record; returns its identity."""
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
