"""The goal of a task, as conditions on the device for success check and solver.

The success check has one rule for all tasks: **the conditions of the goal are fulfilled, and
everything else is unchanged since the start.**

- An existing record has the values it had, except those that the goal changes or deletes. Case and
  repeated spaces do not count. A file in the trash counts as deleted.
- There are as many new records as the goal asks for. A new record has the values that the goal
  gives, and its switches have the defaults of the app unless the goal says otherwise. Other fields
  of its form may have any value.
- Every setting has its initial value, except those that the goal sets.
- Every initial notification still exists, except those that the goal dismisses. A notification that
  was opened counts as read, not as dismissed, unless the goal is about dismissing notifications.
- If there are several answers, the last one counts. In a task that asks no question, an answer has
  no effect.
- Permissions, copied values, new notifications and the current screen may change, unless the goal
  has a condition on them.
- A task that cannot be done is solved by declaring it infeasible while all of this is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from swarm_ui.environments.phone.device.device import Row
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Path
from swarm_ui.environments.phone.device.widget import Effect


class Source(msgspec.Struct, frozen=True):
    """The record field to copy a value from before it is written elsewhere."""

    table: str
    row: int
    field: str
    value: str

    @staticmethod
    def of(table: Table, row: int, record: Row, field: str) -> Source:
        return Source(table=table.name, row=row, field=field, value=record[field])


class Create(msgspec.Struct, frozen=True, kw_only=True):
    """There is a new record with these values."""

    table: str
    fields: Mapping[str, str]
    source: Source | None = None
    path: Path = ()
    """Screens to the form; empty: the form of the table."""
    tap: Effect | None = None
    """The effect that creates the record; ``None``: saving the form."""
    form: Mapping[str, str] = {}
    """Values of the form before ``tap``."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """An existing record has these values."""

    table: str
    row: int
    fields: Mapping[str, str]
    source: Source | None = None
    via: str = ""
    """The app to use, for records that several apps show."""


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """A record is deleted."""

    table: str
    row: int
    via: str = ""


class Configure(msgspec.Struct, frozen=True, kw_only=True):
    """A setting has this value."""

    key: str
    value: str


class AppInFront(msgspec.Struct, frozen=True, kw_only=True):
    """An app is in the foreground."""

    app: str


class ScreenInFront(msgspec.Struct, frozen=True, kw_only=True):
    """A screen is current, without a dialog over it."""

    path: Path


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """A permission such as ``"maps location"`` has this value."""

    key: str
    value: Literal["ask", "allow", "deny"]


class Dismiss(msgspec.Struct, frozen=True, kw_only=True):
    """A notification is dismissed."""

    notice: int


Want = Create | Change | Delete | Configure | AppInFront | ScreenInFront | Permit | Dismiss


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The end state of a task."""

    words: Mapping[str, str]
    """Values for the placeholders of the goal text."""
    wants: tuple[Want, ...] = ()
    answer: str | None = None
    """The right answer; ``None`` if the task asks no question."""
    look: Path = ()
    """Screens to the evidence: the answer, or the list that lacks the record of the goal."""
    sources: tuple[Source, ...] = ()
    """Values to look up before the answer."""
    infeasible: bool = False
    """The goal cannot be reached; the right final action is ``infeasible``."""
