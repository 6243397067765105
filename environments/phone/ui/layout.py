"""Converts widgets to indexed elements: decoys, toast, order and bounds."""

from __future__ import annotations

import random
from zlib import crc32

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.geometry import MARGIN, WIDTH, Box, boxes, full_device_element
from swarm_ui.environments.phone.ui.widgets import title, widgets
from swarm_ui.environments.phone.word_pools import DISTRACTORS, FILLERS
from swarm_ui.observation import Element, Role

TOP, ROW = 130, 64
"""Pixels above the first row, for the status bar and the title; and pixels from row to row."""
_MOST_ELEMENTS = 40
_COLUMNS, _ICON, _CELL, _LINE = 4, 92, 125, 150

_ROWS: tuple[Box, ...] = tuple(
    (MARGIN, TOP + k * ROW, WIDTH - MARGIN, TOP + k * ROW + ROW - 8) for k in range(_MOST_ELEMENTS)
)
_ICONS: tuple[Box, ...] = tuple(
    (
        MARGIN + k % _COLUMNS * _CELL + 16,
        TOP + k // _COLUMNS * _LINE,
        MARGIN + k % _COLUMNS * _CELL + 16 + _ICON,
        TOP + k // _COLUMNS * _LINE + _ICON + 30,
    )
    for k in range(_MOST_ELEMENTS)
)
_DECOYS = tuple(Widget("button", text) for text in DISTRACTORS)
LONG = (12, 20)
"""Least and most elements of a long screen, unless the app shows more."""
_LEAST_FILLERS = 2
_FILLER_ROLES: tuple[Role, ...] = ("button", "item", "link")
_PASSIVE = frozenset(("label", "dialog"))


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
    if device.system is not None:
        return _full_device_view(device)
    shown = widgets(device)
    screen = device.screen
    seed = crc32(repr(screen).encode() if screen else b"home", salt)
    if screen is not None and screen.kind != "confirm":
        shown = [*shown, *_decoys(shown, seed)]
    if device.toast:
        shown = [*shown, Widget("label", device.toast)]
    places = _ROWS if screen is not None else _ICONS
    order = _order(len(shown), seed)
    elements = tuple([_element(index, shown[at], places[at]) for index, at in enumerate(order)])
    return View(title(device), shown, order, elements)


def long_view(device: Device, salt: int) -> View:
    """The same screen in page order, made long with elements that have no effect.

    The number, choice and position of these elements depend only on the episode, the screen and
    the number of its widgets, so elements do not move while a form is filled in.
    """
    shown = widgets(device)
    if device.toast:
        shown.append(Widget("label", device.toast))
    screen = device.screen
    rng = random.Random(crc32(repr(screen).encode() if screen else b"home", salt))
    count = max(rng.randint(*LONG), len(shown) + _LEAST_FILLERS)
    texts = rng.sample(FILLERS, len(FILLERS))
    roles = rng.choices(_FILLER_ROLES, k=len(FILLERS))
    places = set(rng.sample(range(count), count)[: len(shown)])
    taken = {widget.text for widget in shown}
    fillers = [Widget(r, t) for r, t in zip(roles, texts, strict=True) if t not in taken]
    fillers = fillers[: count - len(shown)]
    own, others = iter(range(len(shown))), iter(range(len(shown), count))
    order = tuple([next(own if place in places else others) for place in range(count)])
    every = [*shown, *fillers]
    elements = tuple([_element(i, every[at], _ROWS[i]) for i, at in enumerate(order)])
    return View(title(device), every, order, elements)


def _full_device_view(device: Device) -> View:
    """The screen of the full device, in reading order and without decoys."""
    shown = widgets(device)
    if device.toast:
        shown.append(Widget("label", device.toast, zone="toast"))
    focus = device.focus
    places = boxes(tuple([widget.zone for widget in shown]))
    elements = tuple([full_device_element(k, w, places[k], focus) for k, w in enumerate(shown)])
    return View(title(device), shown, tuple(range(len(shown))), elements)


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


def _element(index: int, widget: Widget, bounds: Box) -> Element:
    editable = widget.field is not None
    return Element(
        index=index,
        role=widget.role,
        text=widget.text,
        value=widget.value,
        checked=widget.checked,
        clickable=widget.role not in _PASSIVE,
        editable=editable,
        scrollable=widget.scrollable,
        bounds=bounds,
    )
