"""The goal of a task as conditions on the device, and the differences between a device and a goal.

The success check has one rule for all tasks: **the conditions of the goal are fulfilled, and
everything else is unchanged since the start.**

- An existing record has the values it had, except those that the goal changes or deletes. Case and
  repeated spaces do not count.
- There are as many new records as the goal asks for. A new record has the values that the goal
  gives, and its switches have the defaults of the app unless the goal says otherwise. Other fields
  of its form may have any value.
- Every setting has its initial value, except those that the goal sets.
- If there are several answers, the last one counts. In a task that asks no question, an answer has
  no effect.
- Copied values and the current screen may change, unless the goal has a condition on them.
- A task that cannot be done is solved by declaring it infeasible while all of this is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.environments.phone.effects import Flip, Remove, Save, SetSetting
from swarm_ui.environments.phone.state import (
    Device,
    Effect,
    Path,
    Row,
    Rows,
    Screen,
    Table,
    same_text,
)


class Source(msgspec.Struct, frozen=True):
    """The record field to copy a value from before it is written elsewhere."""

    table: str
    row: int
    field: str
    value: str


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one record: it is created, changed, or deleted."""

    table: str
    row: int = 0
    """Identity of the record; 0: a new one."""
    fields: Row = {}
    """Values that it has in the end."""
    gone: bool = False
    """It is deleted."""
    source: Source | None = None
    """The value to look up before the form is filled."""
    path: Path = ()
    """Screens to the form of a new record; empty: the form of the table."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The end state of a task."""

    records: tuple[Want, ...] = ()
    settings: Row = {}
    """Switches and choices of the device with their values."""
    front: Path = ()
    """The first screen of an app that is in the foreground, or all screens to the one that must be
    current."""
    answer: str | None = None
    """The right answer; ``None`` if the task asks no question."""
    look: Path = ()
    """Screens to the evidence: the answer, or the list that lacks the record of the goal."""
    infeasible: bool = False
    """The goal cannot be reached; the right final action is ``infeasible``."""

    def answered(self, device: Device) -> bool:
        """Whether the right answer was given, or none is asked for."""
        if self.answer is None:
            return True
        return device.answer is not None and same_text(device.answer, self.answer)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What is not yet as the goal wants it, and how to make it so: go to a screen, fill its form,
    and tap a widget."""

    path: Path
    tap: Effect | None = None
    """The tap that settles the difference; ``None`` if it is enough to open the screen."""
    fields: Mapping[str, str] = {}
    """The values of the form before the tap."""
    source: Source | None = None
    """The value to look up before the form is filled."""


def check(goal: Goal, start: Device, now: Device) -> list[Difference]:
    """What is unlike the goal on a device that was ``start``; empty if the goal is reached.

    The answer to a question is not looked at: see :meth:`Goal.answered`.
    """
    found: list[Difference] = []
    catalogue = start.catalogue
    if goal.settings or now.settings is not start.settings:
        found.extend(
            Difference(path=catalogue.places[key].path, tap=SetSetting(key, value))
            for key, value in {**start.settings, **goal.settings}.items()
            if now.settings[key] != value
        )
    named = {want.table for want in goal.records}
    for name, rows in now.tables.items():
        before = start.tables[name]
        if rows is not before or name in named:
            wants = [want for want in goal.records if want.table == name]
            found.extend(_records(catalogue.tables[name], before, rows, wants))
    if not found and goal.front and not _in_front(now, goal.front):
        found.append(Difference(path=goal.front))  # last, as the others leave the screen
    return found


def _in_front(now: Device, path: Path) -> bool:
    """Whether the app, or the screen of the app, is current."""
    if len(path) == 1:
        return now.stack[:1] != () and now.stack[0].app == path[0].app
    return now.stack[-1:] == path[-1:]


def _records(table: Table, before: Rows, rows: Rows, wants: Sequence[Want]) -> list[Difference]:
    """The differences between a table and the conditions on it."""
    found: list[Difference] = []
    named = {want.row: want for want in wants if want.row}
    unset = {field.name: field.default for field in table.switches}
    missing = [
        msgspec.structs.replace(want, fields={**unset, **want.fields})
        for want in wants
        if not want.row
    ]
    for key, row in before.items():
        now, want = rows.get(key), named.get(key)
        wanted = {**row, **want.fields} if want else row
        if want and want.gone:
            found.extend([_delete(table, key)] if now is not None else [])
        elif now is None:
            missing.append(Want(table=table.name, fields=wanted))
        elif now is not wanted:
            found.extend(_edit(table, key, now, wanted, want.source if want else None))
    found.extend(_match(table, rows, {k: r for k, r in rows.items() if k not in before}, missing))
    return found


def _match(table: Table, rows: Rows, extra: Rows, missing: list[Want]) -> list[Difference]:
    """Change surplus records into missing ones, delete the others, and create the rest."""
    found: list[Difference] = []
    left = dict(extra)
    exactly = tuple(field.name for field in table.form)
    # Those that are right come first, then those that can be made so.
    for names in (exactly, ()) if table.edit else (exactly,):
        for key, row in tuple(left.items()):
            like = next((want for want in missing if _alike(table, row, want, names)), None)
            if like is not None:
                del left[key]
                missing.remove(like)
                found.extend(_edit(table, key, row, like.fields, None if names else like.source))
    found.extend(_delete(table, key) for key in left)
    for want in missing:
        reachable = want.path and want.path[-1].row in rows
        found.append(
            Difference(
                path=want.path if reachable else table.path("new"),
                tap=Save(table),
                fields={f.name: want.fields[f.name] for f in table.form if f.name in want.fields},
                source=want.source,
            )
        )
    return found


def _alike(table: Table, row: Row, want: Want, names: Sequence[str]) -> bool:
    """Whether a record has the wanted values in the fields ``names`` and in those that cannot be
    edited."""
    editable = {field.name for field in table.fields}
    return all(
        same_text(row[name], value)
        for name, value in want.fields.items()
        if name in names or name not in editable
    )


def _edit(
    table: Table, key: int, row: Row, wanted: Row, source: Source | None = None
) -> list[Difference]:
    """What gives a record the wanted values."""
    found: list[Difference] = []
    path = table.path("detail", key)
    fields = {f.name: wanted[f.name] for f in table.form if f.name in wanted}
    if not all(same_text(row[name], value) for name, value in fields.items()):
        form = (*path, Screen(table.app, "edit", table.name, key))
        found.append(Difference(path=form, tap=Save(table, key), fields=fields, source=source))
    for field in table.switches:
        if field.name in wanted and row[field.name] != wanted[field.name]:
            at = table.trail if table.checklist else path
            found.append(Difference(path=at, tap=Flip(table, key, field.name)))
    return found


def _delete(table: Table, key: int) -> Difference:
    return Difference(path=table.path("confirm", key), tap=Remove(table, key))
