"""Draws a trace with many calls: each call is a square in the colour of its proposed action."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

from swarm_ui.trace.records import Trace
from swarm_ui.viz import call_cells, svg
from swarm_ui.viz.call_cells import Cell, Palette
from swarm_ui.viz.svg import Box, Canvas, group, rect, small, tag, text
from swarm_ui.viz.svg_text import number, width
from swarm_ui.viz.trace_panels import Panel, PanelDrawing

_MOST_CELLS, _MOST_ROWS, _MOST_CHARACTERS = 1000, 40, 160
_SIDE, _STEP, _WIDE = 16.0, 20.0, 44.0


def compact(
    canvas: Canvas, trace: Trace, panels: Sequence[Panel], colours: Palette, x: float, y: float
) -> tuple[float, float]:
    """Draw all panels, one below the other; returns the width and height of the drawing."""
    left, wide, top = _MOST_CELLS, 0.0, y
    for panel in panels:
        cells = list(panel.cells.values())[:left]
        if not cells:
            break
        left -= len(cells)
        if panel.prefix:
            canvas.over.append(text(x, y + 10, panel.title, size=svg.WORDS, bold=True))
            y += 22
        few = len({cell.name for cell in cells}) <= _MOST_ROWS
        draw = _table if few and len(panel.rounds) > 1 else _blocks
        size = draw(PanelDrawing(canvas, panel, colours, x, y), cells)
        wide, y = max(wide, size[0]), y + size[1] + 14
    if trace.ballot:
        canvas.over.append(text(x, y + 10, "ballot", size=svg.WORDS, bold=True))
        canvas.over.append(call_cells.draw_ballot(trace.ballot, Box(x, y + 18, 400, 0), colours))
        y += 26 + call_cells.ballot_rows(trace.ballot) * call_cells.BAR
    rest = sum(len(panel.cells) for panel in panels) - (_MOST_CELLS - left)
    note = (
        "each square is a call in the colour of its proposal; a cross: failed; "
        "dashed: skipped; tooltips say who heard whom"
    )
    note = f"{rest:,} more calls are not drawn; {note}" if rest else note
    canvas.over.append(small(x, y + 10, note, opacity=0.75))
    return max(wide, width(note, svg.SMALL)), y + 16 - top


def _table(drawing: PanelDrawing, cells: Sequence[Cell]) -> tuple[float, float]:
    """Draw a row for each name and a column for each round."""
    x, y, over = drawing.x, drawing.y, drawing.canvas.over
    names, rounds = list(dict.fromkeys(cell.name for cell in cells)), drawing.panel.rounds
    room = min(160.0, max(width(name, svg.NAME) for name in names) + 4)
    for k, round in enumerate(rounds):
        middle = x + room + 10 + k * _WIDE + _WIDE / 2
        over.append(small(middle, y + 10, f"r{round + 1}", anchor="middle"))
    row = {name: y + 18 + k * _STEP for k, name in enumerate(names)}
    for name in names:
        over.append(text(x, row[name] + 12, name, size=svg.WORDS, room=room))
    for cell in cells:
        left = x + room + 12 + rounds.index(cell.round) * _WIDE
        box = Box(left, row[cell.name], _WIDE - 4, _SIDE)
        over.append(_square(cell, box, drawing.colours))
    return room + 10 + len(rounds) * _WIDE, 18 + len(names) * _STEP


def _blocks(drawing: PanelDrawing, cells: Sequence[Cell]) -> tuple[float, float]:
    """Draw a block of squares for each round, in the order of the calls, line by line."""
    x, y, over = drawing.x, drawing.y, drawing.canvas.over
    across = max(8, ceil(sqrt(len({cell.name for cell in cells})) * 1.3))
    blocks: dict[tuple[int, bool], list[Cell]] = {}
    for cell in cells:
        blocks.setdefault((cell.round, drawing.panel.closes(cell)), []).append(cell)
    left, high = x, 0.0
    for (round, last), inside in sorted(blocks.items(), key=lambda item: item[0]):
        heading = "after the last round" if last else f"round {round + 1}"
        over.append(small(left, y + 10, heading))
        for k, cell in enumerate(inside):
            box = Box(left + k % across * _STEP, y + 18 + k // across * _STEP, _SIDE, _SIDE)
            over.append(_square(cell, box, drawing.colours))
            high = max(high, box.bottom - y)
        left += max(min(across, len(inside)) * _STEP, width(heading, svg.SMALL)) + 18
    return left - x - 18, high


def _square(cell: Cell, box: Box, colours: Palette) -> str:
    call, tooltip = cell.call, call_cells.tooltip_text(cell, _MOST_CHARACTERS)
    if call is None:
        return group(tooltip, rect(box, svg.GREY, alpha=0.04, dash="2 2", radius=3, thick=0.8))
    if call.error is not None:
        x, y = box.centre, box.middle
        cross = f"M{number(x - 4)} {number(y - 4)}l8 8m0 -8l-8 8"
        mark = tag("path", d=cross, stroke=svg.RED, stroke_width=2)
        return group(tooltip, rect(box, svg.RED, alpha=0.25, stroke=svg.RED, radius=3), mark)
    edge, thick = svg.INK, 0.6
    alpha, colour = (0.1 if cell.action is None else 0.8), colours.of(cell.action)
    return group(tooltip, rect(box, colour, alpha=alpha, stroke=edge, thick=thick, radius=3))
