"""The difference between a device and the goal of a task, as a list of subgoals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarm_ui.environments.phone.apps import PLACES, TABLES
from swarm_ui.environments.phone.device.device import Device, Row, Rows
from swarm_ui.environments.phone.device.effects import (
    Flip,
    FlipSetting,
    Insert,
    Remove,
    SetSetting,
    Update,
)
from swarm_ui.environments.phone.device.schema import Table, same_text
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.expert.file_subgoals import file_subgoals
from swarm_ui.environments.phone.expert.subgoal import Subgoal
from swarm_ui.environments.phone.expert.system_subgoals import system_subgoals
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
        found.extend(_setting(k, v) for k, v in settings.items() if now.settings[k] != v)
    for name, rows in now.tables.items():
        wants = records.get(name, ())
        before = start.tables[name]
        if name == "file":
            if wants or rows is not before:
                found.extend(file_subgoals(before, rows, wants))
        elif wants or rows is not before:
            found.extend(_table(TABLES[name], before, rows, wants))
    if front and not found and (not now.stack or now.stack[0].app != front):
        found.append(Subgoal(path=(Screen(front),)))  # last: other subgoals would leave the app
    return [*found, *system_subgoals(system, start, now, found)] if system else found


def _setting(key: str, value: str) -> Subgoal:
    place = PLACES[key]
    switch = place.choices == ("off", "on")
    return Subgoal(path=place.path, tap=FlipSetting(key) if switch else SetSetting(key, value))


def _table(
    table: Table, before: Rows, rows: Rows, wants: Sequence[Create | Change | Delete]
) -> list[Subgoal]:
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
