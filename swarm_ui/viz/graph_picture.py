"""A graph as a picture: nodes and edges, in layers from left to right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag, inner_graph
from swarm_ui.graph.topology import Edge
from swarm_ui.node import Condition, Node, parts_of
from swarm_ui.viz import svg
from swarm_ui.viz.delayed_lines import delayed_lines, margins
from swarm_ui.viz.dot_graph import dots
from swarm_ui.viz.layered_layout import Layout, Line, bend, layered, lines, longest_paths
from swarm_ui.viz.svg import Box, Canvas, arrow, frame, group, rect, small, text
from swarm_ui.viz.svg_text import cut, listed, number, width

MOST_BOXES, MOST_LINES = 40, 400
"""Maximum numbers of nodes and edges for boxes; larger graphs are drawn as dots."""
_EXPANDED = 40  # nested graphs are opened if no more nodes than these result in all
_DEEP = 3  # levels of nested graphs that are opened
_MOST_SEPARATE = 6  # more agents share one arrow to a node that receives from all of them
_MARGIN, _TITLE, _LONGEST = 14.0, 22.0, 170.0


def graph_svg(graph: Dag, weights: Mapping[Edge, float] | None = None) -> str:
    """The graph as an SVG document.

    Votes are round, and the output has a thick outline. A nested graph is a frame, or a box with
    two outlines if there is no room for its nodes. An edge with a condition is dashed, and so is a
    delayed edge, which passes below the boxes.

    Args:
        graph: what to draw.
        weights: a probability for some edges, written on them and shown as their strength.
    """
    canvas = Canvas()
    shown = _sketch(graph, weights or {}, 0, _total(graph) <= _EXPANDED)
    if shown is None:
        drawn = [*_drawn(graph, _collectors(graph, weights or {})), *graph.delays]
        size = dots(canvas, graph, depths(graph), drawn, weights or {})
    else:
        shown.draw(canvas, _MARGIN, _MARGIN)
        size = shown.width + 2 * _MARGIN, shown.height + 2 * _MARGIN
    edges = f"{len(graph.nodes)} nodes, {len(graph.edges)} edges"
    return canvas.document(*size, f"graph {graph.name}: {edges}")


def depths(graph: Dag) -> dict[str, int]:
    """Column of each node: the length of the longest path to it within a round.

    Votes come after all agents.
    """
    after_agents = itertools.product(graph.agents, graph.closing)
    return longest_paths(graph.nodes, [*graph.immediate, *after_agents])


def _total(graph: Dag) -> int:
    inside = filter(None, map(inner_graph, graph.nodes.values()))
    return len(graph.nodes) + sum(map(_total, inside))


class _Sketch(NamedTuple):
    """A graph with its layout, which can be drawn at any position."""

    graph: Dag
    weights: Mapping[Edge, float]
    layout: Layout
    inside: Mapping[str, _Sketch]
    collectors: tuple[str, ...]
    """Closing nodes that receive from all agents; one arrow is drawn for all edges."""
    framed: bool
    """Whether there is a frame around the agents."""
    width: float
    height: float

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        left = margins(self.layout, list(self.graph.delays))[0]
        corner = (x + 8.0 + left, y + _TITLE) if self.framed else (x, y)
        layout = self.layout.moved(*corner)
        drawn = lines(layout, _drawn(self.graph, self.collectors))
        later, around = delayed_lines(layout, self.graph.delays)
        if self.framed:
            self._frame(canvas, layout, around)
        for edge, line in (drawn | later).items():
            self._edge(canvas, edge, line)
        for name in self.graph.nodes:
            self._node(canvas, name, layout.box(name))

    def _edge(self, canvas: Canvas, edge: Edge, line: Line) -> None:
        graph, (sender, listener) = self.graph, edge
        weight, condition = self.weights.get(edge), graph.when.get(edge)
        delay = graph.delays.get(edge)
        tooltip = f"{sender} → {listener}"
        heard = graph.predecessors[listener]
        if len(heard) > 1:
            tooltip += f"\nheard as number {heard.index(sender) + 1} of {len(heard)}"
        if condition is not None:
            tooltip += f"\nonly {condition_name(condition)}"
        if delay is not None:
            tooltip += f"\ndelivered {delay} round{'s' * (delay > 1)} later"
        if weight is not None:
            tooltip += f"\nprobability {weight:.3f}"
        last, dashed = listener in graph.closing, condition is not None or delay is not None
        strength = (0.4 if last else 0.75) if weight is None else 0.2 + 0.75 * weight
        canvas.lines.append(
            arrow(
                line.curve,
                tooltip,
                opacity=0.85 if dashed and weight is None else strength,
                thick=1.2 if weight is None else 0.8 + 1.8 * weight,
                dash="5 3" if dashed else None,
            )
        )
        words = [] if condition is None else [cut(condition_name(condition), 110, svg.SMALL)]
        words += [] if delay is None else [f"delay {delay}"]
        words += [] if weight is None else [f"{weight:.2f}"]
        if words:
            canvas.label(line.places, ", ".join(words), tooltip)

    def _node(self, canvas: Canvas, name: str, box: Box) -> None:
        graph, node = self.graph, self.graph.nodes[name]
        last = name in graph.closing
        thick = 2.4 if name == graph.output else 1.2
        tooltip, note = _tooltip(graph, name), _note(graph, name)
        inner = self.inside.get(name)
        if inner is not None:
            title = text(box.x + 10, box.y + 15, name, room=box.width - 20, bold=True)
            below = small(box.x + 10, box.bottom - 6, note, opacity=0.8) if note else ""
            outline = rect(box, svg.BLUE, alpha=0.05, radius=10, thick=thick)
            canvas.over.append(group(tooltip, outline, title, below))
            inner.draw(canvas, box.x + 12, box.y + 26)
            return
        radius = min(box.height / 2, 17.0) if last else 6.0
        parts = [rect(box, svg.BLUE, alpha=0.34 if last else 0.16, radius=radius, thick=thick)]
        if inner_graph(node) is not None:
            parts.append(rect(box.grown(-3.5), svg.BLUE, alpha=0.0, radius=max(3.0, radius - 3)))
        x, y, room = box.centre, box.middle + 4, box.width - 14
        parts.append(text(x, y - 7 if note else y, name, anchor="middle", room=room))
        if note:
            parts.append(small(x, y + 8, note, anchor="middle", room=room, opacity=0.8))
        canvas.over.append(group(tooltip, *parts))

    def _frame(self, canvas: Canvas, layout: Layout, later: Sequence[Box]) -> None:
        """Draw the frame around the agents, with the rounds, and the arrows that start at it.

        ``later``: the boxes around the lines of delayed edges, which are inside the frame too.
        """
        graph = self.graph
        last = max((layout.column[name] for name in graph.agents), default=0)
        inside = [box for (_, column), box in layout.boxes.items() if column <= last]
        around = Box.around([*inside, *later], 8)
        tooltip = f"all {len(graph.agents)} agents"
        caption = []
        if graph.rounds > 1:
            most = "" if graph.until is None else "at most "
            caption.append(f"{most}{graph.rounds} rounds")
            tooltip += f" speak {most}{graph.rounds} times, and hear their own last message"
        if graph.until is not None:
            caption.append(f"until {cut(function_name(graph.until), 110, svg.SMALL)}")
        if self.collectors:
            caption.append(f"all {len(graph.agents)} are heard")
        label = small(around.x + 8, around.y - 5, ", ".join(caption), opacity=0.8)
        canvas.below.append(group(tooltip, frame(around), label))
        for name in self.collectors:
            box = layout.box(name)
            start = min(max(box.middle, around.y + 12), around.bottom - 12)
            curve = f"M{number(around.right)} {number(start)}"
            curve += bend(around.right, start, box.x, box.middle)
            heard = f"{name} hears all {len(graph.agents)} agents"
            canvas.lines.append(arrow(curve, heard, thick=2.4, opacity=0.6))


def _sketch(graph: Dag, weights: Mapping[Edge, float], deep: int, expand: bool) -> _Sketch | None:
    """The layout of the graph, or ``None`` if the graph is too large for boxes."""
    collectors = _collectors(graph, weights)
    drawn = _drawn(graph, collectors)
    if len(graph.nodes) > MOST_BOXES or len(drawn) > MOST_LINES:
        return None
    inside: dict[str, _Sketch] = {}
    if expand and deep < _DEEP:
        for name, node in graph.nodes.items():
            found = inner_graph(node)
            inner = None if found is None else _sketch(found, {}, deep + 1, expand)
            if inner is not None:
                inside[name] = inner
    size = {name: _size(graph, name, inside.get(name)) for name in graph.nodes}
    words = [condition_name(c) for c in graph.when.values()] + ["0.00"] * bool(weights)
    gap = max([44.0, *(min(110.0, width(w, svg.SMALL)) + 44 for w in words)])
    layout = layered(depths(graph), drawn, size, (gap, 20.0))
    framed = graph.rounds > 1 or bool(collectors)
    left, right, below = margins(layout, list(graph.delays))
    wide = layout.width + 16.0 * framed + left + right
    high = layout.height + _TITLE * framed * 1.5 + below
    return _Sketch(graph, weights, layout, inside, collectors, framed, wide, high)


def _collectors(graph: Dag, weights: Mapping[Edge, float]) -> tuple[str, ...]:
    if len(graph.agents) <= _MOST_SEPARATE:
        return ()
    agents = frozenset(graph.agents)
    special = {listener for _, listener in (*graph.when, *weights)}
    free = (name for name in graph.closing if name not in special)
    return tuple(name for name in free if agents <= frozenset(graph.predecessors[name]))


def _drawn(graph: Dag, collectors: tuple[str, ...]) -> list[Edge]:
    """The edges without a delay that have a line of their own."""
    agents, edges = frozenset(graph.agents), graph.immediate
    return [edge for edge in edges if edge[1] not in collectors or edge[0] not in agents]


def _size(graph: Dag, name: str, inside: _Sketch | None) -> tuple[float, float]:
    note = _note(graph, name)
    if inside is not None:
        high = inside.height + 38 + (14 if note else 0)
        return max(inside.width + 24, min(_LONGEST, width(name, svg.NAME) * 1.1 + 24)), high
    wide = max(width(name, svg.NAME), width(note, svg.SMALL)) + 22
    return min(_LONGEST, max(64.0, wide)), 44.0 if note else 34.0


def _note(graph: Dag, name: str) -> str:
    """The second line of a node: its adapter, its size, and the nodes inside."""
    node = graph.nodes[name]
    adapter: str | None = getattr(node, "adapter", None)
    notes = [] if adapter is None else [adapter]
    inner = inner_graph(node)
    if inner is not None:
        repeats = f", {inner.rounds}×" if inner.rounds > 1 else ""
        notes.append(f"{len(inner.nodes)} nodes{repeats}")
        if not isinstance(node, Dag):
            notes.append("for each item")
    elif parts := parts_of(node):
        notes.append(" or ".join(parts))
    return " · ".join(notes)


def _called(node: Node) -> str:
    return str(getattr(node, "id", type(node).__name__))


def _tooltip(graph: Dag, name: str) -> str:
    node = graph.nodes[name]
    lines = [f"{name} ({type(node).__name__})"]
    if _called(node) != name:
        lines.append(f"is {_called(node)}")
    adapter: str | None = getattr(node, "adapter", None)
    if adapter is not None:
        lines.append(f"adapter {adapter}")
    inner = inner_graph(node)
    if inner is not None:
        lines.append(f"{len(inner.nodes)} nodes, {len(inner.edges)} edges, rounds {inner.rounds}")
        if not isinstance(node, Dag):
            lines.append("is run for each item")
    if graph.predecessors[name]:
        lines.append(f"hears {listed(graph.predecessors[name])}")
    if name == graph.output:
        lines.append("the output")
    return "\n".join(lines)


def condition_name(condition: Condition) -> str:
    """The label of a condition: ``"if urgent"`` for a function ``urgent``, ``"if (…)"`` for a
    lambda."""
    name = function_name(condition)
    if name.lower() == "otherwise":
        return "otherwise"
    return "if (…)" if name == "<lambda>" else f"if {name}"
