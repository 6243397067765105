"""The difference between a device and the goal of a task, as a list of subgoals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.environments.phone.apps import catalogue_of
from swarm_ui.environments.phone.apps.files import FILE, TRASH, file_path
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import HISTORY, SHADE, Device, Row, Rows
from swarm_ui.environments.phone.device.effects import (
    DismissNotices,
    Flip,
    Grant,
    Insert,
    Remove,
    RestoreNotice,
    SetSetting,
    Trash,
    Update,
    system_of,
)
from swarm_ui.environments.phone.device.schema import Table, same_text
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Effect
from swarm_ui.environments.phone.tasks.goal import (
    AppInFront,
    Change,
    Configure,
    Create,
    Delete,
    Dismiss,
    Goal,
    Permit,
    ScreenInFront,
    Source,
)
from swarm_ui.environments.phone.ui.interruptions import is_visible

RecordWants = Sequence[Create | Change | Delete]


class Subgoal(msgspec.Struct, frozen=True, kw_only=True):
    """Go to a screen, fill its form, and tap a widget."""

    path: Path
    tap: Effect | None = None
    """The tap that completes the subgoal; ``None`` if it is enough to open the screen."""
    fields: Mapping[str, str] = {}
    """The values of the form before the tap."""
    source: Source | None = None
    """A value to look up before the form is filled."""


def subgoals(goal: Goal, start: Device, now: Device) -> list[Subgoal]:
    """The subgoals between ``now`` and the goal; empty if the goal is reached.

    This is the success check; :mod:`swarm_ui.environments.phone.tasks.goal` states its rule.
    """
    found: list[Subgoal] = []
    records: dict[str, list[Create | Change | Delete]] = {}
    settings, catalogue = start.settings, catalogue_of(start)
    front: list[Path] = []
    system: list[Permit | Dismiss] = []
    for want in goal.wants:
        if isinstance(want, Configure):
            settings = {**settings, want.key: want.value}
        elif isinstance(want, AppInFront):
            front.append((Screen(want.app),))
        elif isinstance(want, ScreenInFront):
            front.append(want.path)
        elif isinstance(want, Permit | Dismiss):
            system.append(want)
        else:
            records.setdefault(want.table, []).append(want)
    if settings is not now.settings:
        found.extend(
            Subgoal(path=catalogue.places[key].path, tap=SetSetting(key, value))
            for key, value in settings.items()
            if now.settings[key] != value
        )
    for name, rows in now.tables.items():
        wants = records.get(name, ())
        before = start.tables[name]
        if wants or rows is not before:
            found.extend(_records(catalogue.tables[name], before, rows, wants))
    if system or now.system is not start.system:
        found.extend(_system(system, start, now))
    if not found:  # last, as the others leave the screen
        found.extend(Subgoal(path=path) for path in front if not _in_front(now, path))
    return found


def _in_front(now: Device, path: Path) -> bool:
    """Whether the app, or the screen of the app, is current, without a dialog over it."""
    if len(path) == 1:
        return now.stack[:1] != () and now.stack[0].app == path[0].app
    return now.stack[-1:] == path[-1:] and is_visible(now)


def _records(table: Table, before: Rows, rows: Rows, wants: RecordWants) -> list[Subgoal]:
    """The subgoals that fulfil the conditions on a table. A file in the trash counts as deleted."""
    found: list[Subgoal] = []
    gone = {want.row: want for want in wants if isinstance(want, Delete)}
    changed = {want.row: want for want in wants if isinstance(want, Change)}
    unset = {field.name: field.default for field in table.switches}
    missing = [
        msgspec.structs.replace(want, fields={**unset, **want.fields})
        for want in wants
        if isinstance(want, Create)
    ]
    for key, row in before.items():
        now = rows.get(key)
        change = changed.get(key)
        wanted = {**row, **change.fields} if change else row
        if key in gone:
            if now is not None and not _in_trash(now):
                found.append(_delete(table, key, now, gone[key].via))
        elif now is None:
            missing.append(Create(table=table.name, fields=wanted))
        elif change is not None:
            found.extend(_edit(table, key, now, wanted, change.source, change.via))
        elif now is not row:
            found.extend(_edit(table, key, now, row))
    extra = {k: row for k, row in rows.items() if k not in before and not _in_trash(row)}
    found.extend(_match(table, rows, extra, missing))
    return found


def _match(table: Table, rows: Rows, extra: Rows, missing: list[Create]) -> list[Subgoal]:
    """Subgoals that change surplus records into missing ones, or delete or create records."""
    found: list[Subgoal] = []
    left = dict(extra)
    exactly = tuple(f.name for f in (table.fields if table is FILE else table.form))
    # Those that are right come first, then those that can be made so.
    for names in (exactly, ()) if table.edit else (exactly,):
        for key, row in tuple(left.items()):
            like = next((want for want in missing if _alike(table, row, want, names)), None)
            if like is not None:
                del left[key]
                missing.remove(like)
                wanted = {**row, **like.fields} if table is FILE else like.fields
                found.extend(_edit(table, key, row, wanted, None if names else like.source))
    found.extend(_delete(table, key, row) for key, row in left.items())
    for want in missing:
        path, tap, fields = want.path, want.tap, want.form
        if tap is None:
            path = path if path and path[-1].row in rows else table.path("new")
            fields = {f.name: want.fields[f.name] for f in table.form if f.name in want.fields}
            tap = Insert(table)
        found.append(Subgoal(path=path, tap=tap, fields=fields, source=want.source))
    return found


def _alike(table: Table, row: Row, want: Create, names: Sequence[str]) -> bool:
    """Whether a record has the wanted values in the fields ``names`` and in those that cannot be
    edited."""
    editable = {field.name for field in table.fields}
    return all(
        same_text(row[name], value)
        for name, value in want.fields.items()
        if name in names or name not in editable
    )


def _edit(
    table: Table, key: int, row: Row, wanted: Row, source: Source | None = None, via: str = ""
) -> list[Subgoal]:
    """Subgoals that give a record the wanted values."""
    found: list[Subgoal] = []
    path = _path(table, key, row, via)
    if _in_trash(row) or _in_trash(wanted):
        if _in_trash(row):
            return [] if _in_trash(wanted) else [Subgoal(path=path, tap=Trash(key, restore=True))]
        return [_delete(table, key, row, via)]
    fields = {f.name: wanted[f.name] for f in table.form if f.name in wanted}
    if not all(same_text(row[name], value) for name, value in fields.items()):
        form = (*path, Screen(path[0].app, "edit", table.name, key))
        found.append(Subgoal(path=form, tap=Update(table, key), fields=fields, source=source))
    for field in table.switches:
        if field.name in wanted and row[field.name] != wanted[field.name]:
            at = table.trail if table.checklist else path
            found.append(Subgoal(path=at, tap=Flip(table, key, field.name)))
    return found


def _delete(table: Table, key: int, row: Row, via: str = "") -> Subgoal:
    if table is not FILE:
        return Subgoal(path=table.path("confirm", key), tap=Remove(table, key))
    path = _path(table, key, row, via)
    return Subgoal(path=(*path, Screen(path[0].app, "confirm", "file", key)), tap=Trash(key))


def _path(table: Table, key: int, row: Row, via: str) -> Path:
    """Screens to a record; several apps show files."""
    return file_path(key, row, via or "files") if table is FILE else table.path("detail", key)


def _in_trash(row: Row) -> bool:
    return row.get("folder") == TRASH


def _system(wants: Sequence[Permit | Dismiss], start: Device, now: Device) -> list[Subgoal]:
    """The subgoals for permissions and notifications."""
    here, before = system_of(now), system_of(start)
    gone = {want.notice for want in wants if isinstance(want, Dismiss)}
    found = [
        Subgoal(path=grant_path(want.key), tap=Grant(want.key, want.value))
        for want in wants
        if isinstance(want, Permit) and here.grants.get(want.key, "ask") != want.value
    ]
    if here.notices is before.notices and not gone:
        return found
    found.extend(
        Subgoal(path=(SHADE,), tap=DismissNotices((key,))) for key in gone if key in here.notices
    )
    read = frozenset() if gone else here.read
    found.extend(
        Subgoal(path=(SHADE, HISTORY), tap=RestoreNotice(key))
        for key in before.notices
        if key not in gone and key not in here.notices and key not in read
    )
    return found
