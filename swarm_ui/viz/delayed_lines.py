"""Lines of delayed edges, which pass below all boxes, so that they may run backwards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from swarm_ui.graph.topology import Edge
from swarm_ui.viz.layered_layout import Layout, Line, Point
from swarm_ui.viz.svg import Box
from swarm_ui.viz.svg_text import number

_ASIDE, _APART, _DOWN, _CORNER = 10.0, 3.0, 16.0, 7.0


def margins(layout: Layout, edges: Sequence[Edge]) -> tuple[float, float, float]:
    """Room that the lines need left of, right of and below the layout."""
    if not edges:
        return 0.0, 0.0, 0.0
    side = _ASIDE + _APART * len(edges) + 4.0
    last = len(layout.spans) - 1
    left = side if any(layout.column[listener] == 0 for _, listener in edges) else 0.0
    right = side if any(layout.column[sender] == last for sender, _ in edges) else 0.0
    return left, right, _DOWN * len(edges) + 6.0


def delayed_lines(layout: Layout, edges: Iterable[Edge]) -> tuple[dict[Edge, Line], list[Box]]:
    """A line for each edge, and the box around each line.

    A line leaves its sender to the right, passes below all boxes, and enters its listener from the
    left, so it crosses no box.
    """
    found: dict[Edge, Line] = {}
    around: list[Box] = []
    bottom = max(box.bottom for box in layout.boxes.values())
    for k, edge in enumerate(edges):
        sender, listener = layout.box(edge[0]), layout.box(edge[1])
        right = layout.spans[layout.column[edge[0]]][1] + _ASIDE + _APART * k
        left = layout.spans[layout.column[edge[1]]][0] - _ASIDE - _APART * k
        lane = bottom + _DOWN * (k + 1)
        start, end = _port(sender), _port(listener)
        corners = [
            (sender.right, start), (right, start), (right, lane), (left, lane), (left, end),
            (listener.x, end),
        ]  # fmt: skip
        middle = (left + right) / 2
        places = [(middle + shift, lane) for shift in (0.0, -24.0, 24.0)]
        found[edge] = Line(_rounded(corners), places)
        x, y = min(left, right), min(start, end)
        around.append(Box(x, y, abs(right - left), lane - y))
    return found, around


def _port(box: Box) -> float:
    """Where a line leaves or enters a box: below the other lines."""
    return box.middle + min(10.0, box.height / 2 - 5.0)


def _rounded(points: Sequence[Point]) -> str:
    """A path along points that lie on horizontal and vertical lines, with round corners."""
    path = f"M{number(points[0][0])} {number(points[0][1])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        x, y = _towards(corner, before)
        to_x, to_y = _towards(corner, after)
        path += f"L{number(x)} {number(y)}Q{number(corner[0])} {number(corner[1])} "
        path += f"{number(to_x)} {number(to_y)}"
    return path + f"L{number(points[-1][0])} {number(points[-1][1])}"


def _towards(corner: Point, other: Point) -> Point:
    """The point at which the round corner begins on the side of another point."""
    distance = sum(abs(a - b) for a, b in zip(corner, other, strict=True))
    share = min(_CORNER, distance / 2) / distance if distance else 0.0
    x, y = (a + share * (b - a) for a, b in zip(corner, other, strict=True))
    return x, y
