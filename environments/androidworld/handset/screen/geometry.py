"""Layout of a handset's screen: the position of each widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.environments.androidworld.handset.handset import Call, Control, Handset, Line, Page
from swarm_ui.environments.androidworld.handset.screen.widgets import button
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
    screen = handset.stack[-1] if handset.stack else None
    page = _home(handset) if screen is None else handset.page_of(screen)
    top = list(page.top)
    if handset.selecting:
        top.append((button("Copy", _copy), button("Paste", _paste)))
    bottom = list(page.bottom)
    if handset.toast:
        bottom.append(Control("label", handset.toast))
    above, at = _stack(top, TOP, False)
    room = BOTTOM - sum(_height(line) for line in bottom)
    starts = _pages(page.rows, room - at)
    shown = max(0, min(handset.page, len(starts) - 1))
    end = _fitting(page.rows, starts[shown], room - at)
    between, _ = _stack(page.rows[starts[shown] : end], at, True)
    below, _ = _stack(bottom, room, False)
    return ScreenGeometry(
        page.title,
        (*above, *between, *below),
        len(starts),
        shown,
        (0, at, WIDTH, room),
    )


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
