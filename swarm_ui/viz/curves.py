"""Curves between the boxes of a layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from swarm_ui.graph.topology import Edge
from swarm_ui.viz.layered_layout import Layout
from swarm_ui.viz.svg import Box
from swarm_ui.viz.svg_text import number

Point = tuple[float, float]


class Line(NamedTuple):
    """A drawn connection."""

    curve: str
    places: list[Point]
    """Places for a label on the last stretch, which belongs to this line alone."""


def lines(layout: Layout, links: Iterable[Edge]) -> dict[Edge, Line]:
    """A curve for each link. Curves that end at one box end beside each other."""
    pairs = list(links)
    ends: dict[str, list[Edge]] = {}
    for link in pairs:
        ends.setdefault(link[1], []).append(link)
    port: dict[Edge, float] = {}
    for listener, arriving in ends.items():
        box = layout.box(listener)
        arriving.sort(key=lambda link: _before(layout, link).middle)
        room = max(0.0, min(box.height - 14, 7.0 * (len(arriving) - 1)))
        step = room / max(1, len(arriving) - 1)
        for k, link in enumerate(arriving):
            port[link] = box.middle - room / 2 + k * step
    return {link: _line(layout, link, port[link]) for link in pairs}


def _before(layout: Layout, link: Edge) -> Box:
    """The box or passage in the column before the listener."""
    return layout.boxes[link[0], layout.column[link[1]] - 1]


def _line(layout: Layout, link: Edge, end: float) -> Line:
    sender, listener = link
    first, last = layout.column[sender], layout.column[listener]
    box = layout.boxes[sender, first]
    y = box.middle
    x = layout.spans[first][1]
    curve = f"M{number(box.right)} {number(y)}" + (f"H{number(x)}" if x > box.right else "")
    places: list[Point] = []
    for column in range(first + 1, last + 1):
        there = layout.boxes[listener if column == last else sender, column]
        to_x, to_y = layout.spans[column][0], end if column == last else there.middle
        curve += bend(x, y, to_x, to_y)
        if column == last:
            places = [_along(x, y, to_x, to_y, t) for t in (0.42, 0.3, 0.54, 0.2, 0.66, 0.78)]
            curve += f"H{number(there.x)}" if there.x > to_x else ""
        else:
            x, y = layout.spans[column][1], to_y
            curve += f"H{number(x)}"
    return Line(curve, places)


def bend(x: float, y: float, to_x: float, to_y: float) -> str:
    """The path from one point to another that starts and ends horizontally."""
    half = (x + to_x) / 2
    if abs(to_y - y) < 0.05:
        return f"H{number(to_x)}"
    return (
        f"C{number(half)} {number(y)} {number(half)} {number(to_y)} {number(to_x)} {number(to_y)}"
    )


def _along(x: float, y: float, to_x: float, to_y: float, t: float) -> Point:
    """The point of a bend at ``t`` in [0, 1]."""
    s = 1 - t
    half = (x + to_x) / 2
    across = s**3 * x + 3 * s * s * t * half + 3 * s * t * t * half + t**3 * to_x
    down = (s**3 + 3 * s * s * t) * y + (3 * s * t * t + t**3) * to_y
    return across, down
