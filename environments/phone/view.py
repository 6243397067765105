"""What is on the screen: its widgets and title, and the elements that an agent sees of them."""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

import msgspec

from swarm_ui.action import Action
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
from swarm_ui.environments.phone.sampling import POOLS
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
from swarm_ui.observation import Element

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""
WIDTH, HEIGHT = 540, 1200
MARGIN, TOP, ROW = 20, 130, 64
"""Left margin; pixels above the first row, for the status bar and the title; and from row to
row."""
_MOST_ELEMENTS = 40
_COLUMNS, _ICON, _CELL, _LINE = 4, 92, 125, 150

ROWS: tuple[Box, ...] = tuple(
    (MARGIN, top, WIDTH - MARGIN, top + ROW - 8)
    for top in range(TOP, TOP + _MOST_ELEMENTS * ROW, ROW)
)
_ICONS: tuple[Box, ...] = tuple(
    (left, top, left + _ICON, top + _ICON + 30)
    for top in range(TOP, TOP + _MOST_ELEMENTS // _COLUMNS * _LINE, _LINE)
    for left in range(MARGIN + 16, MARGIN + 16 + _COLUMNS * _CELL, _CELL)
)
_DECOYS = tuple(Widget("button", text) for text in POOLS["distractors"])
_PASSIVE = frozenset(("label", "dialog"))
_OF_RECORDS = frozenset(("detail", "new", "edit", "confirm", "remove", "reply"))
PAGE_ROWS = 6
"""Rows on one page of a long list."""
UNPAGED_ROWS = 8
"""A list of at most this many rows is shown on one page."""


def widgets(device: Device) -> list[Widget]:
    """The widgets of the current screen, in reading order, without toast and decoys."""
    screen = device.screen
    if screen is None:
        return [Widget("app", name, effect=Go(Screen(name))) for name in device.installed]
    return app_screen(device.catalogue.apps[screen.app], device, screen)


def title(device: Device) -> str:
    """The title of the current screen."""
    screen = device.screen
    if screen is None:
        return "home"
    if screen.kind in ("category", "choice"):
        return f"{screen.app} {screen.of}"
    if screen.kind == "list":
        return f"{screen.app} {screen.of}s" if screen.of else screen.app
    return f"{screen.app} {screen.kind}"


class View(msgspec.Struct, frozen=True):
    """A screen as shown: the widgets from top to bottom, and the index of each."""

    title: str
    widgets: list[Widget]
    order: tuple[int, ...]
    """``order[index]`` is the position of the element with that index."""
    elements: tuple[Element, ...]

    def find(self, action: Action) -> int | None:
        """Index of the element at which an action points; ``None`` if it points at no element."""
        if action.index is not None:
            return action.index if action.index < len(self.elements) else None
        x, y = action.x, action.y
        if x is None or y is None:
            return None
        for element in self.elements:
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            if left <= x < right and top <= y < bottom:
                return element.index
        return None


def view(device: Device, salt: int) -> View:
    """The current screen. Order and decoys depend on the episode and the screen's address."""
    shown = widgets(device)
    screen = device.screen
    seed = crc32(_address(screen), salt)
    if screen is not None and screen.kind != "confirm":
        shown = [*shown, *_decoys(shown, seed)]
    if device.toast:
        shown = [*shown, Widget("label", device.toast)]
    places = ROWS if screen is not None else _ICONS
    order = _order(len(shown), seed)
    elements = tuple([element_of(k, shown[at], places[at]) for k, at in enumerate(order)])
    return View(title(device), shown, order, elements)


@lru_cache(maxsize=4096)
def _address(screen: Screen | None) -> bytes:
    return repr(screen).encode() if screen else b"home"


def _decoys(shown: list[Widget], seed: int) -> list[Widget]:
    """Choose up to three buttons without effect to add to the screen; fewer if it has many
    elements."""
    count = min((seed >> 8) % 4, max(0, 10 - len(shown)))
    taken = {widget.text for widget in shown}
    first, stride = (seed >> 10) % len(_DECOYS), 1 + (seed >> 14) % 8
    found: list[Widget] = []
    for k in range(count):
        decoy = _DECOYS[(first + k * stride) % len(_DECOYS)]
        if decoy.text not in taken:
            taken.add(decoy.text)
            found.append(decoy)
    return found


def _order(count: int, seed: int) -> tuple[int, ...]:
    """A permutation that depends only on its arguments. Computing it takes less time than seeding a
    generator."""
    ranks = [(((seed ^ (k * 0x9E3779B1)) * 0x85EBCA6B >> 7) & 0xFFFFFFFF, k) for k in range(count)]
    ranks.sort()
    return tuple([k for _, k in ranks])


def element_of(index: int, widget: Widget, bounds: Box) -> Element:
    """A widget as an element of the screen."""
    return Element(
        index=index,
        role=widget.role,
        text=widget.text,
        description=widget.description,
        value=widget.value,
        checked=widget.checked,
        clickable=widget.role not in _PASSIVE,
        editable=widget.field is not None,
        scrollable=widget.scrollable,
        bounds=bounds,
    )


# -- the screens of apps: settings, lists, forms, single records, and dialogs ---------------------


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
    answer = {table.title: row[table.title]}
    buttons: tuple[tuple[str, str, Row], ...] = (
        (table.edit, "edit", values), (table.delete, "confirm", {}), (table.reply, "reply", answer),
    )  # fmt: skip
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
