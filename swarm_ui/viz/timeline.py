"""The calls of a trace over time."""

from __future__ import annotations

from swarm_ui.trace.records import Call, Trace
from swarm_ui.viz import svg
from swarm_ui.viz.call_cells import Cell, Palette, palette, seconds, tooltip_text
from swarm_ui.viz.svg import Box, Canvas, group, rect, small, tag, text, ticks
from swarm_ui.viz.svg_text import number, width
from swarm_ui.viz.trace_panels import panels

_MARGIN, _WIDE, _MOST_ROWS, _MOST_CALLS = 14.0, 620.0, 60, 1000


def timeline_svg(trace: Trace) -> str:
    """The calls over time as an SVG document: a row for each node and a bar for each call.

    Bars that overlap ran at the same time. The first 1,000 calls of the first 60 nodes are drawn.
    """
    canvas = Canvas()
    cells = [cell for panel in panels(trace) for cell in panel.cells.values()]
    made = [(cell, cell.call) for cell in cells if cell.call is not None][:_MOST_CALLS]
    names = list(dict.fromkeys(call.node for _, call in made))
    row = {name: k for k, name in enumerate(names[:_MOST_ROWS])}
    kept = [(cell, call) for cell, call in made if call.node in row]
    begin = min((call.started for _, call in kept), default=0.0)
    span = max((call.ended for _, call in kept), default=0.0) - begin or 1.0
    room = min(150.0, max((width(name, svg.WORDS) for name in row), default=0.0) + 6)
    left, high = _MARGIN + room + 8, 20.0
    step = 22.0 if len(row) <= 24 else 12.0
    bottom = high + len(row) * step
    if kept:
        _axis(canvas, span, left, high, bottom)
    for name, k in row.items():
        y = high + k * step + step / 2 + 4
        size = svg.WORDS if step > 15 else svg.SMALL
        canvas.over.append(group(name, text(_MARGIN, y, name, size=size, room=room)))
    colours = palette(trace)
    for cell, call in kept:
        start = left + (call.started - begin) / span * _WIDE
        long = max(2.0, (call.ended - call.started) / span * _WIDE)
        bar = Box(start, high + row[call.node] * step + 2, long, step - 4)
        canvas.over.append(_bar(cell, call, bar, colours))
    rest = len(trace.calls) - len(kept)
    if rest:
        note = f"{rest:,} more calls are not drawn"
        canvas.over.append(small(_MARGIN, bottom + 30, note, opacity=0.75))
    label = f"{len(kept)} calls in {seconds(span)}"
    return canvas.document(left + _WIDE + 40, bottom + (40 if rest else 26), label)


def _bar(cell: Cell, call: Call, box: Box, colours: Palette) -> str:
    failed = call.error is not None
    colour = svg.RED if failed else colours.of(cell.action)
    edge = svg.RED if failed else svg.INK
    mark = rect(box, colour, alpha=0.6, stroke=edge, thick=0.8, radius=3)
    return group(tooltip_text(cell, 160), mark)


def _axis(canvas: Canvas, span: float, left: float, top: float, bottom: float) -> None:
    for time in ticks(0.0, span, 6):
        if time > span * 1.0001:
            break
        x = left + time / span * _WIDE
        line = f"M{number(x)} {number(top)}V{number(bottom)}"
        canvas.below.append(tag("path", d=line, opacity=0.2, stroke=svg.GREY))
        words = seconds(time) if time else "0"
        canvas.over.append(small(x, bottom + 14, words, anchor="middle", opacity=0.75))
