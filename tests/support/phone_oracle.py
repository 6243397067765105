"""The phone's success rule once more, as a plain comparison of states that knows no solver."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_ui.environments.phone.apps import TABLES
from swarm_ui.environments.phone.device.device import Device, Row
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
)


def is_solved(goal: Goal, start: Device, now: Device) -> bool:
    """Whether a task is done and nothing else is changed; the declaration is not looked at."""
    answered = goal.answer is None or _text(now.answer or "") == _text(goal.answer)
    return (
        answered
        and _settings(goal, start) == dict(now.settings)
        and all(_records_are_right(goal, start, now, table) for table in start.tables)
        and _system_is_right(goal, start, now)
        and _front_is_right(goal, now)
    )


def _text(value: str) -> str:
    return " ".join(value.casefold().split())


def _settings(goal: Goal, start: Device) -> dict[str, str]:
    set_ = {want.key: want.value for want in goal.wants if isinstance(want, Configure)}
    return {**start.settings, **set_}


def _records_are_right(goal: Goal, start: Device, now: Device, table: str) -> bool:
    """Every wanted record is there, each once, and no other."""
    fields = TABLES[table].fields
    gone = {want.row for want in goal.wants if isinstance(want, Delete) and want.table == table}
    changed = {w.row: w.fields for w in goal.wants if isinstance(w, Change) and w.table == table}
    left = {k: row for k, row in now.tables[table].items() if row.get("folder") != "trash"}
    missing: list[Row] = []
    for key, row in start.tables[table].items():
        if key in gone or (row.get("folder") == "trash" and key not in changed):
            continue
        wanted = {field.name: {**row, **changed.get(key, {})}[field.name] for field in fields}
        if key in left and _fits(left[key], wanted):
            del left[key]
        else:
            missing.append(wanted)  # a new record may have taken its place
    unset = {field.name: field.default for field in fields if field.kind == "switch"}
    for want in goal.wants:
        if isinstance(want, Create) and want.table == table:
            missing.append({**unset, **want.fields})
    for wanted in sorted(missing, key=len, reverse=True):
        like = next((key for key, row in left.items() if _fits(row, wanted)), None)
        if like is None:
            return False
        del left[like]
    return not left


def _fits(row: Row, fields: Row) -> bool:
    return all(_text(row[name]) == _text(value) for name, value in fields.items())


def _system_is_right(goal: Goal, start: Device, now: Device) -> bool:
    if now.system is None or start.system is None:
        return True
    gone = {want.notice for want in goal.wants if isinstance(want, Dismiss)}
    may_go: Iterable[int] = gone if gone else now.system.read
    for key in start.system.notices:
        there = key in now.system.notices
        if (key in gone and there) or (not there and key not in gone and key not in may_go):
            return False
    permits = [want for want in goal.wants if isinstance(want, Permit)]
    return all(now.system.grants[want.key] == want.value for want in permits)


def _front_is_right(goal: Goal, now: Device) -> bool:
    for want in goal.wants:
        if isinstance(want, AppInFront) and (not now.stack or now.stack[0].app != want.app):
            return False
        if isinstance(want, ScreenInFront) and now.stack[-1:] != want.path[-1:]:
            return False
    return True
