"""A graph with many nodes: each node is a dot with its name in the tooltip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarm_ui.graph.dag import Dag, inner_graph
from swarm_ui.graph.topology import Edge
from swarm_ui.viz.layered_layout import Point, bend, centred, mean
from swarm_ui.viz.svg import BLUE, INK, Box, Canvas, arrow, frame, group, small, tag
from swarm_ui.viz.svg_text import listed, number, plain

_WIDEST, _HIGHEST, _MARGIN = 1500.0, 620.0, 16.0
_MOST_DOTS, _MOST_EDGES = 600, 1500


def dots(
    canvas: Canvas,
    graph: Dag,
    depth: Mapping[str, int],
    drawn: Sequence[Edge],
    weights: Mapping[Edge, float],
) -> Point:
    """Draw the graph; returns the width and height. The caption counts what was left out.

    ``drawn``: edges with a separate line. The other edges go from all agents to one node.
    """
    columns, closing = _columns(graph, depth), frozenset(graph.closing)
    apart = len(drawn) < len(graph.edges)
    place, radius, size = _places(columns, closing if apart else frozenset())
    shown = {name for column in columns for name in column}
    edges = [e for e in drawn if e[0] in shown and e[1] in shown]
    step = -(-len(edges) // _MOST_EDGES) or 1
    kept = edges[::step]
    opacity = max(0.12, min(0.6, 9 / max(1, len(kept)) ** 0.5))
    listeners: dict[tuple[str, bool], list[Edge]] = {}
    for edge in kept:
        listeners.setdefault((edge[0], edge in graph.delays), []).append(edge)
    for (sender, late), own in listeners.items():
        curves = "".join(_line(place[a], place[b]) for a, b in own)
        told = f"{sender} → {listed([b for _, b in own])}" + ", in a later round" * late
        strong = opacity * max(weights.get(edge, 1.0) for edge in own)
        path = tag(
            "path",
            tag("title", plain(told)),
            d=curves,
            class_="swarm-edge",
            opacity=strong,
            stroke_dasharray="5 3" if late else None,
        )
        canvas.lines.append(path)
    if apart:
        _collectors(canvas, graph, place, [n for n in closing if n in place], set(edges))
    for name in graph.nodes:
        if name in shown:
            canvas.over.append(_dot(graph, name, place[name], radius, last=name in closing))
    notes = [f"{len(graph.nodes):,} nodes, {len(graph.edges):,} edges"]
    if graph.rounds > 1:
        notes.append(f"{graph.rounds} rounds")
    if graph.delays:
        notes.append(f"{len(graph.delays):,} delayed edges dashed")
    if len(shown) < len(graph.nodes):
        notes.append(f"the first {len(shown):,} nodes drawn")
    if len(kept) < len(drawn):
        notes.append(f"{len(kept):,} edges drawn")
    if apart:
        notes.append(f"all {len(graph.agents):,} agents are heard at the end")
    notes.append(f"names in the tooltips, output {graph.output}")
    caption = " · ".join(notes)
    wide = max(size[0], 420.0)
    room = wide - 2 * _MARGIN
    canvas.over.append(small(_MARGIN, size[1] + 4, caption, room=room, opacity=0.8))
    return wide, size[1] + 14


def _collectors(
    canvas: Canvas,
    graph: Dag,
    place: Mapping[str, Point],
    closing: Sequence[str],
    joined: set[Edge],
) -> None:
    inside = (Box(*place[name], 0.0, 0.0) for name in graph.agents if name in place)
    around = Box.around(inside, 11)
    tooltip = f"all {len(graph.agents):,} agents"
    canvas.below.append(group(tooltip, frame(around)))
    for name in sorted(closing, key=place.__getitem__):
        if any(listener == name for _, listener in joined):
            continue
        to_x, to_y = place[name]
        start = (around.right, max(around.y + 10, min(around.bottom - 10, to_y)))
        heard = f"{name} hears {tooltip}"
        canvas.lines.append(arrow(_line(start, (to_x - 9, to_y)), heard, thick=2.0))


def _columns(graph: Dag, depth: Mapping[str, int]) -> list[list[str]]:
    """Names by column. A name is placed near its predecessors."""
    found: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for name in list(graph.nodes)[:_MOST_DOTS]:
        found[depth[name]].append(name)
    found = [column for column in found if column]
    height: dict[str, float] = {}
    for column in found:
        height |= centred(column)
        near = {n: [height[s] for s in graph.predecessors[n] if s in height] for n in column}
        column.sort(key=lambda name: mean(near[name], 0.0))
        height |= centred(column)
    return found


def _places(
    columns: Sequence[Sequence[str]], apart: frozenset[str]
) -> tuple[dict[str, Point], float, Point]:
    """The place of each dot, the radius of the dots, and the size of the picture.

    Names in ``apart`` are placed a little further right.
    """
    most = max(map(len, columns))
    down = min(26.0, _HIGHEST / most)
    across = min(64.0, _WIDEST / len(columns))
    radius = max(1.5, min(6.0, down * 0.32, across * 0.4))
    high = down * most
    place = {
        name: (
            _MARGIN + 6 + c * across + (30 if name in apart else 0),
            _MARGIN + high / 2 + (k - (len(column) - 1) / 2) * down,
        )
        for c, column in enumerate(columns)
        for k, name in enumerate(column)
    }
    wide = 2 * _MARGIN + 12 + (len(columns) - 1) * across + (30 if apart else 0)
    return place, radius, (wide, high + 2 * _MARGIN)


def _line(start: Point, end: Point) -> str:
    return f"M{number(start[0])} {number(start[1])}{bend(*start, *end)}"


def _dot(graph: Dag, name: str, place: Point, radius: float, *, last: bool) -> str:
    before = graph.predecessors[name]
    tooltip = name + (f"\nhears {listed(before)}" if before else "")
    tooltip += "\nthe output" if name == graph.output else ""
    nested = inner_graph(graph.nodes[name]) is not None
    mark = tag(
        "circle",
        cx=place[0],
        cy=place[1],
        r=radius * (1.5 if last else 1.0),
        fill=BLUE,
        fill_opacity=1.0 if last else 0.55,
        stroke=INK,
        stroke_width=2.0 if name == graph.output else 0.8,
        stroke_dasharray="2 1" if nested else None,
    )
    return group(tooltip, mark)
