"""The screens of records that apps share: lists, forms, single records, and dialogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarm_ui.environments.phone.effects import (
    Back,
    Choose,
    Copy,
    Flip,
    Go,
    Remove,
    Save,
    Search,
    SetSetting,
)
from swarm_ui.environments.phone.state import App, Device, Effect, Row, Screen, Table, Widget

PAGE_ROWS = 6
"""Rows on one page of a long list."""
UNPAGED_ROWS = 8
"""A list of at most this many rows is shown on one page."""


def app_screen(app: App, device: Device, screen: Screen) -> list[Widget]:
    """The widgets of a screen of an app, in reading order."""
    if app.build is not None:
        return app.build(device, screen)
    table = next((t for t in app.tables if t.name == screen.of), app.tables[0])
    return record_screen(device, table, screen)


def record_screen(device: Device, table: Table, screen: Screen) -> list[Widget]:
    """Any of the shared screens of ``table``."""
    kind = screen.kind
    if kind == "list":
        return listing(device, table)
    if kind == "new":
        return form(table, device.draft, Save(table))
    if kind == "remove":
        return record_list(device, table, "confirm")
    row = device.tables[table.name][screen.row]
    if kind == "detail":
        return detail(table, screen.row, row)
    if kind == "edit":
        return form(table, device.draft, Save(table, screen.row))
    return [
        Widget("dialog", f"{table.delete} {row[table.title]} ?"),
        Widget("button", table.delete, effect=Remove(table, screen.row)),
        Widget("button", table.cancel, effect=Back()),
    ]


def listing(device: Device, table: Table) -> list[Widget]:
    """The rows of a table, and the button that adds a record."""
    add = Widget("button", table.add, effect=Go(table.screen("new")))
    if not table.checklist:
        return [*record_list(device, table, "detail"), add]
    field = table.switches[0].name
    boxes = [
        Widget("checkbox", row[table.title], None, row[field] == "on", Flip(table, key, field))
        for key, row in device.tables[table.name].items()
    ]
    delete = Widget("button", table.delete, effect=Go(table.screen("remove")))
    return [*paged(device, boxes), add, delete]


def record_list(device: Device, table: Table, opens: str) -> list[Widget]:
    """The titles of records; a tap opens the screen of kind ``opens``."""
    rows = device.tables[table.name].items()
    return paged(
        device,
        [
            Widget("item", row[table.title], effect=Go(table.screen(opens, key)))
            for key, row in rows
        ],
    )


def paged(device: Device, rows: list[Widget]) -> list[Widget]:
    """The current page of a list, with a label if there are more pages."""
    if len(rows) > UNPAGED_ROWS:
        shown = rows[device.page * PAGE_ROWS : (device.page + 1) * PAGE_ROWS]
        return [*shown, Widget("label", "more", scrollable=True)]
    return rows or [Widget("label", "empty")]


def last_page_of(rows: int) -> int:
    """Number of the last page of a list, counted from 0."""
    return 0 if rows <= UNPAGED_ROWS else -(-rows // PAGE_ROWS) - 1


def copyable(values: Mapping[str, str]) -> list[Widget]:
    """A list of named values; a tap copies one."""
    return [Widget("item", name, value, effect=Copy(name, value)) for name, value in values.items()]


def switch(table: Table, identity: int, row: Row, field: str) -> Widget:
    """The switch of a record."""
    return Widget("switch", field, None, row[field] == "on", Flip(table, identity, field))


def setting_switch(device: Device, key: str) -> Widget:
    """The switch of a setting of the device."""
    on = device.settings[key] == "on"
    return Widget("switch", key, None, on, SetSetting(key, "off" if on else "on"))


def detail(table: Table, identity: int, row: Row) -> list[Widget]:
    """One record: its values, its switches, and the buttons that edit or delete it."""
    values = {field.name: row[field.name] for field in table.form}
    widgets = copyable(values)
    widgets.extend(switch(table, identity, row, field.name) for field in table.switches)
    if table.edit:
        go = Go(table.screen("edit", identity), values)
        widgets.append(Widget("button", table.edit, effect=go))
    widgets.append(Widget("button", table.delete, effect=Go(table.screen("confirm", identity))))
    return widgets


def form(table: Table, draft: Row, save: Effect) -> list[Widget]:
    """The fields to fill, and buttons to save or leave."""
    widgets: list[Widget] = []
    for field in table.form:
        value = draft.get(field.name, field.default)
        if field.kind == "text":
            widgets.append(Widget("field", field.name, value, field=field.name))
        else:
            widgets.extend(
                Widget("radio", choice, None, choice == value, Choose(field.name, choice))
                for choice in field.choices
            )
    widgets.append(Widget("button", table.save, effect=save))
    widgets.append(Widget("button", table.cancel, effect=Back()))
    return widgets


def setting_choice(device: Device, key: str, options: Sequence[str]) -> list[Widget]:
    """The options of a choice of the device."""
    chosen = device.settings[key]
    return [
        Widget("radio", option, None, option == chosen, SetSetting(key, option))
        for option in options
    ]


def search_field(device: Device, table: Table, label: str) -> Widget:
    """A field whose text is searched among the titles of a table."""
    title = table.title
    search = Search(table.app, table.name, title)
    return Widget("field", label, device.draft.get(title, ""), field=title, submit=search)
