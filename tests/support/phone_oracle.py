"""The phone's success rule once more, as a plain comparison of states that knows no solver."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import PHONE
from swarm_ui.environments.phone.goal import (
    Change,
    Configure,
    Create,
    Delete,
    Goal,
    InFront,
)
from swarm_ui.environments.phone.state import Device, Row


def is_solved(goal: Goal, start: Device, now: Device) -> bool:
    """Whether a task is done and nothing else is changed; the declaration is not looked at."""
    answered = goal.answer is None or _text(now.answer or "") == _text(goal.answer)
    return (
        answered
        and _settings(goal, start) == dict(now.settings)
        and all(_records_are_right(goal, start, now, table) for table in start.tables)
        and _front_is_right(goal, now)
    )


def _text(value: str) -> str:
    return " ".join(value.casefold().split())


def _settings(goal: Goal, start: Device) -> dict[str, str]:
    set_ = {want.key: want.value for want in goal.wants if isinstance(want, Configure)}
    return {**start.settings, **set_}


def _records_are_right(goal: Goal, start: Device, now: Device, table: str) -> bool:
    """Every wanted record is there, each once, and no other."""
    fields = PHONE.tables[table].fields
    gone = {want.row for want in goal.wants if isinstance(want, Delete) and want.table == table}
    changed = {w.row: w.fields for w in goal.wants if isinstance(w, Change) and w.table == table}
    left = dict(now.tables[table])
    missing: list[Row] = []
    for key, row in start.tables[table].items():
        if key in gone:
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


def _front_is_right(goal: Goal, now: Device) -> bool:
    for want in goal.wants:
        if isinstance(want, InFront) and len(want.path) == 1:
            if not now.stack or now.stack[0].app != want.path[0].app:
                return False
        elif isinstance(want, InFront) and now.stack[-1:] != want.path[-1:]:
            return False
    return True
