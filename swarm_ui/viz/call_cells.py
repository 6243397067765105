"""What the pictures of a trace show of a call: colours, short words, tooltips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite
from typing import NamedTuple

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.message import Message
from swarm_ui.trace.records import Call, Trace
from swarm_ui.viz.svg import AMBER, GREY, INK, RED, SMALL, WORDS, Box, group, rect, text
from swarm_ui.viz.svg_text import clipped, listed, width

# Told apart by colour-blind readers too, on light and on dark; red is kept for failures.
_PALETTE = ("#4c8dff", "#e8912d", "#3fae6a", "#b974e8", "#2fb5c4", "#d978a8", "#a3952f", "#8f7a66")
_BARS, BAR = 6, 15.0
SIZE = 184.0, 52.0
"""Width and height of the box of a call without a ballot, in pixels."""


@dataclass(slots=True)
class Cell:
    """One call, made or skipped."""

    id: str
    name: str
    """Without the names around it."""
    round: int
    call: Call | None = None
    message: Message | None = None


class Palette(NamedTuple):
    """A colour for each proposal of a trace."""

    colours: Mapping[ActionKey, str]

    def of(self, action: Action | None) -> str:
        return GREY if action is None else self.colours.get(action.key, GREY)


def palette(trace: Trace) -> Palette:
    """Colours in the order of the ballot's weights, then as proposals were made."""
    order: dict[ActionKey, None] = {}
    for action, _ in votes(trace.ballot):
        if isinstance(action, Action):
            order[action.key] = None
    for message in trace.messages:
        if message.action is not None:
            order[message.action.key] = None
    return Palette(dict(zip(order, _PALETTE, strict=False)))


def votes(ballot: Mapping[str, float]) -> list[tuple[Action | str, float]]:
    """What was voted for, heaviest first; as it is written where it is no action."""
    found: list[tuple[Action | str, float]] = []
    for written, weight in sorted(ballot.items(), key=lambda item: -item[1]):
        try:
            found.append((msgspec.json.decode(written, type=Action), weight))
        except (msgspec.DecodeError, ValueError):
            found.append((written, weight))
    return found


def proposal(cell: Cell) -> str:
    """What a call came to, on one line."""
    call, message = cell.call, cell.message
    if call is None:
        return "skipped"
    if call.error is not None:
        return str(call.error)
    if message is None:
        return ""
    if message.action is not None:
        return str(message.action)
    return message.content.strip() or message.error or "says nothing"


def figures(call: Call) -> str:
    """Confidence, tokens and time, as far as they are known."""
    found = []
    if call.logprob is not None:
        found.append(
            f"p {exp(call.logprob):.2f}"
            if -4.6 < call.logprob <= 0
            else f"log p {call.logprob:.1f}"
        )
    tokens = call.usage.prompt_tokens, call.usage.completion_tokens
    if any(tokens):
        found.append(f"{_short(tokens[0])}+{_short(tokens[1])} tok")
    if call.ended > call.started:
        found.append(seconds(call.ended - call.started))
    return " · ".join(found)


def _short(count: int) -> str:
    return f"{count}" if count < 10_000 else f"{count / 1000:,.0f}k"


def seconds(time: float) -> str:
    """``"85 ms"``, ``"2.41 s"``; less than a tenth of a millisecond is said so."""
    if time < 1e-4:
        return "<0.1 ms"
    if time < 0.01:
        return f"{time * 1000:.1f} ms"
    return (
        f"{time * 1000:.0f} ms" if time < 1 else f"{time:.2f} s" if time < 100 else f"{time:,.0f} s"
    )


def told(cell: Cell, most: int) -> str:
    """The tooltip of a call, message and all, each part cut to ``most`` characters."""
    call, message = cell.call, cell.message
    lines = [f"{cell.name}, round {cell.round}"]
    if call is None:
        return f"{lines[0]}\nskipped: no edge to it carried anything"
    if call.error is not None:
        lines.append(f"failed: {clipped(str(call.error), most)}")
    if call.rescued is not None:
        lines.append(f"failed: {clipped(str(call.rescued), most)}\nits fallback spoke in its name")
    if call.adapter is not None:
        lines.append(f"adapter {call.adapter}")
    if call.heard:
        lines.append(f"heard {listed(call.heard)}")
    if figures(call):
        lines.append(figures(call))
    if message is not None:
        if message.action is not None:
            lines.append(f"proposes {clipped(message.action.json(), most)}")
        if message.error is not None and message.error != (call.error and str(call.error)):
            lines.append(f"no proposal: {clipped(message.error, most)}")
        if message.content:
            lines.append(f"\n{clipped(message.content, most)}")
    return "\n".join(lines)


# -- boxes ------------------------------------------------------------------------------------


def size(cell: Cell) -> tuple[float, float]:
    """Width and height of the box of a call, in pixels."""
    ballot = None if cell.call is None else cell.call.ballot
    return (218.0, 42 + bars(ballot) * BAR) if ballot else SIZE


def bars(ballot: Mapping[str, float]) -> int:
    """Lines that a ballot takes."""
    return min(len(ballot), _BARS) + (len(ballot) > _BARS)


def draw(cell: Cell, box: Box, colours: Palette, *, last: bool, most: int) -> str:
    """The box of a call. ``last``: it closes the graph; ``most``: characters of a tooltip."""
    call = cell.call
    room = box.width - 20
    x, y = box.x + 12, box.y + 16
    if call is None:
        outline = rect(box, GREY, depth=0.04, dash="2 3", thick=1.0)
        name = text(x, y, cell.name, room=room, bold=True)
        return group(told(cell, most), outline, name, _words(cell, x, y), opacity=0.5)
    failed, rescued = call.error is not None, call.rescued is not None
    edge = RED if failed else AMBER if rescued else INK
    fill = RED if failed else AMBER if rescued else GREY
    depth = 0.2 if failed or rescued else 0.16 if last else 0.08
    thick = 1.6 if failed or rescued or last else 1.0
    marks = [rect(box, fill, depth=depth, stroke=edge, thick=thick, radius=8)]
    action = None if cell.message is None else cell.message.action
    if action is not None and not failed:
        stripe = Box(box.x + 3.5, box.y + 6, 3.5, box.height - 12)
        marks.append(rect(stripe, colours.of(action), depth=1.0, stroke=None, radius=1.5))
    badge = "failed" if failed else "rescued" if rescued else ""
    if badge:
        marks.append(
            text(box.right - 9, y, badge, size=SMALL, anchor="end", colour=edge, bold=True)
        )
    marks.append(text(x, y, cell.name, room=room - (44 if badge else 0), bold=True))
    if call.ballot:
        marks.append(ballot(call.ballot, Box(x, box.y + 23, room, 0), colours))
    else:
        marks.append(_words(cell, x, y))
    marks.append(text(x, box.bottom - 7, figures(call), size=SMALL, room=room, opacity=0.7))
    return group(told(cell, most), *marks)


def _words(cell: Cell, x: float, y: float) -> str:
    proposes = cell.message is not None and cell.message.action is not None
    return text(
        x, y + 15, proposal(cell), size=WORDS, room=SIZE[0] - 20, opacity=None if proposes else 0.75
    )


def _share(weight: float, top: float) -> float:
    """Length of a bar."""
    return max(2.0, 44 * weight / top) if top > 0 and isfinite(weight) else 2.0


def ballot(weights: Mapping[str, float], room: Box, colours: Palette) -> str:
    """Bars, heaviest first, from the top of the room given."""
    entries = votes(weights)
    top = max((weight for _, weight in entries if isfinite(weight)), default=0.0)
    written = [
        f"{weight:.0f}" if float(weight).is_integer() else f"{weight:.2f}" for _, weight in entries
    ]
    aside = max((width(figure, SMALL) for figure in written[:_BARS]), default=0.0) + 6
    marks: list[str] = []
    for k, (voted, weight) in enumerate(entries[:_BARS]):
        y = room.y + k * BAR
        colour = colours.of(voted) if isinstance(voted, Action) else GREY
        bar = Box(room.x, y + 1, _share(weight, top), BAR - 5)
        marks.append(
            group(
                f"{voted}: {weight:.4g}",
                rect(bar, colour, depth=1.0, stroke=None, radius=2),
                text(room.x + 50, y + 10, written[k], size=SMALL, bold=True),
                text(
                    room.x + 52 + aside,
                    y + 10,
                    str(voted),
                    size=SMALL,
                    room=room.width - 52 - aside,
                ),
            )
        )
    if len(entries) > _BARS:
        rest = f"and {len(entries) - _BARS} more"
        marks.append(text(room.x + 50, room.y + _BARS * BAR + 10, rest, size=SMALL, opacity=0.7))
    return "".join(marks)
