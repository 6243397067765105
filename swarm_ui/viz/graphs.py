"""A graph as a picture: nodes and edges, in layers from left to right."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag, inner_graph
from swarm_ui.node import Condition, parts_of
from swarm_ui.topology import Edge, predecessors
from swarm_ui.viz import svg
from swarm_ui.viz.edges import matrix
from swarm_ui.viz.layout import Layout, Line, delayed, layered, lines, longest_paths, ordered
from swarm_ui.viz.svg import (
    Box,
    Canvas,
    arrow,
    counted,
    cut,
    frame,
    group,
    listed,
    rect,
    small,
    text,
    width,
)

MOST_BOXES, MOST_LINES = 40, 400
"""Maximum numbers of nodes and edges for boxes; larger graphs are drawn as a matrix."""
_EXPANDED = 40  # nested graphs are opened if no more nodes than these result in all
_DEEP = 3  # levels of nested graphs that are opened
_MARGIN, _TITLE, _LONGEST = 14.0, 22.0, 170.0


def graph_svg(graph: Dag) -> str:
    """The graph as an SVG document.

    Votes are round, and the output has a thick outline. A nested graph is a frame, or a box with
    two outlines if there is no room for its nodes. An edge with a condition is dashed, and so is a
    delayed edge, which passes below the boxes. A graph of more than 40 nodes is drawn as a matrix
    with senders down and listeners across.
    """
    canvas = Canvas()
    label = f"{counted(len(graph.nodes), 'node')}, {counted(len(graph.edges), 'edge')}"
    if len(graph.nodes) > MOST_BOXES or len(graph.edges) > MOST_LINES:
        order = ordered(predecessors(graph.nodes, graph.immediate))
        canvas.over.append(text(_MARGIN, _MARGIN + 11, f"{graph.name}: {label}", size=svg.WORDS))
        present = dict.fromkeys(graph.edges, 1.0)
        size = matrix(canvas, present, order, _MARGIN + 22, delays=graph.delays)
    else:
        shown = _sketch(graph, 0, _total(graph) <= _EXPANDED)
        shown.draw(canvas, _MARGIN, _MARGIN)
        size = shown.width + 2 * _MARGIN, shown.height + 2 * _MARGIN
    return canvas.document(*size, f"graph {graph.name}: {label}")


def _total(graph: Dag) -> int:
    inside = filter(None, map(inner_graph, graph.nodes.values()))
    return len(graph.nodes) + sum(map(_total, inside))


class _Sketch(NamedTuple):
    """A graph with its layout, which can be drawn at any position."""

    graph: Dag
    layout: Layout
    inside: Mapping[str, _Sketch]
    around: Box
    """All boxes and lines of the layout."""

    @property
    def framed(self) -> bool:
        """Whether there is a frame around the agents."""
        return self.graph.rounds > 1

    @property
    def width(self) -> float:
        return self.around.width + 16.0 * self.framed

    @property
    def height(self) -> float:
        return self.around.height + _TITLE * self.framed * 1.5

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        left, top = x - self.around.x, y - self.around.y
        layout = self.layout.moved(left + 8.0 * self.framed, top + _TITLE * self.framed)
        later, around = delayed(layout, self.graph.delays)
        if self.framed:
            self._frame(canvas, layout, around)
        for edge, line in (lines(layout, self.graph.immediate) | later).items():
            self._edge(canvas, edge, line)
        for name in self.graph.nodes:
            self._node(canvas, name, layout.box(name))

    def _edge(self, canvas: Canvas, edge: Edge, line: Line) -> None:
        graph, (sender, listener) = self.graph, edge
        condition, delay = graph.when.get(edge), graph.delays.get(edge)
        tooltip, words = [f"{sender} → {listener}"], []
        heard = graph.predecessors[listener]
        if len(heard) > 1:
            tooltip.append(f"heard as number {heard.index(sender) + 1} of {len(heard)}")
        if condition is not None:
            tooltip.append(f"only {condition_name(condition)}")
            words.append(cut(condition_name(condition), 110, svg.SMALL))
        if delay is not None:
            tooltip.append(f"delivered {counted(delay, 'round')} later")
            words.append(f"delay {delay}")
        dashed = condition is not None or delay is not None
        strength = 0.85 if dashed else 0.4 if listener in graph.closing else 0.75
        told = "\n".join(tooltip)
        dash = "5 3" if dashed else None
        canvas.lines.append(arrow(line.curve, told, opacity=strength, dash=dash))
        if words:
            canvas.label(line.places, ", ".join(words), told)

    def _node(self, canvas: Canvas, name: str, box: Box) -> None:
        graph, inner = self.graph, self.inside.get(name)
        last = name in graph.closing
        thick = 2.4 if name == graph.output else 1.2
        tooltip, note = _tooltip(graph, name), _note(graph, name)
        if inner is not None:
            title = text(box.x + 10, box.y + 15, name, room=box.width - 20, bold=True)
            below = [small(box.x + 10, box.bottom - 6, note, opacity=0.8)] if note else []
            outline = rect(box, svg.BLUE, alpha=0.05, radius=10, thick=thick)
            canvas.over.append(group(tooltip, outline, title, *below))
            inner.draw(canvas, box.x + 12, box.y + 26)
            return
        radius = min(box.height / 2, 17.0) if last else 6.0
        parts = [rect(box, svg.BLUE, alpha=0.34 if last else 0.16, radius=radius, thick=thick)]
        if inner_graph(graph.nodes[name]) is not None:
            parts.append(rect(box.grown(-3.5), svg.BLUE, alpha=0.0, radius=max(3.0, radius - 3)))
        x, y, room = box.centre, box.middle + 4, box.width - 14
        parts.append(text(x, y - 7 if note else y, name, anchor="middle", room=room))
        if note:
            parts.append(small(x, y + 8, note, anchor="middle", room=room, opacity=0.8))
        canvas.over.append(group(tooltip, *parts))

    def _frame(self, canvas: Canvas, layout: Layout, later: Sequence[Box]) -> None:
        """Draw the frame around the agents, with the rounds. ``later``: the boxes around the lines
        of delayed edges, which are inside the frame too."""
        graph = self.graph
        last = max((layout.column[name] for name in graph.agents), default=0)
        inside = [box for (_, column), box in layout.boxes.items() if column <= last]
        around = Box.around([*inside, *later], 8)
        most = "" if graph.until is None else "at most "
        caption = f"{most}{graph.rounds} rounds"
        speak = f"speak {most}{graph.rounds} times, and hear their own last message"
        tooltip = f"all {counted(len(graph.agents), 'agent')} {speak}"
        if graph.until is not None:
            caption += f", until {cut(function_name(graph.until), 110, svg.SMALL)}"
        label = small(around.x + 8, around.y - 5, caption, opacity=0.8)
        canvas.below.append(group(tooltip, frame(around), label))


def _sketch(graph: Dag, deep: int, expand: bool) -> _Sketch:
    inside: dict[str, _Sketch] = {}
    if expand and deep < _DEEP:
        for name, node in graph.nodes.items():
            inner = inner_graph(node)
            if inner is not None:
                inside[name] = _sketch(inner, deep + 1, expand)
    size = {name: _size(graph, name, inside.get(name)) for name in graph.nodes}
    words = [condition_name(c) for c in graph.when.values()]
    gap = max([44.0, *(min(110.0, width(w, svg.SMALL)) + 44 for w in words)])
    # Votes come after all agents.
    after_agents = itertools.product(graph.agents, graph.closing)
    depth = longest_paths(graph.nodes, [*graph.immediate, *after_agents])
    layout = layered(depth, graph.immediate, size, (gap, 20.0))
    around = Box.around([*layout.boxes.values(), *delayed(layout, graph.delays)[1]], 0.0)
    return _Sketch(graph, layout, inside, around)


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
        notes.append(f"{counted(len(inner.nodes), 'node')}{repeats}")
        if not isinstance(node, Dag):
            notes.append("for each item")
    elif parts := parts_of(node):
        notes.append(" or ".join(parts))
    return " · ".join(notes)


def _tooltip(graph: Dag, name: str) -> str:
    node = graph.nodes[name]
    told = [f"{name} ({type(node).__name__})"]
    called = str(getattr(node, "id", type(node).__name__))
    if called != name:
        told.append(f"is {called}")
    if note := _note(graph, name):
        told.append(note)
    if graph.predecessors[name]:
        told.append(f"hears {listed(graph.predecessors[name])}")
    if name == graph.output:
        told.append("the output")
    return "\n".join(told)


def condition_name(condition: Condition) -> str:
    """The label of a condition: ``"if urgent"`` for a function ``urgent``, ``"if (…)"`` for a
    lambda."""
    name = function_name(condition)
    if name.lower() == "otherwise":
        return "otherwise"
    return "if (…)" if name == "<lambda>" else f"if {name}"
