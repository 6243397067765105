"""The screens of records that apps share: lists, forms, single records, and dialogs."""

from __future__ import annotations

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
from swarm_ui.environments.phone.state import (
    ON_OFF,
    App,
    Device,
    Effect,
    Row,
    Screen,
    Table,
    Widget,
)

_OF_RECORDS = frozenset(("detail", "new", "edit", "confirm", "remove", "reply"))
PAGE_ROWS = 6
"""Rows on one page of a long list."""
UNPAGED_ROWS = 8
"""A list of at most this many rows is shown on one page."""


def app_screen(app: App, device: Device, screen: Screen) -> list[Widget]:
    """The widgets of a screen of an app, in reading order."""
    kind = screen.kind
    if kind in _OF_RECORDS:
        table = next(table for table in app.tables if table.name == screen.of)
        return _record_screen(device, table, screen)
    if kind == "choice":
        key, value = screen.of, device.settings[screen.of]
        return [
            Widget("radio", option, None, option == value, SetSetting(key, option))
            for option in app.settings[key].choices
        ]
    if kind == "missing":
        return [Widget("label", f"nothing found for {screen.of}")]
    listed = app.lists.get(screen)
    shown = [] if listed is None else _listing(device, listed)
    shown.extend(_setting(device, app, key) for key in app.shown.get(screen, ()))
    return [*shown, *app.links.get(screen, ())] or [Widget("label", "empty")]


def _setting(device: Device, app: App, key: str) -> Widget:
    """A switch, or the item that leads to the options of a choice."""
    place, value = app.settings[key], device.settings[key]
    if place.choices != ON_OFF:
        return Widget("item", key, value, effect=Go(place.path[-1]))
    on = value == "on"
    return Widget("switch", key, None, on, SetSetting(key, "off" if on else "on"))


def _record_screen(device: Device, table: Table, screen: Screen) -> list[Widget]:
    """A screen about one record of ``table``, or about records to choose from."""
    kind = screen.kind
    if kind in ("new", "reply"):
        return _form(table, device.draft, Save(table))
    rows = device.tables[table.name]
    if kind == "remove":
        return _record_list(device, table, "confirm")
    if kind == "detail":
        return _detail(table, screen.row, rows[screen.row])
    if kind == "edit":
        return _form(table, device.draft, Save(table, screen.row))
    return [
        Widget("dialog", f"{table.delete} {rows[screen.row][table.title]} ?"),
        Widget("button", table.delete, effect=Remove(table, screen.row)),
        Widget("button", table.cancel, effect=Back()),
    ]


def _listing(device: Device, table: Table) -> list[Widget]:
    """The rows of a table, or a search for one, and the button that adds a record."""
    add = Widget("button", table.add, effect=Go(table.screen("new")))
    if table.search:
        label, text = f"{table.title} of the {table.name}", device.draft.get(table.title, "")
        search = Widget("button", table.search, effect=Search(table))
        return [Widget("field", label, text, field=table.title), search, add]
    if not table.checklist:
        return [*_record_list(device, table, "detail"), add]
    field = table.switches[0].name
    boxes = [
        Widget("checkbox", row[table.title], None, row[field] == "on", Flip(table, key, field))
        for key, row in device.tables[table.name].items()
    ]
    delete = Widget("button", table.delete, effect=Go(table.screen("remove")))
    return [*_paged(device, boxes), add, delete]


def _record_list(device: Device, table: Table, opens: str) -> list[Widget]:
    """The titles of records; a tap opens the screen of kind ``opens``."""
    rows = [
        Widget("item", row[table.title], effect=Go(table.screen(opens, key)))
        for key, row in device.tables[table.name].items()
    ]
    return _paged(device, rows)


def _paged(device: Device, rows: list[Widget]) -> list[Widget]:
    """The current page of a list, with a label if there are more pages; beyond the last one, and
    before the first, only the label."""
    if len(rows) > UNPAGED_ROWS:
        shown = rows[device.page * PAGE_ROWS : (device.page + 1) * PAGE_ROWS]
        return [*shown, Widget("label", "more", scrollable=True)]
    return rows or [Widget("label", "empty")]


def _detail(table: Table, identity: int, row: Row) -> list[Widget]:
    """One record: its values, its switches, and the buttons that edit, delete or answer it."""
    values = {field.name: row[field.name] for field in table.form}
    widgets = [
        Widget("item", name, value, effect=Copy(name, value)) for name, value in values.items()
    ]
    for field in table.switches:
        flip = Flip(table, identity, field.name)
        widgets.append(Widget("switch", field.name, None, row[field.name] == "on", flip))
    buttons = ((table.edit, "edit", values), (table.delete, "confirm", {}),
               (table.reply, "reply", {table.title: row[table.title]}))  # fmt: skip
    for label, kind, draft in buttons:
        if label:
            widgets.append(Widget("button", label, effect=Go(table.screen(kind, identity), draft)))
    return widgets


def _form(table: Table, draft: Row, save: Effect) -> list[Widget]:
    """The fields to fill, and buttons to save or leave."""
    widgets: list[Widget] = []
    for field in table.form:
        value = draft.get(field.name, field.default)
        if field.kind == "text":
            widgets.append(Widget("field", field.name, value, field=field.name))
        for one in field.choices:
            effect = Choose(field.name, one)
            widgets.append(Widget("radio", one, None, one == value, effect))
    save_and_leave = ((table.save, save), (table.cancel, Back()))
    return [*widgets, *(Widget("button", label, effect=does) for label, does in save_and_leave)]
