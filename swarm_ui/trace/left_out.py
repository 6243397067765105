"""Describes the parts of a decision that the prompt of a call leaves out."""

from __future__ import annotations

from swarm_ui.trace.records import Call, Trace

_NAMED = 8
"""Maximum number of named elements; the others are only counted."""
_LABEL = 40
"""Maximum number of characters of a label."""


def left_out(trace: Trace, call: Call) -> str:
    """``Call.dropped`` as readable text; empty: nothing is left out.

    Elements have the indices of the screen, not those of the agent.
    """
    dropped = call.dropped
    if dropped is None:
        return ""
    parts = []
    if dropped.history:
        parts.append(_count(dropped.history, "the oldest past action", "oldest past actions"))
    if dropped.reasons:
        said = {message.id: message for message in trace.messages}
        heard = [call.heard[k] for k in dropped.reasons if k < len(call.heard)]
        who = [f"{said[id].sender} (round {said[id].round + 1})" for id in heard if id in said]
        reasons = _count(len(dropped.reasons), "the reason", "reasons")
        parts.append(f"{reasons} of {', '.join(who)}" if who else reasons)
    if dropped.elements:
        named = [_element(trace, call, index) for index in dropped.elements[:_NAMED]]
        more = ", …" if len(dropped.elements) > _NAMED else ""
        count = _count(len(dropped.elements), "1 element", "elements")
        parts.append(f"{count}: {', '.join(named)}{more}")
    return "; ".join(parts)


def _count(number: int, one: str, several: str) -> str:
    return one if number == 1 else f"{number} {several}"


def _element(trace: Trace, call: Call, index: int) -> str:
    """An element by the agent's index. The indices of a damaged trace may name none."""
    if call.order is not None:
        index = call.order[index] if 0 <= index < len(call.order) else -1
    element = trace.observation.element(index)
    if element is None:
        return "(not on the screen)"
    label = element.label or element.role
    return f"“{label[: _LABEL - 1]}…” [{index}]" if len(label) > _LABEL else f"“{label}” [{index}]"
