"""What is on the screen: its widgets and title, and the elements that an agent sees of them."""

from __future__ import annotations

from functools import lru_cache
from zlib import crc32

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.phone.effects import Go
from swarm_ui.environments.phone.record_screens import app_screen
from swarm_ui.environments.phone.sampling import POOLS
from swarm_ui.environments.phone.state import Device, Screen, Widget
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
