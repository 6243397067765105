"""Episodes as the data the viewer's script reads."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.observation import Element, Observation
from swarm_ui.report.markup import Markup
from swarm_ui.trace import Episode, StepRecord, Trace

PNG_BUDGET = 8_000_000
"""Bytes of screenshots one report may hold; later ones are left out and the elements are drawn."""

_PNG = b"\x89PNG\r\n\x1a\n"

Json = dict[str, object]


def embedded(data: object) -> Markup:
    """JSON that can stand inside a script element: no ``<``, ``>`` or ``&`` is left in it."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def viewer_data(episodes: Sequence[Episode], png_budget: int = PNG_BUDGET) -> list[Json]:
    """One object an episode; screenshots until ``png_budget`` bytes are used."""
    left = png_budget
    out: list[Json] = []
    for episode in episodes:
        steps: list[Json] = []
        for step in episode.steps:
            png = step.trace.observation.png
            keep = png is not None and png.startswith(_PNG) and len(png) <= left
            left -= len(png) if keep and png is not None else 0
            steps.append(_step(step, png if keep else None))
        out.append(_episode(episode, steps))
    return out


def _episode(episode: Episode, steps: list[Json]) -> Json:
    first = episode.steps[0].trace.observation if episode.steps else None
    return {
        "environment": episode.environment,
        "task": episode.task,
        "seed": episode.seed,
        "policy": episode.policy,
        "goal": first.goal if first else "",
        "outcome": _outcome(episode),
        "fault": episode.fault,
        "steps": steps,
    }


def _outcome(episode: Episode) -> str:
    if episode.fault is not None or episode.success is None:
        return "masked"
    return "solved" if episode.success else "failed"


def _step(step: StepRecord, png: bytes | None) -> Json:
    trace, seen = step.trace, step.trace.observation
    done = step.executed or trace.action
    return {
        "app": seen.app,
        "png": base64.b64encode(png).decode() if png else None,
        "elements": [_element(e) for e in seen.elements],
        "past": [_told(p.action, p.label) for p in seen.history[-4:]],
        "agents": list(trace.agents),
        "rounds": trace.rounds,
        "messages": [_message(m, step) for m in trace.messages],
        "ballot": _ballot(trace),
        "decision": _told(trace.action, _label(trace.action, seen)) if trace.action else None,
        "executed": _told(done, _label(done, seen)) if done and done != trace.action else None,
        "index": done.index if done else None,
        "note": step.note,
        "end": "solved" if step.reward > 0 else _end(step),
    }


def _end(step: StepRecord) -> str:
    if step.terminated:
        return "task over"
    return "out of steps" if step.truncated else ""


def _element(element: Element) -> Json:
    fields: Json = {"role": element.role, "label": element.label}
    if element.value is not None:
        fields["value"] = element.value
    if element.bounds is not None:
        fields["bounds"] = element.bounds
    flags = {
        "on": element.checked is True,
        "off": element.checked is False,
        "selected": bool(element.selected),
        "focused": element.focused,
        "disabled": not element.enabled,
    }
    fields["state"] = [name for name, set_ in flags.items() if set_]
    return fields


def _message(message: Message, step: StepRecord) -> Json:
    return {
        "sender": message.sender,
        "round": message.round,
        "text": message.content,
        "action": _told(message.action, _label(message.action, step.trace.observation))
        if message.action
        else None,
        "index": message.action.index if message.action else None,
        "adapter": message.adapter,
        "error": message.error,
        "heard": _heard(message, step.trace),
        "credit": _credit(message, step),
    }


def _heard(message: Message, trace: Trace) -> list[str]:
    """Who it heard, with the round where that is not the round it spoke in."""
    ids = next((c.heard for c in trace.calls if c.message == message.id), ())
    said = {m.id: m for m in trace.messages}
    return [
        id
        if (m := said.get(id)) is None
        else (m.sender if m.round == message.round else f"{m.sender} in round {m.round + 1}")
        for id in ids
    ]


def _credit(message: Message, step: StepRecord) -> float | None:
    agents = step.trace.agents
    if step.credit is None or message.sender not in agents or message.round >= len(step.credit):
        return None
    row = step.credit[message.round]
    column = agents.index(message.sender)
    value = row[column] if column < len(row) else None
    return value if value is not None and math.isfinite(value) else None


def _ballot(trace: Trace) -> list[Json]:
    ranked = sorted(trace.ballot.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"action": _ballot_text(key, trace), "weight": weight if math.isfinite(weight) else None}
        for key, weight in ranked
    ]


def _ballot_text(key: str, trace: Trace) -> str:
    try:
        action = msgspec.json.decode(key, type=Action)
    except (msgspec.DecodeError, ValueError):
        return key
    return _told(action, _label(action, trace.observation))


def _label(action: Action | None, seen: Observation) -> str:
    element = seen.element(action.index) if action else None
    return element.label if element else ""


def _told(action: Action, label: str) -> str:
    """An action for people: with the label of what it acts on, as the screen has it."""
    named = action if action.target or not label else msgspec.structs.replace(action, target=label)
    return str(named)
