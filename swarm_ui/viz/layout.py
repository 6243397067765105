"""Boxes in columns from left to right, and curves between them.

Long lines are routed through dummy boxes, called passages, so that no line crosses a box.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from swarm_ui.errors import GraphError
from swarm_ui.topology import Edge, predecessors, topological
from swarm_ui.viz.svg import Box, number

Slot = tuple[str, int]
"""A name and a column: the box itself, or a passage for its lines in a later column."""

Point = tuple[float, float]
Near = dict[Slot, list[Slot]]

_SWEEPS = 5
_BULGE, _LANE = 24.0, 16.0


class Layout(NamedTuple):
    """The positions of all boxes and passages."""

    boxes: Mapping[Slot, Box]
    """Boxes of height 0 are passages."""
    column: Mapping[str, int]
    spans: Sequence[tuple[float, float]]
    """Left and right of each column."""
    width: float
    height: float

    def box(self, name: str) -> Box:
        return self.boxes[name, self.column[name]]

    def moved(self, x: float, y: float) -> Layout:
        return self._replace(
            boxes={slot: box.moved(x, y) for slot, box in self.boxes.items()},
            spans=[(left + x, right + x) for left, right in self.spans],
        )


def ordered(before: Mapping[str, Sequence[str]]) -> list[str]:
    """Names in topological order, or in the order given where a file holds a cycle."""
    try:
        return topological(before)
    except GraphError:
        return list(before)


def longest_paths(names: Iterable[str], edges: Iterable[Edge]) -> dict[str, int]:
    """The number of edges on the longest path to each name."""
    before = predecessors(names, edges)
    depth: dict[str, int] = {}
    for name in ordered(before):
        depth[name] = 1 + max((depth.get(sender, -1) for sender in before[name]), default=-1)
    return depth


def layered(
    column: Mapping[str, int],
    links: Iterable[Edge],
    size: Mapping[str, tuple[float, float]],
    gap: tuple[float, float],
) -> Layout:
    """Place boxes so that few lines cross and most lines are nearly straight.

    Args:
        column: the column of each name; ties are broken by the order of the names.
        links: pairs of names; the second is in a later column.
        size: width and height of each box.
        gap: between columns and between boxes.
    """
    slots, left, right = _slots(column, list(links))
    _sort(slots, left, right)
    tall = {s: size[s[0]][1] if column[s[0]] == s[1] else 0.0 for c in slots for s in c}
    centre = _settled(slots, {s: [*left[s], *right[s]] for s in left}, tall, gap[1])
    top = min(centre[s] - tall[s] / 2 for s in centre)
    boxes: dict[Slot, Box] = {}
    spans: list[tuple[float, float]] = []
    x = 0.0
    for index, here in enumerate(slots):
        wide = max(size[name][0] for name, _ in here if column[name] == index)
        for slot in here:
            own = size[slot[0]][0] if column[slot[0]] == index else wide
            y = centre[slot] - tall[slot] / 2 - top
            boxes[slot] = Box(x + (wide - own) / 2, y, own, tall[slot])
        spans.append((x, x + wide))
        x += wide + gap[0]
    bottom = max(box.bottom for box in boxes.values())
    return Layout(boxes, column, spans, x - gap[0], bottom)


def _slots(column: Mapping[str, int], links: Sequence[Edge]) -> tuple[list[list[Slot]], Near, Near]:
    """The slots of each column, and the slots that each one is joined to, left and right of it.

    All long lines of one sender share their passages.
    """
    reach = dict(column)
    for sender, listener in links:
        reach[sender] = max(reach[sender], column[listener] - 1)
    slots: list[list[Slot]] = [[] for _ in range(max(column.values()) + 1)]
    joints: list[tuple[Slot, Slot]] = []
    for name, first in column.items():
        for place in range(first, reach[name] + 1):
            slots[place].append((name, place))
            if place > first:
                joints.append(((name, place - 1), (name, place)))
    for sender, listener in links:
        joints.append(((sender, column[listener] - 1), (listener, column[listener])))
    left: Near = {slot: [] for here in slots for slot in here}
    right: Near = {slot: [] for slot in left}
    for a, b in joints:
        left[b].append(a)
        right[a].append(b)
    return slots, left, right


def _sort(slots: Sequence[list[Slot]], left: Near, right: Near) -> None:
    """Order the slots of each column by the slots that they are joined to, in sweeps to and fro."""
    place = {slot: k - len(here) / 2 for here in slots for k, slot in enumerate(here)}
    for sweep in range(_SWEEPS):
        near, columns = (right, slots[-2::-1]) if sweep % 2 else (left, slots[1:])
        for here in columns:
            want = {s: fmean(place[t] for t in near[s]) if near[s] else place[s] for s in here}
            here.sort(key=want.__getitem__)
            place |= {slot: k - len(here) / 2 for k, slot in enumerate(here)}


def _settled(
    slots: Sequence[Sequence[Slot]], near: Near, tall: Mapping[Slot, float], gap: float
) -> dict[Slot, float]:
    """The vertical centre of each slot, close to the slots that it is joined to. Passages have more
    weight, which keeps long lines straight."""
    centre: dict[Slot, float] = {}
    for column in slots:
        centre |= zip(column, _spread([0.0] * len(column), column, tall, gap), strict=True)
    for sweep in range(2 * _SWEEPS):
        for column in slots if sweep % 2 == 0 else slots[::-1]:
            wanted = []
            for slot in column:
                weight = [1.0 if tall[slot] or tall[t] else 6.0 for t in near[slot]]
                pull = sum(w * centre[t] for w, t in zip(weight, near[slot], strict=True))
                wanted.append(pull / sum(weight) if weight else centre[slot])
            centre |= zip(column, _spread(wanted, column, tall, gap), strict=True)
    return centre


def _spread(
    wanted: Sequence[float], column: Sequence[Slot], tall: Mapping[Slot, float], gap: float
) -> list[float]:
    """Centres near the wanted ones (least squares), in order and with gaps between the boxes."""
    offsets = [0.0]
    for above, below in itertools.pairwise(column):
        lines = not tall[above] and not tall[below]
        room = gap * 0.5 if lines else gap * 0.75 if not tall[above] or not tall[below] else gap
        offsets.append(offsets[-1] + (tall[above] + tall[below]) / 2 + room)
    # Without their offsets the centres must not decrease: neighbours that would are pooled.
    pools: list[tuple[float, int]] = []
    for height, offset in zip(wanted, offsets, strict=True):
        pools.append((height - offset, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, n), (b, m) = pools[-2:]
            pools[-2:] = [((a * n + b * m) / (n + m), n + m)]
    level = [mean for mean, count in pools for _ in range(count)]
    return [a + b for a, b in zip(level, offsets, strict=True)]


class Line(NamedTuple):
    curve: str
    places: list[Point]
    """Places for a label on the last stretch, which belongs to this line alone."""


def lines(layout: Layout, links: Iterable[Edge]) -> dict[Edge, Line]:
    """A curve for each link. Curves that end at the same box end next to each other."""
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


def delayed(layout: Layout, links: Iterable[Edge]) -> tuple[dict[Edge, Line], list[Box]]:
    """A line for each link that may run backwards, and the box around each line.

    A line leaves its sender to the right, passes below all boxes, and enters its listener from the
    left, so it crosses no box.
    """
    found: dict[Edge, Line] = {}
    around: list[Box] = []
    bottom = max(box.bottom for box in layout.boxes.values())
    for k, link in enumerate(links):
        sender, listener = layout.box(link[0]), layout.box(link[1])
        right = layout.spans[layout.column[link[0]]][1]
        left = layout.spans[layout.column[link[1]]][0]
        lane, swing = bottom + _LANE * (k + 1), _BULGE + 4.0 * k
        start, end = _below(sender), _below(listener)
        curve = (
            f"M{number(sender.right)} {number(start)}H{number(right)}"
            f"C{number(right + swing)} {number(start)} {number(right + swing)} {number(lane)} "
            f"{number(right)} {number(lane)}H{number(left)}"
            f"C{number(left - swing)} {number(lane)} {number(left - swing)} {number(end)} "
            f"{number(left)} {number(end)}H{number(listener.x)}"
        )
        middle = (left + right) / 2
        found[link] = Line(curve, [(middle + shift, lane) for shift in (0.0, -24.0, 24.0)])
        x, y = min(left, right) - swing, min(start, end)
        around.append(Box(x, y, abs(right - left) + 2 * swing, lane - y))
    return found, around


def _below(box: Box) -> float:
    """Where a delayed line leaves or enters a box: below the other lines."""
    return box.middle + min(10.0, box.height / 2 - 5.0)


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
