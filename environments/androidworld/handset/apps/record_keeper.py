"""Apps that keep records of one kind: a list that can be searched, a record, a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from swarm_ui.environments.androidworld.handset.handset import Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import (
    button,
    dialog,
    do,
    drop,
    field,
    go,
    icon,
    item,
    told,
)
from swarm_ui.environments.phone.device.device import Row
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget


class Part(msgspec.Struct, frozen=True):
    """One field of a record."""

    key: str
    label: str
    choices: tuple[str, ...] = ()
    """What can be chosen; empty: text is typed."""
    check: Callable[[str], bool] = lambda text: True
    """Whether a text is right."""


class Keeper(msgspec.Struct, frozen=True, kw_only=True):
    """The screens of such an app."""

    app: str
    title: str
    table: str
    parts: tuple[Part, ...]
    """The first names the record, and must be given."""
    add: str
    row: Callable[[Row], tuple[str, str | None]]
    """What the list shows of a record."""
    order: Callable[[int, Row], str | int]
    """What the list is sorted by."""
    extra: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a new record."""
    changed: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a changed one."""
    detail: Callable[[Row], list[tuple[str, str]]] | None = None
    """What a record's screen says, as label and value; ``None``: all its parts."""

    def page(self, handset: Handset, screen: Screen) -> Page:
        if screen.kind == "form":
            return self._form(handset, screen.row)
        if screen.kind == "choose":
            part = next(part for part in self.parts if part.key == screen.of)
            rows = [
                item(c, None, do(partial(_choose, key=part.key, value=c))) for c in part.choices
            ]
            return Page(title=part.label, rows=rows)
        if screen.kind == "detail":
            return self._detail(handset, screen.row)
        if screen.kind == "delete":
            named = handset.tables[self.table][screen.row].get(self.parts[0].key, "")
            yes = do(partial(self._delete, row=screen.row))
            return dialog("Delete", f"Delete {named}?", "Delete", yes)
        return self._list(handset)

    def _list(self, handset: Handset) -> Page:
        wanted = handset.draft.get("search", "").casefold()
        records = handset.tables[self.table].items()
        found = [pair for pair in records if _holds(pair[1], wanted)]
        found.sort(key=lambda pair: (self.order(*pair), pair[0]))
        rows: list[Widget] = [
            item(*self.row(record), go(Screen(self.app, "detail", "", k))) for k, record in found
        ]
        if not rows:
            rows = [told("Nothing here")]
        add = icon(self.add, go(Screen(self.app, "form")))
        search = field(handset, "Search", "search")
        return Page(title=self.title, rows=rows, top=[search], bottom=[add])

    def _detail(self, handset: Handset, row: int) -> Page:
        record = handset.tables[self.table][row]
        named = record.get(self.parts[0].key, "")
        said = (
            self.detail(record)
            if self.detail
            else [(part.label, record.get(part.key, "")) for part in self.parts[1:]]
        )
        rows: list[Line] = [told(named), *(told(label, value) for label, value in said)]
        draft = {part.key: record.get(part.key, "") for part in self.parts}
        edit = button("Edit", go(Screen(self.app, "form", "", row), draft))
        delete = button("Delete", go(Screen(self.app, "delete", "", row)))
        return Page(title=self.title, rows=rows, bottom=[(edit, delete)])

    def _form(self, handset: Handset, row: int) -> Page:
        rows: list[Line] = []
        for part in self.parts:
            if part.choices:
                chosen = handset.draft.get(part.key) or part.choices[0]
                choose = go(Screen(self.app, "choose", part.key))
                rows.append(button(chosen, choose, part.label))
            else:
                rows.append(field(handset, part.label, part.key))
        save = button("Save", do(partial(self._save, row=row)))
        return Page(title="Edit" if row else self.add, rows=rows, bottom=[save])

    def _save(self, handset: Handset, row: int) -> str:
        draft = handset.draft
        record: dict[str, str] = {}
        for number, part in enumerate(self.parts):
            default = part.choices[0] if part.choices else ""
            text = (draft.get(part.key) or default).strip()
            if (number == 0 and not text) or not part.check(text):
                handset.toast = f"{part.label} is not right"
                return f"not saved: {handset.toast}"
            record[part.key] = text
        if row:
            handset.update(self.table, row, {**record, **self.changed(handset)})
        else:
            handset.insert(self.table, {**record, **self.extra(handset)})
        drop(handset, 1, "Saved")
        return ""

    def _delete(self, handset: Handset, row: int) -> None:
        handset.remove(self.table, row)
        drop(handset, 2, "Deleted")


def _holds(record: Row, wanted: str) -> bool:
    return not wanted or any(wanted in value.casefold() for value in record.values())


def _choose(handset: Handset, key: str, value: str) -> None:
    handset.back()
    handset.draft = {**handset.draft, key: value}
