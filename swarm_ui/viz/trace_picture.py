"""A trace as a picture: the calls of each round, the messages between them, the decision."""

from __future__ import annotations

from swarm_ui.trace.records import Trace
from swarm_ui.viz.call_cells import Palette, palette, seconds
from swarm_ui.viz.compact_trace import compact
from swarm_ui.viz.round_grid import grid
from swarm_ui.viz.svg import GREY, NAME, RED, SMALL, WORDS, Box, Canvas, frame, rect, tag, text
from swarm_ui.viz.svg_text import clipped, cut, plain, width
from swarm_ui.viz.trace_panels import Panel, PanelDrawing, layers, panels

MOST_CALLS = 40
"""In traces with more calls, each call is drawn as a small square."""
_MARGIN, _LINE = 14.0, 20.0
_NARROWEST, _WIDEST = 460.0, 760.0  # limits of the width that the caption may ask for

Words = tuple[str, str]
"""A line of the caption and the colour of the square before it; ``""`` for none."""


def trace_svg(trace: Trace) -> str:
    """One decision as an SVG document.

    Each round is a column; a single round is drawn as a layered graph. The stripe of a box has the
    colour of the proposal. Full lines are messages, dashed lines an agent's own last message, and
    dotted lines edges that carried nothing. A failed call is red, a call that its fallback answered
    is amber, and a skipped call is faint. The tooltip has up to 2,000 characters of the message.
    """
    canvas = Canvas()
    found, colours, caption = panels(trace), palette(trace), _caption(trace)
    longest = max(width(words, NAME + 1) for words, _ in caption)
    wide = max(_NARROWEST, min(_WIDEST, longest * 1.1 + 20))
    high = _MARGIN + _LINE * len(caption) + 2
    if sum(len(panel.cells) for panel in found) > MOST_CALLS:
        size = compact(canvas, trace, found, colours, _MARGIN, high)
        wide, high = max(wide, size[0]), high + size[1]
    else:
        for panel in found:
            size = _panel(canvas, panel, colours, high)
            wide, high = max(wide, size[0]), high + size[1] + _MARGIN
    _write(canvas, caption, wide)
    label = f"run {trace.run}".strip() + ": " + ", ".join(words for words, _ in caption)
    return canvas.document(wide + 2 * _MARGIN, high, label[:300])


def _panel(canvas: Canvas, panel: Panel, colours: Palette, y: float) -> tuple[float, float]:
    inner = bool(panel.prefix)
    corner = (_MARGIN + 12, y + 24) if inner else (_MARGIN, y)
    drawing = PanelDrawing(canvas, panel, colours, *corner, 0.7 if len(panel.heard) <= 60 else 0.45)
    size = grid(drawing) if len(panel.rounds) > 1 else layers(drawing)
    if not inner:
        return size
    around = Box(_MARGIN, y, max(size[0], width(panel.title, WORDS)) + 24, size[1] + 36)
    canvas.below.append(frame(around))
    canvas.over.append(text(around.x + 12, around.y + 16, panel.title, size=WORDS, bold=True))
    return around.width, around.height


def _caption(trace: Trace) -> list[Words]:
    failed = sum(call.error is not None for call in trace.calls)
    tokens = sum(c.usage.prompt_tokens + c.usage.completion_tokens for c in trace.calls)
    counts = [
        _counted(len(trace.agents), "agent") + ", " + _rounds(trace),
        _counted(len(trace.calls), "call"),
        f"{failed:,} failed" if failed else "",
        f"{len(trace.skipped):,} skipped" if trace.skipped else "",
        f"{tokens:,} tokens" if tokens else "",
        seconds(max((call.ended for call in trace.calls), default=0.0)),
    ]
    return [
        (f"goal: {trace.observation.goal}", ""),
        _decision(trace),
        (" · ".join(filter(None, counts)), ""),
    ]


def _rounds(trace: Trace) -> str:
    early = f" (until {trace.ended_by})" if trace.ended_by else ""
    return _counted(trace.rounds, "round") + early


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _decision(trace: Trace) -> Words:
    if trace.action is not None:
        return f"decision: {trace.action}", palette(trace).of(trace.action)
    proposed = any(message.action is not None for message in trace.messages)
    failed = any(call.error is not None for call in trace.calls)
    last = trace.messages[-1].content if trace.messages else ""
    answer = last if trace.output is None else trace.output
    if not (proposed or failed) and answer.strip():
        # A graph of functions may answer without an action; that is no failure.
        return f"answer: {answer}", GREY
    return trace.undecided or "", RED


def _write(canvas: Canvas, caption: list[Words], wide: float) -> None:
    for k, (words, colour) in enumerate(caption):
        x, y = _MARGIN, _MARGIN + 11 + _LINE * k
        if colour:
            dot = Box(x, y - 9.5, 10, 10)
            canvas.over.append(rect(dot, colour, alpha=1.0, stroke=None, radius=2))
            x += 16
        room = wide + _MARGIN - x
        size = NAME + 1 if k == 1 else NAME if k == 0 else SMALL + 0.5
        faint = 0.75 if k == 2 else None
        line = text(x, y, words, size=size, room=room, bold=k == 1, opacity=faint)
        canvas.over.append(f"<g>{line}{_whole(words, room, size)}</g>")


def _whole(words: str, room: float, size: float) -> str:
    """A tooltip with the whole text, if the text was cut."""
    return tag("title", plain(clipped(words, 2000))) if cut(words, room, size) != words else ""
