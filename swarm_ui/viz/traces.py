"""A trace as a picture: the calls of each round, the messages between them, the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from swarm_ui.graph.topology import Edge, predecessors
from swarm_ui.trace.records import Trace
from swarm_ui.viz import calls, svg
from swarm_ui.viz.calls import Cell, Palette, seconds
from swarm_ui.viz.layout import bend, layered, lines, longest_paths, ordered
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
    small,
    tag,
    text,
    width,
)

MOST_CALLS = 40
"""In traces with more calls, each call is drawn as a small square."""
_MARGIN, _LINE, _GAP, _PAD, _ACROSS, _HEAD = 14.0, 20.0, 20.0, 12.0, 44.0, 24.0
_NARROWEST, _WIDEST = 460.0, 760.0  # limits of the width that the caption may ask for
_SIDE, _MOST_SQUARES = 18.0, 1000


def trace_svg(trace: Trace) -> str:
    """One decision as an SVG document.

    Each round is a column; a single round is drawn as a layered graph. The stripe of a box has the
    colour of the proposal. Full lines are messages, dashed lines an agent's own last message, and
    dotted lines edges that carried nothing. A failed call is red, and a skipped call is faint. The
    tooltip has up to 2,000 characters of the message. With more than 40 calls, each is a square.
    """
    canvas, colours = Canvas(), Palette(trace)
    found, caption = _panels(trace), _caption(trace, colours)
    longest = max(width(words, svg.NAME + 1) for words, _ in caption)
    wide = max(_NARROWEST, min(_WIDEST, longest * 1.1 + 20))
    y = _MARGIN + _LINE * len(caption) + 2
    small_ones = sum(len(panel.cells) for panel in found) > MOST_CALLS
    for panel in found:
        inner = bool(panel.prefix)
        drawing = _Drawing(canvas, panel, colours, _MARGIN + 12 * inner, y + 24 * inner)
        if small_ones:
            size = drawing.squares()
        else:
            size = drawing.rounds() if len(panel.rounds) > 1 else drawing.layers()
        if inner:
            around = Box(_MARGIN, y, max(size[0], width(panel.title, svg.WORDS)) + 24, size[1] + 36)
            canvas.below.append(frame(around))
            corner = around.x + 12, around.y + 16
            canvas.over.append(text(*corner, panel.title, size=svg.WORDS, bold=True))
            size = around.width, around.height
        wide, y = max(wide, size[0]), y + size[1] + _MARGIN
    _write(canvas, caption, wide)
    label = f"run {trace.run}".strip() + ": " + ", ".join(words for words, _ in caption)
    return canvas.document(wide + 2 * _MARGIN, y, label[:300])


# -- the calls of one graph -------------------------------------------------------------------


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
        if panel.prefix:
            panel.agents = _speakers(panel)
    return [panel for panel in found.values() if panel.cells]


def _speakers(panel: _Panel) -> list[str]:
    """The agents of a nested graph: the names with calls before the last round."""
    last = max(panel.rounds)
    early = dict.fromkeys(cell.name for cell in panel.cells.values() if cell.round < last)
    return list(early or dict.fromkeys(cell.name for cell in panel.cells.values()))


@dataclass(slots=True)
class _Drawing:
    """A panel that is drawn at a place. Each way to draw it returns its width and height."""

    canvas: Canvas
    panel: _Panel
    colours: Palette
    x: float
    y: float

    def layers(self) -> tuple[float, float]:
        """Draw the calls of one round as a layered graph; closing calls come last."""
        panel, heard = self.panel, self.panel.heard
        ids = {cell.name: cell.id for cell in panel.cells.values()}
        known = [(ids[a], ids[b]) for a, b in panel.edges if a in ids and b in ids]
        silent = [link for link in known if link not in heard]
        closing = {id: panel.closes(cell) for id, cell in panel.cells.items()}
        last = [(a, b) for a in closing for b in closing if closing[b] and not closing[a]]
        column = longest_paths(closing, [*heard, *silent, *last])
        # In a damaged file, a call may have received messages of a later one.
        joined = [link for link in [*heard, *silent] if column[link[0]] < column[link[1]]]
        size = {id: calls.size(cell) for id, cell in panel.cells.items()}
        layout = layered(column, joined, size, (54.0, _GAP)).moved(self.x, self.y + 8)
        for link, line in lines(layout, joined).items():
            if link in silent:
                told = f"nothing travelled from {link[0]} to {link[1]}"
                dots = tag("path", d=line.curve, opacity=0.4, stroke_dasharray="1 4")
                self.canvas.lines.append(group(told, dots))
            else:
                self._arrow(link, line.curve)
        for id, cell in panel.cells.items():
            self._cell(cell, layout.box(id))
        return layout.width, layout.height + 8

    def rounds(self) -> tuple[float, float]:
        """Draw a column per round with a row per agent, then columns for the calls after the last
        round (votes and their successors)."""
        panel = self.panel
        rows = _rows(panel)
        bent = {
            (a, b): 12.0 + 10.0 * abs(rows[panel.cells[a].name] - rows[panel.cells[b].name])
            for a, b in panel.heard
            if panel.cells[a].round == panel.cells[b].round
            and {panel.cells[a].name, panel.cells[b].name} <= rows.keys()
        }
        gutter = max(bent.values(), default=0.0) + 10.0 * bool(bent)
        place, (wide, high) = self._places(rows, gutter)
        lane, near = self.y + high + 6, 2 * _PAD + _ACROSS + gutter
        arriving: dict[str, list[Edge]] = {}
        for link in panel.heard:
            if link in bent or place[link[0]].right < place[link[1]].x:  # else it is damaged
                arriving.setdefault(link[1], []).append(link)
        for id, links in arriving.items():
            box = place[id]
            links.sort(key=lambda link: (link not in bent, place[link[0]].y))
            for k, link in enumerate(links, start=1):
                end, sender = box.y + k * box.height / (len(links) + 1), place[link[0]]
                if link in bent:
                    start, swing = sender.middle, sender.x - bent[link] / 0.75
                    curve = f"M{number(sender.x)} {number(start)}C{number(swing)} {number(start)} "
                    curve += f"{number(swing)} {number(end)} {number(box.x)} {number(end)}"
                else:
                    x, y = sender.right, sender.middle
                    curve = f"M{number(x)} {number(y)}"
                    if box.x - x > near + 1:  # below the rounds that it passes
                        stop, high = box.x - _ACROSS, max(high, lane + _PAD - self.y)
                        curve += bend(x, y, x + _ACROSS, lane) + f"H{number(stop)}"
                        x, y = stop, lane
                    curve += bend(x, y, box.x, end)
                self._arrow(link, curve)
        for id, cell in panel.cells.items():
            self._cell(cell, place[id])
        return wide, high

    def _places(
        self, rows: dict[str, int], gutter: float
    ) -> tuple[dict[str, Box], tuple[float, float]]:
        """Draw bands and headings; returns the box of each call and the whole size."""
        panel, (wide, high) = self.panel, calls.SIZE
        tall = max(1, len(rows)) * (high + _GAP) - _GAP
        top, x = self.y + _HEAD + _PAD, self.x
        place: dict[str, Box] = {}
        for round in panel.rounds:
            band = Box(x, self.y + _HEAD, gutter + wide + 2 * _PAD, tall + 2 * _PAD)
            left = x + _PAD + gutter
            here = [c for c in panel.cells.values() if c.round == round and c.name in rows]
            for cell in here:
                place[cell.id] = Box(left, top + rows[cell.name] * (high + _GAP), wide, high)
            if here:
                self.canvas.below.append(rect(band, svg.GREY, alpha=0.08, stroke=None, radius=10))
                head = self.y + 16, f"round {round + 1}"
                title = text(left + wide / 2, *head, size=svg.WORDS, anchor="middle")
                self.canvas.over.append(title)
                x = band.right + _ACROSS
        bottom = top + tall + _PAD
        last = {id: cell for id, cell in panel.cells.items() if id not in place}
        links = [(a, b) for a, b in panel.heard if a in last and b in last]
        depth = longest_paths(list(last), links)
        for column in sorted(set(depth.values())):
            sizes = {id: calls.size(last[id]) for id in last if depth[id] == column}
            y = top + tall / 2 - (sum(h + _GAP for _, h in sizes.values()) - _GAP) / 2
            y = max(y, self.y + _HEAD)
            for id, size in sizes.items():
                place[id] = Box(x, y, *size)
                y += size[1] + _GAP
            bottom = max(bottom, y - _GAP)
            x += max(w for w, _ in sizes.values()) + _ACROSS
        return place, (x - _ACROSS - self.x, bottom - self.y)

    def squares(self) -> tuple[float, float]:
        """Draw a square for each call: a row for each name, a column for each round; or rows of
        squares, where there are many names."""
        cells = list(self.panel.cells.values())[:_MOST_SQUARES]
        names, rounds = list(dict.fromkeys(cell.name for cell in cells)), self.panel.rounds
        table = len(rounds) > 1 and len(names) <= MOST_CALLS
        room = min(160.0, max(width(name, svg.NAME) for name in names) + 4) if table else 0.0
        left, wide = self.x + room + 10 * table, (44.0 if table else _SIDE)
        over = self.canvas.over
        if table:
            for k, round in enumerate(rounds):
                head = left + k * wide + wide / 2, self.y + 10, f"r{round + 1}"
                over.append(small(*head, anchor="middle"))
            for k, name in enumerate(names):
                over.append(text(self.x, self.y + 30 + k * _SIDE, name, size=svg.WORDS, room=room))
        for k, cell in enumerate(cells):
            column, row = k % MOST_CALLS, k // MOST_CALLS
            if table:
                column, row = rounds.index(cell.round), names.index(cell.name)
            x, y = left + column * wide, self.y + 18 * table + row * _SIDE
            over.append(self._square(cell, Box(x, y, wide - 2, _SIDE - 2)))
        high = 18 + (len(names) if table else -(-len(cells) // MOST_CALLS)) * _SIDE
        note = "a square is a call in the colour of its proposal; red: failed; dashed: skipped"
        if len(self.panel.cells) > len(cells):
            note = f"{len(self.panel.cells) - len(cells):,} more calls are not drawn; {note}"
        over.append(small(self.x, self.y + high + 12, note, opacity=0.75))
        across = (len(rounds) if table else min(len(cells), MOST_CALLS)) * wide
        return max(left - self.x + across, width(note, svg.SMALL)), high + 16

    def _square(self, cell: Cell, box: Box) -> Markup:
        told = calls.tooltip_text(cell, 160)
        if cell.call is None:
            return group(told, rect(box, svg.GREY, alpha=0.04, dash="2 2", radius=3, thick=0.8))
        failed = cell.call.error is not None
        colour = svg.RED if failed else self.colours.of(cell.action)
        alpha = 0.1 if cell.action is None and not failed else 0.8
        return group(told, rect(box, colour, alpha=alpha, radius=3, thick=0.6))

    def _arrow(self, link: Edge, curve: str) -> None:
        sender, listener = self.panel.cells[link[0]], self.panel.cells[link[1]]
        own = sender.name == listener.name
        failed = sender.call is not None and sender.call.error is not None
        tooltip = f"{listener.id} heard {sender.id}" + (", a failure" if failed else "")
        strength = 0.7 if len(self.panel.heard) <= 60 else 0.45
        self.canvas.lines.append(
            arrow(
                curve,
                f"{tooltip} (its own)" if own else tooltip,
                colour=svg.RED if failed else svg.INK,
                opacity=0.4 if own else strength,
                thick=1.0 if own else 1.2,
                dash="3 3" if own else None,
            )
        )

    def _cell(self, cell: Cell, box: Box) -> None:
        last = self.panel.closes(cell)
        self.canvas.over.append(calls.draw_call(cell, box, self.colours, last=last, most=2000))


def _rows(panel: _Panel) -> dict[str, int]:
    """The row of each agent, below the agents from which it receives within a round."""
    cells = panel.cells
    names = list(dict.fromkeys([*panel.agents, *(c.name for c in cells.values())]))
    names = [name for name in names if name in panel.agents]
    inside = [(cells[a].name, cells[b].name) for a, b in panel.heard
              if cells[a].round == cells[b].round]  # fmt: skip
    place = {name: k for k, name in enumerate(names)}
    links = {(a, b) for a, b in [*inside, *panel.edges] if a != b and {a, b} <= place.keys()}
    order = sorted(links, key=lambda edge: (place[edge[0]], place[edge[1]]))
    return {name: k for k, name in enumerate(ordered(predecessors(names, order)))}


# -- the caption ------------------------------------------------------------------------------

_Words = tuple[str, str]
"""A line of the caption and the colour of the square before it; ``""`` for none."""


def _caption(trace: Trace, colours: Palette) -> list[_Words]:
    failed = sum(call.error is not None for call in trace.calls)
    tokens = sum(c.usage.prompt_tokens + c.usage.completion_tokens for c in trace.calls)
    early = f" (until {trace.ended_by})" if trace.ended_by else ""
    counts = [
        f"{counted(len(trace.agents), 'agent')}, {counted(trace.rounds, 'round')}{early}",
        counted(len(trace.calls), "call"),
        f"{failed:,} failed" if failed else "",
        f"{len(trace.skipped):,} skipped" if trace.skipped else "",
        f"{tokens:,} tokens" if tokens else "",
        seconds(max((call.ended for call in trace.calls), default=0.0)),
    ]
    return [
        (f"goal: {trace.observation.goal}", ""),
        _decision(trace, colours),
        (" · ".join(filter(None, counts)), ""),
    ]


def _decision(trace: Trace, colours: Palette) -> _Words:
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


def _write(canvas: Canvas, caption: list[_Words], wide: float) -> None:
    for k, (words, colour) in enumerate(caption):
        x, y = _MARGIN, _MARGIN + 11 + _LINE * k
        if colour:
            dot = Box(x, y - 9.5, 10, 10)
            canvas.over.append(rect(dot, colour, alpha=1.0, stroke=None, radius=2))
            x += 16
        room = wide + _MARGIN - x
        size = (svg.NAME, svg.NAME + 1, svg.SMALL + 0.5)[k]
        line = text(
            x, y, words, size=size, room=room, bold=k == 1, opacity=0.75 if k == 2 else None
        )
        whole = clipped(words, 2000) if cut(words, room, size) != words else ""
        canvas.over.append(group(whole, line))
