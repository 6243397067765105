"""A handset's screen: the position of each widget, and what touches and keys do there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.widgets import button
from swarm_ui.environments.phone.state import Widget

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels."""

SCALE = 2
"""Android pixels per pixel of the phone's picture."""
WIDTH, HEIGHT = 540, 1200
"""Pixels of the picture."""
TOP, BOTTOM, MARGIN, ROW, GAP = 130, 1136, 20, 64, 8
_ICONS = 4
_HEIGHTS = {"app": 150, "area": 6 * ROW, "image": 6 * ROW}


LONG_PRESS_MS = 500
TOUCH_SLOP = 24
"""Pixels that a finger may move during a tap."""
_KEYS = {"3": "HOME", "4": "BACK", "61": "TAB", "66": "ENTER", "67": "DEL"}


class Placed(NamedTuple):
    """A widget and its position in the picture."""

    widget: Widget
    box: Box
    scrolled: bool = False
    """The widget belongs to the list that scrolls."""

    @property
    def pixels(self) -> Box:
        """The position in Android's pixels."""
        left, top, right, bottom = self.box
        return left * SCALE, top * SCALE, right * SCALE, bottom * SCALE


class ScreenGeometry(NamedTuple):
    """A screen after layout."""

    title: str
    placed: tuple[Placed, ...]
    pages: int
    """Number of scroll pages of the list."""
    page: int
    area: Box
    """Position of the list in the picture."""

    def at(self, x: float, y: float) -> Placed | None:
        """The widget at a point in Android's pixels."""
        for one in self.placed:
            left, top, right, bottom = one.pixels
            if left <= x < right and top <= y < bottom:
                return one
        return None


def lay_out(handset: Handset) -> ScreenGeometry:
    """Lay out the current screen."""
    page = handset.page_of(handset.stack[-1]) if handset.stack else _home(handset)
    selected = [(button("Copy", _copy), button("Paste", _paste))] if handset.selecting else []
    toast = [Control("label", handset.toast)] if handset.toast else []
    above, at = _stack([*page.top, *selected], TOP, False)
    bottom = [*page.bottom, *toast]
    room = BOTTOM - sum(map(_height, bottom))
    starts = _pages(page.rows, room - at)
    shown = max(0, min(handset.page, len(starts) - 1))
    end = _fitting(page.rows, starts[shown], room - at)
    between, _ = _stack(page.rows[starts[shown] : end], at, True)
    below, _ = _stack(bottom, room, False)
    placed = (*above, *between, *below)
    return ScreenGeometry(page.title, placed, len(starts), shown, (0, at, WIDTH, room))


def _home(handset: Handset) -> Page:
    icons = [Control("app", app, effect=Call(Handset.launch, app)) for app in handset.installed]
    lines = [tuple(icons[k : k + _ICONS]) for k in range(0, len(icons), _ICONS)]
    return Page(title="home", rows=lines)


def _copy(handset: Handset) -> None:
    handset.clipboard = handset.draft.get(handset.focus, "")
    handset.selecting = False


def _paste(handset: Handset) -> None:
    """Replace the selected text, which is all of the field, by the clipboard."""
    handset.fill_in(handset.focus, handset.clipboard)
    handset.selecting = False


def _height(line: Line) -> int:
    if isinstance(line, tuple):
        return max(_height(widget) for widget in line)
    return _HEIGHTS.get(line.role, ROW)


def _fitting(rows: Sequence[Line], start: int, room: int) -> int:
    """End of the rows from ``start`` on that fit. At least one row is taken."""
    end, used = start, 0
    while end < len(rows) and (used + _height(rows[end]) <= room or end == start):
        used += _height(rows[end])
        end += 1
    return end


def _pages(rows: Sequence[Line], room: int) -> list[int]:
    """First row of each page. Each page begins with the last row of the page before."""
    starts = [0]
    while (end := _fitting(rows, starts[-1], room)) < len(rows):
        starts.append(max(end - 1, starts[-1] + 1))
    return starts


def _stack(lines: Sequence[Line], y: int, scrolled: bool) -> tuple[list[Placed], int]:
    """Place lines below each other from ``y`` on. Also returns the bottom of the last line."""
    placed: list[Placed] = []
    for line in lines:
        cells = line if isinstance(line, tuple) else (line,)
        # A row of icons keeps its columns when it is not full.
        columns = _ICONS if cells[0].role == "app" else len(cells)
        wide = (WIDTH - 2 * MARGIN + GAP) // columns
        high = _height(line)
        for k, widget in enumerate(cells):
            left = MARGIN + k * wide
            placed.append(Placed(widget, (left, y, left + wide - GAP, y + high - GAP), scrolled))
        y += high
    return placed, y


# -- touches and keys ------------------------------------------------------------------------------


def tap(handset: Handset, x: float, y: float) -> None:
    """A short touch."""
    one = _touched(handset).at(x, y)
    if len(handset.stack) > 1 and x < 120 and (TOP - 60) * SCALE <= y < TOP * SCALE:
        back(handset)
    elif one is not None and one.widget.field is not None:
        handset.focus, handset.selecting = one.widget.field, False
    elif one is not None and one.widget.effect is not None:
        one.widget.effect.apply(handset)


def long_press(handset: Handset, x: float, y: float) -> None:
    """A long press. It selects the text of a field, or runs the widget's ``long_press``."""
    one = lay_out(handset).at(x, y)
    effect = one.widget.long_press if one and isinstance(one.widget, Control) else None
    if effect is not None:
        _touched(handset)
        effect.apply(handset)
        return
    tap(handset, x, y)  # as on Android, for a widget without a long press
    if one is not None and one.widget.field is not None:
        handset.selecting = True


def swipe(
    handset: Handset, start: tuple[float, float], end: tuple[float, float], milliseconds: int = 300
) -> None:
    """A swipe. A finger that moves less than :data:`TOUCH_SLOP` taps or presses long."""
    across, along = end[0] - start[0], end[1] - start[1]
    if abs(across) <= TOUCH_SLOP and abs(along) <= TOUCH_SLOP:
        (long_press if milliseconds >= LONG_PRESS_MS else tap)(handset, *start)
        return
    geometry = _touched(handset)
    page = geometry.page + (1 if along < 0 else -1)
    if abs(across) <= abs(along) and 0 <= page < geometry.pages:
        handset.page = page


def type_text(handset: Handset, text: str) -> None:
    """Type a text into the field in focus."""
    if not handset.focus:
        handset.toast = ""
        return
    _touched(handset)
    before = "" if handset.selecting else handset.draft.get(handset.focus, "")
    handset.fill_in(handset.focus, before + text)
    handset.selecting = False


def back(handset: Handset) -> None:
    """Close the selection, or else leave the screen."""
    if handset.selecting:
        handset.selecting = False
    elif handset.picked and handset.stack and handset.stack[-1].kind == "list":
        handset.picked = frozenset()
    else:
        handset.back()


def press(handset: Handset, key: str) -> None:
    """Press a key, given by its name or number.

    Raises:
        ValueError: the handset does not support the key.
    """
    plain = key.upper().removeprefix("KEYCODE_")
    name = _KEYS.get(plain, plain)
    if name not in _KEYS.values():
        known = ", ".join(sorted(_KEYS.values()))
        raise ValueError(f"key {key!r} is not supported; expected one of {known}")
    if name == "ENTER":
        _enter(handset)
        return
    _touched(handset)
    if name == "HOME":
        handset.show(())
    elif name == "BACK":
        back(handset)
    elif name == "DEL" and handset.focus:  # the selected text, or the last letter
        text = handset.draft.get(handset.focus, "")
        handset.fill_in(handset.focus, "" if handset.selecting else text[:-1])
        handset.selecting = False


def combine(handset: Handset, keys: tuple[str, ...]) -> None:
    """Press several keys together.

    Raises:
        ValueError: they are not those that select all text.
    """
    if keys != ("113", "29"):
        raise ValueError("expected 113 29 (select all)")
    handset.selecting = bool(handset.focus)


def _touched(handset: Handset) -> ScreenGeometry:
    """The screen at the time of a touch. The touch takes a second and removes the toast."""
    geometry = lay_out(handset)
    handset.toast = ""
    handset.now += 1
    return geometry


def _enter(handset: Handset) -> None:
    placed = lay_out(handset).placed if handset.focus else ()
    widget = next((one.widget for one in placed if one.widget.field == handset.focus), None)
    if isinstance(widget, Control) and widget.multiline:
        type_text(handset, "\n")
    elif widget is not None:
        _touched(handset)
