"""A graph as a picture: layered, left to right, plain SVG without Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from swarm_ui.topology import Edge, topological

if TYPE_CHECKING:
    from swarm_ui.graph import CollabGraph

_WIDE, _HIGH, _GAP_X, _GAP_Y, _MARGIN = 104, 34, 76, 22, 16


class Box(NamedTuple):
    """Where a node is drawn: left, top, width, height in pixels."""

    x: float
    y: float
    width: float
    height: float


Slot = tuple[str, int]
"""A node in its own column, or in a later one the place where its long edges pass."""


def depths(graph: CollabGraph) -> dict[str, int]:
    """Column of each node: the length of the longest path to it; votes after all agents."""
    depth: dict[str, int] = {}
    closing = frozenset(graph.closing)
    last = -1
    for agents_first in (True, False):
        for name in topological(graph.heard):
            if (name in closing) is not agents_first:
                low = -1 if agents_first else last
                depth[name] = 1 + max([low, *(depth[s] for s in graph.heard[name])])
        last = max(depth.values(), default=-1)
    return depth


def columns(graph: CollabGraph) -> list[list[Slot]]:
    """What stands or passes in each column, top to bottom, near what it is joined to."""
    depth = depths(graph)
    reach = dict(depth)
    for sender, listener in graph.edges:
        reach[sender] = max(reach[sender], depth[listener] - 1)
    found: list[list[Slot]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in graph.nodes:
        for column in range(depth[name], reach[name] + 1):
            found[column].append((name, column))
    place: dict[Slot, float] = {}
    for slots in found:
        weight = {slot: _centre(graph, slot, depth, place, k) for k, slot in enumerate(slots)}
        slots.sort(key=lambda slot: weight[slot])
        for k, slot in enumerate(slots):
            place[slot] = k - (len(slots) - 1) / 2
    return found


def _centre(
    graph: CollabGraph,
    slot: Slot,
    depth: Mapping[str, int],
    place: Mapping[Slot, float],
    otherwise: float,
) -> float:
    """Mean height of what a slot is joined to in the column before."""
    name, column = slot
    senders = [name] if depth[name] < column else graph.heard[name]
    known = [place[s, column - 1] for s in senders if (s, column - 1) in place]
    return sum(known) / len(known) if known else otherwise


def layout(graph: CollabGraph) -> tuple[dict[Slot, Box], float, float]:
    """A box for each slot (flat where edges pass), and the size of the whole picture."""
    found, depth = columns(graph), depths(graph)
    width = max(_WIDE, 7.4 * max(map(len, graph.nodes)) + 20)
    heights = [sum(_height(slot, depth) + _GAP_Y for slot in slots) for slots in found]
    total = max(heights)
    boxes: dict[Slot, Box] = {}
    for column, slots in enumerate(found):
        y = _MARGIN + (total - heights[column] + _GAP_Y) / 2
        for slot in slots:
            height = _height(slot, depth)
            boxes[slot] = Box(_MARGIN + column * (width + _GAP_X), y, width, height)
            y += height + _GAP_Y
    right = 2 * _MARGIN + len(found) * (width + _GAP_X) - _GAP_X
    return boxes, right, total + 2 * _MARGIN + (18 if graph.rounds > 1 else 0)


def _height(slot: Slot, depth: Mapping[str, int]) -> float:
    return _HIGH if depth[slot[0]] == slot[1] else 0.0


def svg(graph: CollabGraph, weights: Mapping[Edge, float] | None = None) -> str:
    """The graph as an SVG document.

    Args:
        graph: what to draw.
        weights: a probability for some edges, written on them and shown as their strength.
    """
    boxes, width, height = layout(graph)
    depth = depths(graph)
    closing = frozenset(graph.closing)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif" '
        f'font-size="12" fill="none" stroke="currentColor">',
        f"<title>{escape(graph.name)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor" '
        'stroke="none"/></marker></defs>',
    ]
    for sender, listener in graph.edges:
        weight = None if weights is None else weights.get((sender, listener))
        way = [boxes[sender, column] for column in range(depth[sender], depth[listener])]
        way.append(boxes[listener, depth[listener]])
        parts.append(_arrow(way, weight, listener in closing))
    for name, column in depth.items():
        box = boxes[name, column]
        parts.append(_node(name, box, round=name in closing, bold=name == graph.output))
    if graph.rounds > 1:
        parts.append(
            f'<text x="{_MARGIN}" y="{height - 8:g}" fill="currentColor" stroke="none" '
            f'opacity="0.7">{graph.rounds} rounds</text>'
        )
    return "\n".join([*parts, "</svg>"])


def _node(name: str, box: Box, *, round: bool, bold: bool) -> str:
    radius = box.height / 2 if round else 6
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="{radius:g}" stroke-width="{2.5 if bold else 1.2}" fill="#7aa2f7" '
        f'fill-opacity="{0.32 if round else 0.16}"/>'
        f'<text x="{box.x + box.width / 2:g}" y="{box.y + box.height / 2 + 4:g}" '
        f'text-anchor="middle" fill="currentColor" stroke="none">{escape(name)}</text>'
    )


def _arrow(way: list[Box], weight: float | None, faint: bool) -> str:
    """A curve from the first box through the flat ones to the last."""
    x, y = way[0].x + way[0].width, way[0].y + way[0].height / 2
    curve = f"M{x:g} {y:g}"
    middle = (x, y)
    for box in way[1:]:
        to_x, to_y = box.x, box.y + box.height / 2
        half = (to_x - x) / 2
        curve += f"C{x + half:g} {y:g} {to_x - half:g} {to_y:g} {to_x:g} {to_y:g}"
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        x, y = to_x, to_y
        if box is not way[-1]:
            x += box.width
            curve += f"H{x:g}"
    strength = (0.35 if faint else 0.8) if weight is None else 0.15 + 0.85 * weight
    line = f'<path d="{curve}" opacity="{strength:.2f}" marker-end="url(#tip)"/>'
    if weight is None:
        return line
    return line + (
        f'<text x="{middle[0]:g}" y="{middle[1] - 4:g}" text-anchor="middle" '
        f'font-size="10" fill="currentColor" stroke="none">{weight:.2f}</text>'
    )
