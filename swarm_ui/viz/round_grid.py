"""Calls of several rounds: a column per round, a row per agent, then a column for the calls
after the last round (votes and their successors)."""

from __future__ import annotations

from swarm_ui.graph.topology import Edge, predecessors
from swarm_ui.viz import call_cells
from swarm_ui.viz.layered_layout import bend, longest_paths, ordered
from swarm_ui.viz.svg import GREY, WORDS, Box, rect, text
from swarm_ui.viz.svg_text import number
from swarm_ui.viz.trace_panels import GAP, Panel, PanelDrawing

_HEAD, _PAD, _ACROSS, _SHORTEST = 24.0, 12.0, 44.0, 15.0


def grid(drawing: PanelDrawing) -> tuple[float, float]:
    """Draw the calls; returns the width and height of the drawing."""
    panel = drawing.panel
    rows = _rows(panel)
    reach = _reach(panel, rows)
    place, size = _boxes(drawing, rows, max(reach.values(), default=0.0))
    column = {id: k for id, (k, _) in place.items()}
    # In a damaged file, a call may have received messages of a later round.
    heard = [link for link in panel.heard if column[link[0]] <= column[link[1]]]
    box = {id: b for id, (_, b) in place.items()}
    bottom = drawing.y + size[1]
    ports = _ports(panel, heard, box, column)
    spans = {k: (b.x, b.right) for k, b in place.values()}
    for link in heard:
        sender, listener, end = box[link[0]], box[link[1]], ports[link]
        between = [spans[k] for k in range(column[link[0]] + 1, column[link[1]]) if k in spans]
        if column[link[0]] == column[link[1]]:
            curve = _arc(sender, listener, end, reach.get(link, _SHORTEST))
        elif not between:
            curve = f"M{number(sender.right)} {number(sender.middle)}"
            curve += bend(sender.right, sender.middle, listener.x, end)
        else:
            # It passes other rounds between two rows, or below everything beside a vote.
            share = (panel.cells[link[0]].round + 1) / (len(panel.rounds) + 1)
            beside_vote = column[link[1]] > len(panel.rounds)
            lane = bottom - 5 * share if beside_vote else sender.bottom + GAP * share
            curve = _detour(sender, listener, end, lane, (between[0][0], between[-1][1]))
        drawing.arrow(link, curve)
    for id in panel.cells:
        drawing.cell(id, box[id])
    return size


def _rows(panel: Panel) -> dict[str, int]:
    """The row of each agent, below the agents from which it receives within a round."""
    cells = panel.cells
    names = list(dict.fromkeys([*panel.agents, *(c.name for c in cells.values())]))
    names = [name for name in names if name in panel.agents]
    known = set(names)
    inside = {
        (cells[a].name, cells[b].name)
        for a, b in panel.heard
        if cells[a].round == cells[b].round and {cells[a].name, cells[b].name} <= known
    }
    inside |= {edge for edge in panel.edges if set(edge) <= known}
    inside = {(a, b) for a, b in inside if a != b}
    place = {name: k for k, name in enumerate(names)}
    links = sorted(inside, key=lambda edge: (place[edge[0]], place[edge[1]]))
    return {name: k for k, name in enumerate(ordered(predecessors(names, links)))}


def _reach(panel: Panel, rows: dict[str, int]) -> dict[Edge, float]:
    """Distance by which each line within a round bends to the left. Longer lines bend further."""
    inside: dict[Edge, int] = {}
    for a, b in panel.heard:
        sender, listener = panel.cells[a], panel.cells[b]
        both = sender.name in rows and listener.name in rows
        if both and sender.round == listener.round:
            inside[a, b] = abs(rows[sender.name] - rows[listener.name])
    most = max(inside.values(), default=1)
    step = min(12.0, 64.0 / max(1, most - 1))
    return {link: _SHORTEST + step * (distance - 1) for link, distance in inside.items()}


def _boxes(
    drawing: PanelDrawing, rows: dict[str, int], reach: float
) -> tuple[dict[str, tuple[int, Box]], tuple[float, float]]:
    """Draw bands and headings; returns the column and box of each call and the whole size."""
    panel = drawing.panel
    wide, high = call_cells.SIZE
    gutter = reach + 10 if reach else 0.0
    tall = max(1, len(rows)) * (high + GAP) - GAP
    top = drawing.y + _HEAD + _PAD
    place: dict[str, tuple[int, Box]] = {}
    x = drawing.x
    for k, round in enumerate(panel.rounds):
        band = Box(x, drawing.y + _HEAD, gutter + wide + 2 * _PAD, tall + 2 * _PAD)
        left = x + _PAD + gutter
        drawing.canvas.below.append(rect(band, GREY, alpha=0.08, stroke=None, radius=10))
        middle, words = left + wide / 2, f"round {round + 1}"
        drawing.canvas.over.append(text(middle, drawing.y + 16, words, size=WORDS, anchor="middle"))
        for cell in panel.cells.values():
            if cell.round == round and cell.name in rows:
                y = top + rows[cell.name] * (high + GAP)
                place[cell.id] = k, Box(left, y, wide, high)
        x = band.right + _ACROSS
    x, deep = _closing(drawing, place, x, top + tall / 2)
    low = max(tall + _PAD, deep - top + _PAD) + _HEAD + _PAD
    return place, (x - _ACROSS - drawing.x, low)


def _closing(
    drawing: PanelDrawing, place: dict[str, tuple[int, Box]], x: float, middle: float
) -> tuple[float, float]:
    """Place the closing calls right of all rounds; returns their right and lower end."""
    panel = drawing.panel
    last = {id: cell for id, cell in panel.cells.items() if id not in place}
    links = [(a, b) for a, b in panel.heard if a in last and b in last]
    found = longest_paths(list(last), links)
    first = len(panel.rounds)
    deep = 0.0
    for depth in sorted(set(found.values())):
        here = {id: call_cells.size(last[id]) for id in last if found[id] == depth}
        y = middle - (sum(high + GAP for _, high in here.values()) - GAP) / 2
        y = max(y, drawing.y + _HEAD)
        for id, (wide, high) in here.items():
            place[id] = first + depth, Box(x, y, wide, high)
            y += high + GAP
        deep = max(deep, y - GAP)
        x += max(wide for wide, _ in here.values()) + _ACROSS
    return x, deep


def _ports(
    panel: Panel, heard: list[Edge], box: dict[str, Box], column: dict[str, int]
) -> dict[Edge, float]:
    """Height at which each line ends at its listener's box: the own last message in the middle,
    messages of the same round above it, the nearest first, so that those lines do not cross."""
    ends: dict[str, list[Edge]] = {}
    for link in heard:
        ends.setdefault(link[1], []).append(link)
    found: dict[Edge, float] = {}
    for id, links in ends.items():
        there = box[id]
        inside = [link for link in links if column[link[0]] == column[id]]
        own = [x for x in links if panel.cells[x[0]].name == panel.cells[id].name]
        inside.sort(key=lambda link: abs(box[link[0]].y - there.y))
        step = min(7.0, (there.height / 2 - 14) / max(1, len(inside) - 1))
        for k, link in enumerate(inside):
            found[link] = there.y + 9 + k * step
        others = [link for link in links if link not in inside and link not in own]
        others.sort(key=lambda link: (box[link[0]].y, -column[link[0]]))
        room = min(there.height - 16, 7.0 * (len(others) - 1))
        for k, link in enumerate(others):
            found[link] = there.middle - room / 2 + k * room / max(1, len(others) - 1)
        found |= dict.fromkeys(own, there.middle)
    return found


def _arc(sender: Box, listener: Box, end: float, reach: float) -> str:
    """A curve that leaves the sender and enters the listener on the left side."""
    start = sender.bottom - 11 if sender.y < listener.y else sender.y + 11
    swing = sender.x - reach / 0.75
    return (
        f"M{number(sender.x)} {number(start)}C{number(swing)} {number(start)} "
        f"{number(swing)} {number(end)} {number(listener.x)} {number(end)}"
    )


def _detour(sender: Box, listener: Box, end: float, lane: float, span: tuple[float, float]) -> str:
    """A line that passes other rounds at the height of ``lane``."""
    start, stop = span
    return (
        f"M{number(sender.right)} {number(sender.middle)}"
        f"{bend(sender.right, sender.middle, start, lane)}H{number(stop)}"
        f"{bend(stop, lane, listener.x, end)}"
    )
