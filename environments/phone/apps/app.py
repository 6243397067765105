"""The definition of an app, and the screens that most apps share.

To add an app, define an :class:`App` in a module of ``apps/``, and list it in
``apps/__init__.py``. An app that only stores records needs no code: its tables are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import (
    Back,
    Choose,
    Copy,
    Flip,
    Go,
    Insert,
    Remove,
    SetSetting,
    Update,
)
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Effect, Widget
from swarm_ui.environments.phone.parameters import Sampler

PAGE_ROWS = 6
"""Rows on one page of a long list."""
UNPAGED_ROWS = 8
"""A list of at most this many rows is shown on one page."""


class Setting(msgspec.Struct, frozen=True):
    """A switch or choice of the device, and the screens that lead to it."""

    path: Path
    choices: tuple[str, ...] = ("off", "on")


class App(msgspec.Struct, frozen=True, kw_only=True):
    """An app of the phone."""

    name: str
    tables: tuple[Table, ...] = ()
    """The records it stores; the first table is the one on its first screen."""
    menu: bool = False
    """Whether the first screen is a menu, so that no table is listed there."""
    widgets: Callable[[Device, Screen], list[Widget]] | None = None
    """Builds the app's screens; ``None``: the screens of its tables."""
    sample: Callable[[Sampler], dict[str, str]] | None = None
    """Draws a random record; ``None``: a random value for each field."""
    settings: Mapping[str, Setting] = {}
    needs: Mapping[str, str] = {}
    """Kind of screen -> permission it requests, or ``"wifi"`` if it works online only."""
    last: Callable[[Device, Screen], int] | None = None
    """Last page of scrollable screens that do not list a table."""

    def build(self, device: Device, screen: Screen) -> list[Widget]:
        """The widgets of a screen, in reading order."""
        if self.widgets is not None:
            return self.widgets(device, screen)
        table = next((t for t in self.tables if t.name == screen.of), self.tables[0])
        return record_screen(device, table, screen)

    def record(self, sampler: Sampler, table: Table) -> dict[str, str]:
        """A random record of one of its tables."""
        if self.sample is not None:
            return self.sample(sampler)
        return {field.name: field.random_value(sampler) for field in table.fields}

    def fill(self, device: Device, sampler: Sampler, least: int, most: int) -> None:
        """Store random settings and ``least`` to ``most`` random records per table."""
        for table in self.tables:
            rows = {}
            for _ in range(least + int(sampler.rng.random() * (most - least + 1))):
                rows[device.next_row] = self.record(sampler, table)
                device.next_row += 1
            device.tables = {**device.tables, table.name: rows}
        if self.settings:
            chosen = {key: sampler.pick(where.choices) for key, where in self.settings.items()}
            device.settings = {**device.settings, **chosen}


def record_screen(device: Device, table: Table, screen: Screen) -> list[Widget]:
    """Any of the shared screens of ``table``."""
    kind = screen.kind
    if kind == "list":
        return listing(device, table)
    if kind == "new":
        return form(table, device.draft, Insert(table))
    if kind == "remove":
        return record_list(device, table, "confirm")
    row = device.tables[table.name][screen.row]
    if kind == "detail":
        return detail(table, screen.row, row)
    if kind == "edit":
        return form(table, device.draft, Update(table, screen.row))
    text = f"{table.delete} {row[table.title]} ?"
    return confirm(text, table.delete, Remove(table, screen.row), table.cancel)


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


def paged(
    device: Device, rows: list[Widget], page: int = PAGE_ROWS, limit: int = UNPAGED_ROWS
) -> list[Widget]:
    """The current page of a list, with a label if there are more pages."""
    if len(rows) > limit:
        shown = rows[device.page * page : (device.page + 1) * page]
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


def confirm(text: str, button: str, effect: Effect, cancel: str = "cancel") -> list[Widget]:
    """A dialog that asks before a record is deleted."""
    return [
        Widget("dialog", text, zone="dialog"),
        Widget("button", button, effect=effect),
        Widget("button", cancel, effect=Back()),
    ]
