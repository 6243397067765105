"""The box of a call in pictures of a trace: its proposal or ballot, and its tooltip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, isfinite

import msgspec

from swarm_ui.action import Action, ActionKey
from swarm_ui.trace.records import Call, Trace
from swarm_ui.viz.svg import (
    GREY,
    INK,
    RED,
    WORDS,
    Box,
    Markup,
    clipped,
    group,
    listed,
    number,
    rect,
    small,
    text,
)

# Colour-blind readers can tell these apart, on light and on dark pages. Red marks failures only.
_PALETTE = ("#4c8dff", "#e8912d", "#3fae6a", "#b974e8", "#2fb5c4", "#d978a8", "#a3952f", "#8f7a66")
_BARS, _BAR = 6, 15.0
_MOST = 2000  # characters of each part of a tooltip


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
    return f"{number(time * 1000)} ms" if time < 1 else f"{time:,.2f} s"


def _tooltip(cell: Cell) -> str:
    """The tooltip of a call with its message."""
    call, head = cell.call, f"{cell.name}, round {cell.round + 1}"
    if call is None:
        return f"{head}\nskipped: no edge to it carried anything"
    message, failed = call.message, call.error and str(call.error)
    parts = (
        ("failed: ", failed),
        ("adapter ", call.adapter),
        ("heard ", listed(call.heard)),
        ("", figures(call)),
        ("proposes ", message.action and message.action.json()),
        ("no proposal: ", message.error if message.error != failed else None),
        ("\n", message.content),
    )
    return "\n".join([head, *(f"{name}{clipped(told, _MOST)}" for name, told in parts if told)])


def size(cell: Cell) -> tuple[float, float]:
    """Width and height of the box of a call, in pixels."""
    ballot = None if cell.call is None else cell.call.ballot
    if not ballot:
        return 184.0, 52.0
    return 218.0, 42 + _BAR * (min(len(ballot), _BARS) + (len(ballot) > _BARS))


def draw_call(cell: Cell, box: Box, colours: Palette, *, last: bool) -> Markup:
    """The box of a call. ``last``: the call closes the graph."""
    call, room = cell.call, box.width - 20
    x, y = box.x + 12, box.y + 16
    failed = call is not None and call.error is not None
    edge, fill = (RED, RED) if failed else (INK, GREY)
    alpha = 0.2 if failed else 0.16 if last else 0.08
    thick, dash = 1.6 if failed or last else 1.0, "2 3" if call is None else None
    parts = [rect(box, fill, alpha=alpha, stroke=edge, thick=thick, radius=8, dash=dash)]
    state = "skipped" if call is None else "failed" if failed else ""
    if state:
        parts.append(small(box.right - 9, y, state, anchor="end", colour=edge, bold=True))
    parts.append(text(x, y, cell.name, room=room - (44 if state else 0), bold=True))
    if call is None:
        return group(_tooltip(cell), *parts, opacity=0.5)
    if cell.action is not None and not failed:
        stripe = Box(box.x + 3.5, box.y + 6, 3.5, box.height - 12)
        parts.append(rect(stripe, colours.of(cell.action), alpha=1.0, stroke=None, radius=1.5))
    if call.ballot:
        parts += _ballot(call.ballot, Box(x, box.y + 23, room, 0), colours)
    else:
        said = call.message.content.strip() or call.message.error or "says nothing"
        shown, opacity = str(call.error or cell.action or said), None if cell.action else 0.75
        parts.append(text(x, y + 15, shown, size=WORDS, room=room, opacity=opacity))
    parts.append(small(x, box.bottom - 7, figures(call), room=room, opacity=0.7))
    return group(_tooltip(cell), *parts)


def _ballot(weights: Mapping[str, float], room: Box, colours: Palette) -> Iterator[Markup]:
    """A bar for each entry of a ballot, heaviest first, from the top of ``room``."""
    entries = votes(weights)
    top = max((weight for _, weight in entries if isfinite(weight)), default=0.0)
    for k, (voted, weight) in enumerate(entries[:_BARS]):
        y = room.y + k * _BAR
        colour = colours.of(voted) if isinstance(voted, Action) else GREY
        long = max(2.0, 44 * weight / top) if top > 0 and isfinite(weight) else 2.0
        bar = rect(Box(room.x, y + 1, long, _BAR - 5), colour, alpha=1.0, stroke=None, radius=2)
        told = f"{weight:.3g} · {voted}"
        name = small(room.x + 50, y + 10, told, room=room.width - 50)
        yield group(f"{voted}: {weight:.4g}", bar, name)
    if len(entries) > _BARS:
        rest = f"and {len(entries) - _BARS} more"
        yield small(room.x + 50, room.y + _BARS * _BAR + 10, rest, opacity=0.7)
