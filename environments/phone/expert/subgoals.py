"""The difference between a device and the goal of a task, as a list of subgoals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.environments.phone.apps import PLACES, TABLES
from swarm_ui.environments.phone.apps.files import FILE, TRASH, file_path
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import Device, Row, Rows
from swarm_ui.environments.phone.device.effects import (
    DismissNotices,
    Flip,
    Grant,
    Insert,
    MoveToTrash,
    Remove,
    RestoreFile,
    RestoreNotice,
    SetSetting,
    Update,
    system_of,
)
from swarm_ui.environments.phone.device.schema import Table, same_text
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.system import HISTORY, SHADE
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

_EDITABLE = ("name", "folder", "starred")
"""Fields of a file that can be edited."""
RecordWants = Sequence[Create | Change | Delete]


class Subgoal(msgspec.Struct, frozen=True, kw_only=True):
    """Go to a screen, fill its form, and tap a widget."""

    path: Path
    tap: Effect | None = None
    """The tap that completes it; ``None`` if it is enough to open the screen."""
    fields: Mapping[str, str] = {}
    """The values of the form before the tap."""
    source: Source | None = None
    """A value to look up before the form is filled."""


def subgoals(goal: Goal, start: Device, now: Device) -> list[Subgoal]:
    """The subgoals between ``now`` and the goal; empty if the goal is reached."""
    found: list[Subgoal] = []
    records: dict[str, list[Create | Change | Delete]] = {}
    settings = start.settings
    front = ""
    system: list[ScreenInFront | Permit | Dismiss] = []
    for want in goal.wants:
        if isinstance(want, Configure):
            settings = {**settings, want.key: want.value}
        elif isinstance(want, AppInFront):
            front = want.app
        elif isinstance(want, (ScreenInFront, Permit, Dismiss)):
            system.append(want)
        else:
            records.setdefault(want.table, []).append(want)
    if settings is not now.settings:
        found.extend(
            Subgoal(path=PLACES[key].path, tap=SetSetting(key, value))
            for key, value in settings.items()
            if now.settings[key] != value
        )
    for name, rows in now.tables.items():
        wants = records.get(name, ())
        before = start.tables[name]
        if name == "file":
            if wants or rows is not before:
                found.extend(_files(before, rows, wants))
        elif wants or rows is not before:
            found.extend(_table(TABLES[name], before, rows, wants))
    if front and not found and (not now.stack or now.stack[0].app != front):
        found.append(Subgoal(path=(Screen(front),)))  # last: other subgoals would leave the app
    return [*found, *_system(system, start, now, found)] if system else found


def _table(table: Table, before: Rows, rows: Rows, wants: RecordWants) -> list[Subgoal]:
    found: list[Subgoal] = []
    gone = {want.row for want in wants if isinstance(want, Delete)}
    changed = {want.row: want for want in wants if isinstance(want, Change)}
    missing = [want for want in wants if isinstance(want, Create)]
    for key, row in before.items():
        change = changed.get(key)
        now = rows.get(key)
        if key in gone:
            if now is not None:
                found.append(_delete(table, key))
        elif now is None:
            fields = {**row, **change.fields} if change else row
            missing.append(Create(table=table.name, fields=fields))
        elif change is not None:
            found.extend(_edit(table, key, now, {**row, **change.fields}, change.source))
        elif now is not row:
            found.extend(_edit(table, key, now, row, None))
    extra = [key for key in rows if key not in before]
    found.extend(_match(table, rows, extra, missing))
    return found


def _match(table: Table, rows: Rows, extra: list[int], missing: list[Create]) -> list[Subgoal]:
    """Subgoals that change surplus records into missing ones, or delete or create records."""
    found: list[Subgoal] = []
    unlike: list[int] = []
    for key in extra:
        row = rows[key]
        like = next((want for want in missing if _matches(table, row, want.fields)), None)
        if like is None:
            unlike.append(key)
        else:
            missing.remove(like)
            found.extend(_edit(table, key, row, like.fields, None))
    for key in unlike:
        if missing and table.edit:
            want = missing.pop(0)
            found.extend(_edit(table, key, rows[key], want.fields, want.source))
        else:
            found.append(_delete(table, key))
    for want in missing:
        fields = {f.name: want.fields[f.name] for f in table.form if f.name in want.fields}
        reachable = want.path and want.path[-1].row in rows
        path = want.path if reachable else table.path("new")
        found.append(Subgoal(path=path, tap=Insert(table), fields=fields, source=want.source))
    return found


def _matches(table: Table, row: Row, fields: Row) -> bool:
    return all(same_text(row[f.name], fields[f.name]) for f in table.form if f.name in fields)


def _edit(
    table: Table, key: int, row: Row, wanted: Mapping[str, str], source: Source | None
) -> list[Subgoal]:
    """Subgoals that give a record the wanted values."""
    found: list[Subgoal] = []
    if not _matches(table, row, wanted):
        fields = {f.name: wanted[f.name] for f in table.form if f.name in wanted}
        path, tap = table.path("edit", key), Update(table, key)
        found.append(Subgoal(path=path, tap=tap, fields=fields, source=source))
    for field in table.switches:
        if field.name in wanted and row[field.name] != wanted[field.name]:
            path = table.trail if table.checklist else table.path("detail", key)
            found.append(Subgoal(path=path, tap=Flip(table, key, field.name)))
    return found


def _delete(table: Table, key: int) -> Subgoal:
    return Subgoal(path=table.path("confirm", key), tap=Remove(table, key))


def _files(before: Rows, rows: Rows, wants: RecordWants) -> list[Subgoal]:
    """The subgoals that fulfil the conditions on files. A file in the trash counts as deleted."""
    found: list[Subgoal] = []
    gone = {want.row: want for want in wants if isinstance(want, Delete)}
    changed = {want.row: want for want in wants if isinstance(want, Change)}
    for key, row in before.items():
        now = rows[key]
        if key in gone:
            if now["folder"] != TRASH:
                found.append(_trash(key, now, gone[key].via))
        elif key in changed:
            want = changed[key]
            found.extend(_mend(key, now, {**row, **want.fields}, want.via, want.source))
        elif now is not row:
            found.extend(_mend(key, now, row))
    missing = [want for want in wants if isinstance(want, Create)]
    extra = {k: row for k, row in rows.items() if k not in before and row["folder"] != TRASH}
    found.extend(_match_files(extra, missing))
    return found


def _match_files(extra: Rows, missing: list[Create]) -> list[Subgoal]:
    """Subgoals that create the missing files, or change new files into them."""
    found: list[Subgoal] = []
    left = dict(extra)
    for names in ((*_EDITABLE,), ()):  # those that are right first, then those that can be made so
        for want in tuple(missing):
            like = next((k for k, row in left.items() if _alike(row, want, names)), None)
            if like is not None:
                row = left.pop(like)
                missing.remove(want)
                found.extend(_mend(like, row, {**row, **want.fields}))
    found.extend(_trash(key, row) for key, row in left.items())
    for want in missing:
        found.append(Subgoal(path=want.path, tap=want.tap, fields=want.form, source=want.source))
    return found


def _alike(row: Row, want: Create, also: Sequence[str]) -> bool:
    """Whether a file has the wanted values in ``also`` and in the fields without an editor."""
    return all(
        same_text(row[name], value)
        for name, value in want.fields.items()
        if name in also or name not in _EDITABLE
    )


def _mend(
    key: int, now: Row, wanted: Row, via: str = "", source: Source | None = None
) -> list[Subgoal]:
    """Subgoals that give a file the wanted values."""
    path = file_path(key, now, via or "files")
    if wanted["folder"] == TRASH:
        return [] if now["folder"] == TRASH else [_trash(key, now, via)]
    if now["folder"] == TRASH:
        return [Subgoal(path=path, tap=RestoreFile(key))]
    found: list[Subgoal] = []
    fields = {name: wanted[name] for name in ("name", "folder")}
    if not all(same_text(now[name], value) for name, value in fields.items()):
        edit = (*path, Screen(path[0].app, "edit", "file", key))
        found.append(Subgoal(path=edit, tap=Update(FILE, key), fields=fields, source=source))
    if now["starred"] != wanted["starred"]:
        found.append(Subgoal(path=path, tap=Flip(FILE, key, "starred")))
    return found


def _trash(key: int, row: Row, via: str = "") -> Subgoal:
    path = file_path(key, row, via or "files")
    return Subgoal(path=(*path, Screen(path[0].app, "confirm", "file", key)), tap=MoveToTrash(key))


def _system(
    wants: Sequence[ScreenInFront | Permit | Dismiss],
    start: Device,
    now: Device,
    others: Sequence[Subgoal],
) -> list[Subgoal]:
    """The subgoals for these conditions; ``others`` come before the screen in front."""
    found: list[Subgoal] = []
    here, before = system_of(now), system_of(start)
    gone = {want.notice for want in wants if isinstance(want, Dismiss)}
    for want in wants:
        if isinstance(want, Permit) and here.grants.get(want.key, "ask") != want.value:
            tap = Grant(want.key, want.value)
            found.append(Subgoal(path=grant_path(want.key), tap=tap))
    if gone:
        found.extend(
            Subgoal(path=(SHADE,), tap=DismissNotices((key,)))
            for key in gone
            if key in here.notices
        )
        found.extend(
            Subgoal(path=(SHADE, HISTORY), tap=RestoreNotice(key))
            for key in before.notices
            if key not in gone and key not in here.notices
        )
    for want in wants:
        if not isinstance(want, ScreenInFront) or others or found:
            continue
        if now.stack[-1:] != want.path[-1:] or not is_visible(now):
            found.append(Subgoal(path=want.path))
    return found
