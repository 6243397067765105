"""Files as they should be: what several apps store in one place, and a trash that gives back."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.files import FILE, TRASH, file_path
from swarm_ui.environments.phone.device.device import Row, Rows
from swarm_ui.environments.phone.device.effects import Flip, Update
from swarm_ui.environments.phone.device.gestures import PutFileBack, Trash
from swarm_ui.environments.phone.goal import Change, Create, Delete, Repair, Source, same
from swarm_ui.environments.phone.ui.screen import Screen

_EDITABLE = ("name", "folder", "starred")


def file_repairs(
    before: Rows, rows: Rows, wants: Sequence[Create | Change | Delete]
) -> list[Repair]:
    """What separates the files from what is wanted of them. What is in the trash counts as gone."""
    found: list[Repair] = []
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
    found.extend(_match(extra, missing))
    return found


def _match(extra: Rows, missing: list[Create]) -> list[Repair]:
    """Repairs that make what is missing, out of new files as far as they will do."""
    found: list[Repair] = []
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
        found.append(Repair(path=want.path, tap=want.tap, fields=want.form, source=want.source))
    return found


def _alike(row: Row, want: Create, also: Sequence[str]) -> bool:
    """Whether a file is what is wanted in all that cannot be edited, and in ``also``."""
    return all(
        same(row[name], value)
        for name, value in want.fields.items()
        if name in also or name not in _EDITABLE
    )


def _mend(
    key: int, now: Row, wanted: Row, via: str = "", source: Source | None = None
) -> list[Repair]:
    """Repairs that bring a file that is wanted to its values."""
    path = file_path(key, now, via or "files")
    if wanted["folder"] == TRASH:
        return [] if now["folder"] == TRASH else [_trash(key, now, via)]
    if now["folder"] == TRASH:
        return [Repair(path=path, tap=PutFileBack(key))]
    found: list[Repair] = []
    fields = {name: wanted[name] for name in ("name", "folder")}
    if not all(same(now[name], value) for name, value in fields.items()):
        edit = (*path, Screen(path[0].app, "edit", "file", key))
        found.append(Repair(path=edit, tap=Update(FILE, key), fields=fields, source=source))
    if now["starred"] != wanted["starred"]:
        found.append(Repair(path=path, tap=Flip(FILE, key, "starred")))
    return found


def _trash(key: int, row: Row, via: str = "") -> Repair:
    path = file_path(key, row, via or "files")
    return Repair(path=(*path, Screen(path[0].app, "confirm", "file", key)), tap=Trash(key))
