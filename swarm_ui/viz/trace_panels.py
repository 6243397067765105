"""The calls of a trace, grouped by the graph that made them, and the messages between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swarm_ui.graph.topology import Edge
from swarm_ui.trace.records import Trace
from swarm_ui.viz import call_cells
from swarm_ui.viz.call_cells import Cell, Palette
from swarm_ui.viz.layered_layout import layered, lines, longest_paths
from swarm_ui.viz.svg import INK, RED, Box, Canvas, arrow, group, tag

GAP = 20.0
"""The vertical gap between boxes in pixels."""
_TOP_SPACE = 8.0
_MOST_CHARACTERS = 2000  # characters of each part of a tooltip


@dataclass(slots=True)
class Panel:
    """The calls of one graph: of the whole graph (prefix ``""``) or of a nested one."""

    prefix: str
    """The prefix of the message ids, such as ``"team:1/"``."""
    agents: Sequence[str]
    """Names of the nodes that are called in every round."""
    edges: Sequence[Edge]
    """The known edges within a round between agents."""
    cells: dict[str, Cell] = field(default_factory=dict)
    """The calls of the panel, as cells, by message id."""

    @property
    def title(self) -> str:
        """The call of the outer graph that these calls belong to."""
        name, _, round = self.prefix.removesuffix("/").rpartition(":")
        mapped = name.removesuffix("/item")
        if mapped != name:
            return f"inside {mapped}, item {round}"
        if round.isdecimal() and len(round) < 10:  # a damaged file may have any id
            round = str(int(round) + 1)
        return f"inside {name}, round {round}"

    @property
    def rounds(self) -> list[int]:
        return sorted({cell.round for cell in self.cells.values()})

    @property
    def heard(self) -> list[Edge]:
        """Pairs of message ids: the received message, and the message that it influenced."""
        return [
            (heard, cell.id)
            for cell in self.cells.values()
            if cell.call is not None
            for heard in cell.call.heard
            if heard in self.cells
        ]

    def closes(self, cell: Cell) -> bool:
        return cell.name not in self.agents


def panels(trace: Trace) -> list[Panel]:
    """All calls, skipped ones too, grouped by their graph. The outermost graph comes first."""
    found: dict[str, Panel] = {"": Panel("", trace.agents, trace.immediate)}
    made = {call.id: call for call in trace.calls}
    for id in [*made, *(id for id in trace.skipped if id not in made)]:
        head, slash, leaf = id.rpartition("/")
        name, _, round = leaf.rpartition(":")
        call = made.get(id)
        turn = call.round if call is not None else int(round) if round.isdecimal() else 0
        panel = found.setdefault(head + slash, Panel(head + slash, (), ()))
        panel.cells[id] = Cell(id, name or leaf, turn, call)
    for panel in found.values():
        if panel.prefix:
            panel.agents = _speakers(panel)
    return [panel for panel in found.values() if panel.cells]


def _speakers(panel: Panel) -> list[str]:
    """The agents of a nested graph: the names with calls before the last round."""
    last = max(panel.rounds)
    early = dict.fromkeys(cell.name for cell in panel.cells.values() if cell.round < last)
    return list(early or dict.fromkeys(cell.name for cell in panel.cells.values()))


@dataclass(slots=True)
class PanelDrawing:
    canvas: Canvas
    panel: Panel
    colours: Palette
    x: float
    y: float
    strength: float = 0.7
    """The opacity of the lines in the drawing."""

    def arrow(self, link: Edge, curve: str) -> None:
        sender, listener = self.panel.cells[link[0]], self.panel.cells[link[1]]
        own = sender.name == listener.name
        failed = sender.call is not None and sender.call.error is not None
        tooltip = f"{listener.id} heard {sender.id}" + (", a failure" if failed else "")
        self.canvas.lines.append(
            arrow(
                curve,
                f"{tooltip} (its own)" if own else tooltip,
                colour=RED if failed else INK,
                opacity=0.4 if own else self.strength,
                thick=1.0 if own else 1.2,
                dash="3 3" if own else None,
            )
        )

    def cell(self, id: str, box: Box) -> None:
        cell = self.panel.cells[id]
        last = self.panel.closes(cell)
        self.canvas.over.append(
            call_cells.draw_call(cell, box, self.colours, last=last, most=_MOST_CHARACTERS)
        )


# -- one round: a layered graph ---------------------------------------------------------------


def layers(drawing: PanelDrawing) -> tuple[float, float]:
    """Draw the calls of one round, each right of its predecessors; returns width and height."""
    panel = drawing.panel
    heard = panel.heard
    silent = _silent(panel, heard)
    column = _columns(panel, [*heard, *silent])
    size = {id: call_cells.size(cell) for id, cell in panel.cells.items()}
    joined = [link for link in [*heard, *silent] if column[link[0]] < column[link[1]]]
    layout = layered(column, joined, size, (54.0, GAP)).moved(drawing.x, drawing.y + _TOP_SPACE)
    drawn = lines(layout, joined)
    for link in joined:
        if link in silent:
            tooltip = f"nothing travelled from {link[0]} to {link[1]}"
            dots = tag("path", d=drawn[link].curve, opacity=0.4, stroke_dasharray="1 4")
            drawing.canvas.lines.append(group(tooltip, dots))
        else:
            drawing.arrow(link, drawn[link].curve)
    for id in panel.cells:
        drawing.cell(id, layout.box(id))
    return layout.width, layout.height + _TOP_SPACE


def _silent(panel: Panel, heard: Sequence[Edge]) -> list[Edge]:
    ids = {cell.name: cell.id for cell in panel.cells.values()}
    found = [(ids[a], ids[b]) for a, b in panel.edges if a in ids and b in ids]
    there = set(heard)
    return [link for link in found if link not in there]


def _columns(panel: Panel, links: Sequence[Edge]) -> dict[str, int]:
    """Column of each call: the length of the longest path to it. Closing calls come last."""
    closing = {id: panel.closes(cell) for id, cell in panel.cells.items()}
    last = [(a, b) for a in closing for b in closing if closing[b] and not closing[a]]
    return longest_paths(closing, [*links, *last])
