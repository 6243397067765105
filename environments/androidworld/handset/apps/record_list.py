"""Apps that keep records of one kind: a list with a search field, a record, and a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from swarm_ui.environments.androidworld.handset.databases import Database
from swarm_ui.environments.androidworld.handset.handset import AppSpec, Call, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen import widgets as ui
from swarm_ui.environments.phone.state import Row, Screen


class FormField(msgspec.Struct, frozen=True):
    """One field of a record."""

    key: str
    label: str
    choices: tuple[str, ...] = ()
    """The values to choose from. Without choices the user types a text."""
    is_valid: Callable[[str], bool] = lambda text: True


class RecordListApp(msgspec.Struct, frozen=True, kw_only=True):
    """The screens of an app that keeps records of one kind."""

    app: str
    title: str
    table: str
    fields: tuple[FormField, ...]
    """The first field is the name of the record and is required."""
    add: str = ""
    """Text of the button that opens an empty form. Empty: records cannot be added by hand."""
    row: Callable[[Row], tuple[str, str | None]]
    """Text and value that the list shows of a record."""
    sort_key: Callable[[int, Row], str | int]
    """Sort key of the list, from the identity and the record."""
    on_insert: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a new record."""
    on_update: Callable[[Handset], Mapping[str, str]] = lambda handset: {}
    """Further fields of a changed record."""
    detail: Callable[[Row], list[tuple[str, str]]] | None = None
    """Labels and values that the record's screen shows. ``None`` shows every field."""
    group: str = ""
    """Field that a record shares with the others of its list. ``Screen.of`` is its value."""

    def spec(self, package: str, activity: str, database: Database) -> AppSpec:
        """The app with these screens and one database."""
        return AppSpec(
            name=self.app,
            package=package,
            activity=activity,
            build=self.page,
            databases=(database,),
        )

    def page(self, handset: Handset, screen: Screen) -> Page:
        if screen.kind == "form":
            return self._form(handset, screen.row)
        if screen.kind == "choose":
            field = next(field for field in self.fields if field.key == screen.of)
            return ui.choice_page(field.label, field.key, field.choices)
        if screen.kind == "detail":
            return self._detail(handset, screen.row)
        if screen.kind == "delete":
            name = handset.tables[self.table][screen.row].get(self.fields[0].key, "")
            delete = ui.delete_record(self.table, screen.row, "Deleted")
            return ui.dialog("Delete", f"Delete {name}?", "Delete", delete)
        return self._list(handset, screen.of)

    def _list(self, handset: Handset, group: str) -> Page:
        query = handset.draft.get("search", "").casefold()
        records = [
            pair
            for pair in handset.tables[self.table].items()
            if not group or pair[1].get(self.group) == group
        ]
        found = [pair for pair in records if any(query in v.casefold() for v in pair[1].values())]
        if not query:
            found = records
        found.sort(key=lambda pair: (self.sort_key(*pair), pair[0]))
        rows = [
            ui.item(*self.row(record), ui.open_screen(self.app, "detail", row=k))
            for k, record in found
        ] or [ui.text_row("Nothing here")]
        add = [ui.icon(self.add, ui.open_screen(self.app, "form"))] if self.add else []
        search = ui.field(handset, "Search", "search")
        return Page(title=self.title, rows=rows, top=[search], bottom=add)

    def _detail(self, handset: Handset, row: int) -> Page:
        record = handset.tables[self.table][row]
        draft = {field.key: record.get(field.key, "") for field in self.fields}
        shown = [(field.label, draft[field.key]) for field in self.fields[1:]]
        if self.detail is not None:
            shown = self.detail(record)
        name = ui.text_row(draft[self.fields[0].key])
        rows = [name, *(ui.text_row(label, value) for label, value in shown)]
        edit = ui.button("Edit", ui.open_screen(self.app, "form", row=row, draft=draft))
        delete = ui.button("Delete", ui.open_screen(self.app, "delete", row=row))
        return Page(title=self.title, rows=rows, bottom=[(edit, delete)])

    def _form(self, handset: Handset, row: int) -> Page:
        rows: list[Line] = []
        for field in self.fields:
            if field.choices:
                chosen = handset.draft.get(field.key) or field.choices[0]
                choose = ui.open_screen(self.app, "choose", field.key)
                rows.append(ui.button(chosen, choose, field.label))
            else:
                rows.append(ui.field(handset, field.label, field.key))
        save = ui.button("Save", Call(partial(self._save, row=row)))
        return Page(title="Edit" if row else self.add, rows=rows, bottom=[save])

    def _save(self, handset: Handset, row: int) -> str:
        record: dict[str, str] = {}
        for number, field in enumerate(self.fields):
            default = field.choices[0] if field.choices else ""
            text = (handset.draft.get(field.key) or default).strip()
            if (number == 0 and not text) or not field.is_valid(text):
                return f"{field.label} is not right"
            record[field.key] = text
        if row:
            handset.update(self.table, row, {**record, **self.on_update(handset)})
        else:
            handset.insert(self.table, {**record, **self.on_insert(handset)})
        handset.back()
        return "Saved"
