"""Screens that most apps share: a list of records, one record, a form, a question before deleting.

Each function returns the widgets in the order a person would see them.
"""

from __future__ import annotations

from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import (
    Back,
    Choose,
    Copy,
    Flip,
    Go,
    Insert,
    Remove,
    Update,
)
from swarm_ui.environments.phone.device.schema import Field, Table
from swarm_ui.environments.phone.device.screen import Effect, Screen, Widget

PAGE = 6
"""Rows of a long list that fit on a screen."""
UNPAGED_ROWS = 8
"""Lists of at most this many rows are shown whole."""


def record_screen(device: Device, table: Table, screen: Screen) -> list[Widget]:
    """Any of the shared screens of ``table``."""
    kind = screen.kind
    if kind == "list":
        return listing(device, table)
    if kind == "new":
        return form(table, device.draft, Insert(table))
    if kind == "remove":
        return listing(device, table, removing=True)
    row = device.tables[table.name][screen.row]
    if kind == "detail":
        return detail(table, screen.row, row)
    if kind == "edit":
        return form(table, device.draft, Update(table, screen.row))
    return confirm(table, screen.row, row)


def listing(device: Device, table: Table, *, removing: bool = False) -> list[Widget]:
    """The rows of a table, and the button that adds one."""
    rows = device.tables[table.name]
    shown = list(rows.items())
    long = len(shown) > UNPAGED_ROWS
    if long:
        shown = shown[device.page * PAGE : (device.page + 1) * PAGE]
    if removing:
        widgets = [_row(table, Go(table.screen("confirm", k)), row) for k, row in shown]
    elif table.checklist:
        field = table.switches[0].name
        widgets = [
            Widget(
                "checkbox",
                row[table.title],
                checked=row[field] == "on",
                effect=Flip(table, k, field),
            )
            for k, row in shown
        ]
    else:
        widgets = [_row(table, Go(table.screen("detail", k)), row) for k, row in shown]
    if not rows:
        widgets.append(Widget("label", "empty"))
    if long:
        widgets.append(Widget("label", "more", scrollable=True))
    if not removing:
        widgets.append(Widget("button", table.add, effect=Go(table.screen("new"))))
        if table.checklist:
            widgets.append(Widget("button", table.delete, effect=Go(table.screen("remove"))))
    return widgets


def pages(device: Device, table: Table) -> int:
    """How many times a list can be scrolled, plus one."""
    return pages_of(len(device.tables[table.name]))


def pages_of(count: int) -> int:
    """Pages of a list of so many rows."""
    return 1 if count <= UNPAGED_ROWS else -(-count // PAGE)


def _row(table: Table, effect: Effect, row: Row) -> Widget:
    value = row[table.shown] if table.shown else None
    return Widget("item", row[table.title], value, effect=effect)


def detail(table: Table, identity: int, row: Row) -> list[Widget]:
    """One record: its values (a tap copies one), its switches, and what can be done with it."""
    widgets = [
        Widget("item", f.name, row[f.name], effect=Copy(f.name, row[f.name])) for f in table.form
    ]
    for field in table.switches:
        flip = Flip(table, identity, field.name)
        widgets.append(Widget("switch", field.name, None, row[field.name] == "on", flip))
    if table.edit:
        draft = {f.name: row[f.name] for f in table.form}
        go = Go(table.screen("edit", identity), draft)
        widgets.append(Widget("button", table.edit, effect=go))
    confirm_screen = table.screen("confirm", identity)
    widgets.append(Widget("button", table.delete, effect=Go(confirm_screen)))
    return widgets


def form(table: Table, draft: Row, save: Effect) -> list[Widget]:
    """Fields to fill, and buttons to save or leave."""
    widgets: list[Widget] = []
    for field in table.form:
        if field.kind == "text":
            value = draft.get(field.name, "")
            widgets.append(Widget("field", field.name, value, field=field.name))
        else:
            widgets.extend(_options(field, draft))
    widgets.append(Widget("button", table.save, effect=save))
    widgets.append(Widget("button", "cancel", effect=Back()))
    return widgets


def _options(field: Field, draft: Row) -> list[Widget]:
    chosen = draft.get(field.name, field.default)
    return [
        Widget("radio", choice, None, choice == chosen, Choose(field.name, choice))
        for choice in field.choices
    ]


def confirm(table: Table, identity: int, row: Row) -> list[Widget]:
    """A dialog that asks before deleting."""
    return [
        Widget("dialog", f"{table.confirm} {row[table.title]} ?", zone="dialog"),
        Widget("button", table.confirm, effect=Remove(table, identity)),
        Widget("button", "cancel", effect=Back()),
    ]
