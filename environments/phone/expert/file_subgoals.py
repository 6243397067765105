"""Subgoals for files, which several apps share and which can be restored from the trash."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.environments.phone.apps.files import FILE, TRASH, file_path
from swarm_ui.environments.phone.device.device import Row, Rows
from swarm_ui.environments.phone.device.effects import Flip, Update
from swarm_ui.environments.phone.device.full_effects import MoveToTrash, RestoreFile
from swarm_ui.environments.phone.device.schema import same_text
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.expert.subgoal import Subgoal
from swarm_ui.environments.phone.tasks.goal import Change, Create, Delete, Source

_EDITABLE = ("name", "folder", "starred")


def file_subgoals(
    before: Rows, rows: Rows, wants: Sequence[Create | Change | Delete]
) -> list[Subgoal]:
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
    found.extend(_match(extra, missing))
    return found


def _match(extra: Rows, missing: list[Create]) -> list[Subgoal]:
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
