"""Colour, short text and tooltip of a call in pictures of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.trace.records import Call, Trace
from swarm_ui.viz.svg import (
    GREY,
    INK,
    RED,
    SMALL,
    WORDS,
    Box,
    Markup,
    clipped,
    group,
    join,
    listed,
    rect,
    small,
    text,
    width,
)

# Colour-blind readers can tell these apart, on light and on dark pages. Red marks failures only.
_PALETTE = ("#4c8dff", "#e8912d", "#3fae6a", "#b974e8", "#2fb5c4", "#d978a8", "#a3952f", "#8f7a66")
_BARS, BAR = 6, 15.0
SIZE = 184.0, 52.0
"""Width and height of the box of a call without a ballot, in pixels."""


@dataclass(slots=True)
class Cell:
    """One call. ``call`` is ``None`` if it was skipped."""

    id: str
    name: str
    """The node's name, without the names of the graphs around it."""
    round: int
    call: Call | None = None

    @property
    def action(self) -> Action | None:
        return None if self.call is None else self.call.message.action


class Palette:
    """A colour for each proposal of a trace: by the weights of the ballot, then in their order."""

    def __init__(self, trace: Trace) -> None:
        voted = (action for action, _ in votes(trace.ballot) if isinstance(action, Action))
        said = (message.action for message in trace.messages if message.action is not None)
        order = dict.fromkeys(action.key for action in (*voted, *said))
        self._colours: Mapping[ActionKey, str] = dict(zip(order, _PALETTE, strict=False))

    def of(self, action: Action | None) -> str:
        return GREY if action is None else self._colours.get(action.key, GREY)


def votes(ballot: Mapping[str, float]) -> list[tuple[Action | str, float]]:
    """The entries of a ballot, heaviest first. An entry that is not an action stays text."""
    found: list[tuple[Action | str, float]] = []
    for written, weight in sorted(ballot.items(), key=lambda item: -item[1]):
        try:
            found.append((msgspec.json.decode(written, type=Action), weight))
        except (msgspec.DecodeError, ValueError):
            found.append((written, weight))
    return found


def proposal(cell: Cell) -> str:
    """The result of a call, as text for its box in the picture."""
    call = cell.call
    if call is None:
        return "skipped"
    if call.error is not None:
        return str(call.error)
    message = call.message
    if message.action is not None:
        return str(message.action)
    return message.content.strip() or message.error or "says nothing"


def figures(call: Call) -> str:
    """Confidence, tokens and seconds of a call, where they are known."""
    found = []
    logprob = call.completion.logprob if call.completion else None
    if logprob is not None:
        found.append(f"p {exp(logprob):.2f}" if -4.6 < logprob <= 0 else f"log p {logprob:.1f}")
    tokens = call.usage.prompt_tokens, call.usage.completion_tokens
    if any(tokens):
        short = (f"{n}" if n < 10_000 else f"{n / 1000:,.0f}k" for n in tokens)
        found.append(f"{'+'.join(short)} tok")
    if call.ended > call.started:
        found.append(seconds(call.ended - call.started))
    return " · ".join(found)


def seconds(time: float) -> str:
    """A duration such as ``"85 ms"`` or ``"2.41 s"``; the smallest is ``"<0.1 ms"``."""
    if time < 1e-4:
        return "<0.1 ms"
    if time < 1:
        return f"{time * 1000:.1f} ms" if time < 0.01 else f"{time * 1000:.0f} ms"
    return f"{time:.2f} s" if time < 100 else f"{time:,.0f} s"


def tooltip_text(cell: Cell, most: int) -> str:
    """The tooltip of a call with its message. Each part is cut to ``most`` characters."""
    call = cell.call
    lines = [f"{cell.name}, round {cell.round + 1}"]
    if call is None:
        return f"{lines[0]}\nskipped: no edge to it carried anything"
    if call.error is not None:
        lines.append(f"failed: {clipped(str(call.error), most)}")
    if call.adapter is not None:
        lines.append(f"adapter {call.adapter}")
    if call.heard:
        lines.append(f"heard {listed(call.heard)}")
    if figures(call):
        lines.append(figures(call))
    message = call.message
    if message.action is not None:
        lines.append(f"proposes {clipped(message.action.json(), most)}")
    if message.error is not None and message.error != (call.error and str(call.error)):
        lines.append(f"no proposal: {clipped(message.error, most)}")
    if message.content:
        lines.append(f"\n{clipped(message.content, most)}")
    return "\n".join(lines)


def size(cell: Cell) -> tuple[float, float]:
    ballot = None if cell.call is None else cell.call.ballot
    return (218.0, 42 + ballot_rows(ballot) * BAR) if ballot else SIZE


def ballot_rows(ballot: Mapping[str, float]) -> int:
    return min(len(ballot), _BARS) + (len(ballot) > _BARS)


def draw_call(cell: Cell, box: Box, colours: Palette, *, last: bool, most: int) -> Markup:
    """Draw the box of a call. ``last``: the call closes the graph. ``most``: see `tooltip_text`."""
    call = cell.call
    room = box.width - 20
    x, y = box.x + 12, box.y + 16
    if call is None:
        outline = rect(box, GREY, alpha=0.04, dash="2 3", thick=1.0)
        name = text(x, y, cell.name, room=room, bold=True)
        return group(tooltip_text(cell, most), outline, name, _words(cell, x, y), opacity=0.5)
    failed = call.error is not None
    edge = RED if failed else INK
    fill = RED if failed else GREY
    alpha = 0.2 if failed else 0.16 if last else 0.08
    thick = 1.6 if failed or last else 1.0
    parts = [rect(box, fill, alpha=alpha, stroke=edge, thick=thick, radius=8)]
    if cell.action is not None and not failed:
        stripe = Box(box.x + 3.5, box.y + 6, 3.5, box.height - 12)
        parts.append(rect(stripe, colours.of(cell.action), alpha=1.0, stroke=None, radius=1.5))
    badge = "failed" if failed else ""
    if badge:
        parts.append(small(box.right - 9, y, badge, anchor="end", colour=edge, bold=True))
    parts.append(text(x, y, cell.name, room=room - (44 if badge else 0), bold=True))
    if call.ballot:
        parts.append(draw_ballot(call.ballot, Box(x, box.y + 23, room, 0), colours))
    else:
        parts.append(_words(cell, x, y))
    parts.append(small(x, box.bottom - 7, figures(call), room=room, opacity=0.7))
    return group(tooltip_text(cell, most), *parts)


def _words(cell: Cell, x: float, y: float) -> Markup:
    opacity = 0.75 if cell.action is None else None
    return text(x, y + 15, proposal(cell), size=WORDS, room=SIZE[0] - 20, opacity=opacity)


def draw_ballot(weights: Mapping[str, float], room: Box, colours: Palette) -> Markup:
    """Draw a bar for each entry of a ballot, heaviest first, from the top of ``room``."""
    entries = votes(weights)
    top = max((weight for _, weight in entries if isfinite(weight)), default=0.0)
    shown = entries[:_BARS]
    written = [f"{w:.0f}" if float(w).is_integer() else f"{w:.2f}" for _, w in shown]
    aside = 52 + max((width(figure, SMALL) for figure in written), default=0.0) + 6
    parts: list[Markup] = []
    for k, (voted, weight) in enumerate(shown):
        y = room.y + k * BAR
        colour = colours.of(voted) if isinstance(voted, Action) else GREY
        long = max(2.0, 44 * weight / top) if top > 0 and isfinite(weight) else 2.0
        bar = rect(Box(room.x, y + 1, long, BAR - 5), colour, alpha=1.0, stroke=None, radius=2)
        figure = small(room.x + 50, y + 10, written[k], bold=True)
        name = small(room.x + aside, y + 10, str(voted), room=room.width - aside)
        parts.append(group(f"{voted}: {weight:.4g}", bar, figure, name))
    if len(entries) > _BARS:
        rest = f"and {len(entries) - _BARS} more"
        parts.append(small(room.x + 50, room.y + _BARS * BAR + 10, rest, opacity=0.7))
    return join(*parts)
