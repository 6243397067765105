"""A trace as a picture: the calls of each round, the messages between them, the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from swarm_ui.topology import Edge
from swarm_ui.trace.records import Trace
from swarm_ui.viz import calls, svg
from swarm_ui.viz.calls import Cell, Palette, seconds
from swarm_ui.viz.layout import Point, layered, lines, longest_paths
from swarm_ui.viz.svg import (
    Box,
    Canvas,
    Markup,
    arrow,
    clipped,
    counted,
    cut,
    frame,
    group,
    number,
    rect,
    tag,
    text,
    width,
)

_MOST_CALLS = 100
"""Traces with more calls are a caption only."""
_MARGIN, _LINE, _GAP, _PAD, _HEAD = 14.0, 20.0, 20.0, 12.0, 24.0
_NARROWEST, _WIDEST = 460.0, 760.0  # limits of the width that the caption may ask for


def trace_svg(trace: Trace) -> str:
    """One decision as an SVG document.

    Each round is a column; a single round is drawn as a layered graph. The stripe of a box has the
    colour of the proposal. Full lines are messages, dashed lines an agent's own last message, and
    dotted lines edges that carried nothing. A failed call is red, and a skipped call is faint. The
    tooltip has up to 2,000 characters of the message. More than 100 calls are counted only.
    """
    canvas, colours = Canvas(), Palette(trace)
    few = len(trace.calls) + len(trace.skipped) <= _MOST_CALLS
    found, (decision, colour) = _panels(trace) if few else [], _decision(trace, colours)
    caption = f"goal: {trace.observation.goal}", decision, _counts(trace)
    longest = max(width(words, svg.NAME + 1) for words in caption)
    wide = max(_NARROWEST, min(_WIDEST, longest * 1.1 + 20))
    y = _MARGIN + _LINE * len(caption) + 2
    for panel in found:
        inner = bool(panel.prefix)
        size = _graph(canvas, panel, colours, _MARGIN + 12 * inner, y + 24 * inner)
        if inner:
            around = Box(_MARGIN, y, max(size[0], width(panel.title, svg.WORDS)) + 24, size[1] + 36)
            canvas.below.append(frame(around))
            corner = around.x + 12, around.y + 16
            canvas.over.append(text(*corner, panel.title, size=svg.WORDS, bold=True))
            size = around.width, around.height
        wide, y = max(wide, size[0]), y + size[1] + _MARGIN
    _write(canvas, caption, colour, wide)
    label = f"run {trace.run}".strip() + ": " + ", ".join(caption)
    return canvas.document(wide + 2 * _MARGIN, y, label[:300])


# -- the calls of one graph -------------------------------------------------------------------


class CallPlaces(NamedTuple):
    """Where calls are drawn."""

    boxes: Mapping[str, Box]
    curves: Mapping[Edge, str]
    rounds: Sequence[tuple[float, Box, str]]
    """The middle, the band and the title of each round of several."""
    width: float
    height: float


@dataclass(slots=True)
class _Panel:
    """The calls of one graph: of the whole graph (prefix ``""``) or of a nested one."""

    prefix: str
    """The prefix of the message ids, such as ``"team:1/"``."""
    agents: Sequence[str]
    """Names of the nodes that are called in every round."""
    edges: Sequence[Edge]
    """The known edges within a round between agents."""
    cells: dict[str, Cell] = field(default_factory=dict)
    """The calls by message id."""

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

    def placed(self, sizes: Mapping[str, Point], gap: Point, x: float, y: float) -> CallPlaces:
        """The calls in boxes of these sizes, with their top left at ``(x, y)``."""
        heard = tuple(link for link in self.heard if link[0] != link[1])
        rounds = {id: None if self.closes(c) else c.round for id, c in self.cells.items()}
        single = len({*rounds.values()} - {None}) < 2
        ids = {cell.name: id for id, cell in self.cells.items()} if single else {}
        known = [(ids[a], ids[b]) for a, b in self.edges if a in ids and b in ids]
        silent = tuple(link for link in known if link not in heard)
        placing = tuple((id, rounds[id], sizes[id]) for id in self.cells)
        return _placed(placing, heard, silent, gap, x, y)


def _panels(trace: Trace) -> list[_Panel]:
    """All calls, skipped ones too, grouped by their graph. The outermost graph comes first."""
    found: dict[str, _Panel] = {"": _Panel("", trace.agents, trace.immediate)}
    made = {call.id: call for call in trace.calls}
    for id in [*made, *(id for id in trace.skipped if id not in made)]:
        head, slash, leaf = id.rpartition("/")
        name, _, round = leaf.rpartition(":")
        call = made.get(id)
        turn = call.round if call is not None else int(round) if round.isdecimal() else 0
        panel = found.setdefault(head + slash, _Panel(head + slash, (), ()))
        panel.cells[id] = Cell(id, name or leaf, turn, call)
    for panel in found.values():
        if panel.prefix:  # the agents of a nested graph speak before its last round
            last = max(cell.round for cell in panel.cells.values())
            early = [cell.name for cell in panel.cells.values() if cell.round < last]
            panel.agents = early or [cell.name for cell in panel.cells.values()]
    return [panel for panel in found.values() if panel.cells]


def _graph(
    canvas: Canvas, panel: _Panel, colours: Palette, x: float, y: float
) -> tuple[float, float]:
    """Draw a box for each call; returns width and height."""
    sizes = {id: calls.size(cell) for id, cell in panel.cells.items()}
    drawn, heard = panel.placed(sizes, (54.0, _GAP), x, y), {*panel.heard}
    for link, curve in drawn.curves.items():
        if link in heard:
            canvas.lines.append(_arrow(panel, link, curve))
        else:
            told = f"nothing travelled from {link[0]} to {link[1]}"
            dots = tag("path", d=curve, opacity=0.4, stroke_dasharray="1 4")
            canvas.lines.append(group(told, dots))
    for middle, band, title in drawn.rounds:
        canvas.below.append(rect(band, svg.GREY, alpha=0.08, stroke=None, radius=10))
        canvas.over.append(text(middle, y + 16, title, size=svg.WORDS, anchor="middle"))
    for id, cell in panel.cells.items():
        last = panel.closes(cell)
        canvas.over.append(calls.draw_call(cell, drawn.boxes[id], colours, last=last))
    return drawn.width, drawn.height


def call_places(trace: Trace, size: Point, gap: Point) -> CallPlaces:
    """All calls in boxes of one size: nested graphs stand below the graph that calls them."""
    found = CallPlaces({}, {}, (), 0.0, 0.0)
    for panel in _panels(trace):
        drawn = panel.placed(dict.fromkeys(panel.cells, size), gap, 0.0, found.height)
        boxes, curves = {**found.boxes, **drawn.boxes}, {**found.curves, **drawn.curves}
        wide, high = max(found.width, drawn.width), found.height + drawn.height
        found = CallPlaces(boxes, curves, (), wide, high)
    return found


@lru_cache(maxsize=256)
def _placed(
    ids: tuple[tuple[str, int | None, Point], ...], heard: tuple[Edge, ...],
    silent: tuple[Edge, ...], gap: Point, x: float, y: float,
) -> CallPlaces:  # fmt: skip
    """Of several rounds, each is a column; a single one is a layered graph. Calls without a round
    come last. Kept, because the decisions of a run often have equal graphs."""
    turns = sorted({round for _, round, _ in ids if round is not None})
    several = len(turns) > 1
    turn = {id: len(turns) if round is None else turns.index(round) for id, round, _ in ids}
    links = [*heard, *silent]
    column: dict[str, int] = {}
    for place in sorted({*turn.values()}):
        here = [id for id in turn if turn[id] == place]
        layers = place == len(turns) or not several
        within = [link for link in links if layers and turn[link[0]] == turn[link[1]] == place]
        first = max(column.values(), default=-1) + 1
        column |= {id: first + deep for id, deep in longest_paths(here, within).items()}
    # In a damaged file, a call may have received messages of a later one.
    joined = [link for link in links if column[link[0]] < column[link[1]]]
    beside = [link for link in heard if column[link[0]] == column[link[1]]]
    gutter, head = 44.0 * bool(beside), (_HEAD + _PAD if several else 8.0)
    sizes = {id: size for id, _, size in ids}
    layout = layered(column, joined, sizes, (gap[0] + gutter, gap[1]))
    layout = layout.moved(x + gutter + _PAD * several, y + head)
    curves = {link: line.curve for link, line in lines(layout, joined).items()}
    curves |= {link: _beside(layout.box(link[0]), layout.box(link[1])) for link in beside}
    rounds = []
    for (left, right), round in zip(layout.spans, turns if several else (), strict=False):
        wide = right - left + gutter + 2 * _PAD
        band = Box(left - gutter - _PAD, y + _HEAD, wide, layout.height + 2 * _PAD)
        rounds.append(((left + right) / 2, band, f"round {round + 1}"))
    wide, high = layout.width + gutter + 2 * _PAD * several, layout.height + head + _PAD * several
    return CallPlaces({id: layout.box(id) for id in turn}, curves, rounds, wide, high)


def _beside(sender: Box, listener: Box) -> str:
    """A curve between boxes of one column, left of them."""
    start, down = sender.middle, listener.y > sender.y
    end = listener.y + 6 if down else listener.bottom - 6
    swing = sender.x - (10 + min(30.0, abs(end - start) / 8)) / 0.75
    return (
        f"M{number(sender.x)} {number(start)}C{number(swing)} {number(start)} "
        f"{number(swing)} {number(end)} {number(listener.x)} {number(end)}"
    )


def _arrow(panel: _Panel, link: Edge, curve: str) -> Markup:
    sender, listener = panel.cells[link[0]], panel.cells[link[1]]
    own = sender.name == listener.name
    failed = sender.call is not None and sender.call.error is not None
    told = f"{listener.id} heard {sender.id}" + ", a failure" * failed + " (its own)" * own
    return arrow(
        curve,
        told,
        colour=svg.RED if failed else svg.INK,
        opacity=0.4 if own else 0.7 if len(panel.heard) <= 60 else 0.45,
        thick=1.0 if own else 1.2,
        dash="3 3" if own else None,
    )


# -- the caption ------------------------------------------------------------------------------


def _counts(trace: Trace) -> str:
    failed = sum(call.error is not None for call in trace.calls)
    tokens = sum(c.usage.prompt_tokens + c.usage.completion_tokens for c in trace.calls)
    early = f" (until {trace.ended_by})" if trace.ended_by else ""
    counts = [
        f"{counted(len(trace.agents), 'agent')}, {counted(trace.rounds, 'round')}{early}",
        counted(len(trace.calls), "call") + ", too many to draw" * (len(trace.calls) > _MOST_CALLS),
        f"{failed:,} failed" if failed else "",
        f"{len(trace.skipped):,} skipped" if trace.skipped else "",
        f"{tokens:,} tokens" if tokens else "",
        seconds(max((call.ended for call in trace.calls), default=0.0)),
    ]
    return " · ".join(filter(None, counts))


def _decision(trace: Trace, colours: Palette) -> tuple[str, str]:
    """The decision in words, and its colour."""
    if trace.action is not None:
        return f"decision: {trace.action}", colours.of(trace.action)
    proposed = any(message.action is not None for message in trace.messages)
    failed = any(call.error is not None for call in trace.calls)
    last = trace.messages[-1].content if trace.messages else ""
    answer = last if trace.output is None else trace.output
    if not (proposed or failed) and answer.strip():
        # A graph of functions may answer without an action; that is no failure.
        return f"answer: {answer}", svg.GREY
    return trace.undecided or "", svg.RED


def _write(canvas: Canvas, caption: Sequence[str], colour: str, wide: float) -> None:
    dot = Box(_MARGIN, _MARGIN + _LINE + 1.5, 10, 10)
    canvas.over.append(rect(dot, colour, alpha=1.0, stroke=None, radius=2))
    for k, words in enumerate(caption):
        x, size = _MARGIN + 16 * (k == 1), (svg.NAME, svg.NAME + 1, svg.SMALL + 0.5)[k]
        y, room, opacity = _MARGIN + 11 + _LINE * k, wide + _MARGIN - x, 0.75 if k == 2 else None
        line = text(x, y, words, size=size, room=room, bold=k == 1, opacity=opacity)
        whole = clipped(words, 2000) if cut(words, room, size) != words else ""
        canvas.over.append(group(whole, line))
