"""Converts episodes to the data of the viewer's script."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.observation import Element, Observation
from swarm_ui.trace.failures import left_out
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace
from swarm_ui.viz.calls import votes
from swarm_ui.viz.traces import CallPlaces, call_places

PROMPT_LIMIT = 40_000
"""Maximum length of a prompt in the page, in characters. Of longer ones the middle is left out."""
_BOX, _GAP = (102.0, 60.0), (4.0, 12.0)
"""The size of the box of a message, and the gap between columns and between boxes, in pixels."""
_PNG = b"\x89PNG\r\n\x1a\n"

Json = dict[str, object]
KeepPicture = Callable[[bytes], int | None]
"""Adds a PNG to the page and returns its number, or ``None`` beyond the budget."""


def compact(data: object) -> str:
    """ASCII JSON without spaces. Raises ``ValueError`` for numbers that are not finite."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def viewer_episode(episode: Episode, keep: KeepPicture) -> Json:
    """The data of one episode, shown when it is opened."""
    return {
        "environment": episode.environment,
        "fault": None if episode.fault is None else str(episode.fault),
        "seconds": _finite(episode.seconds) or None,
        "steps": [_step(step, keep) for step in episode.steps],
    }


def index_entry(episode: Episode, name: str, file: str, place: int, chunk: int) -> list[object]:
    """A row of the list: task, seed, policy, set, outcome, goal, steps, file, place in it, chunk.

    ``name`` and ``file`` are of the set, the file as a path from the page (empty: it has none);
    ``place`` is the number of the episode in it, from 1; ``chunk`` holds the episode.
    """
    first = episode.steps[0].trace.observation if episode.steps else None
    goal = first.goal if first else ""
    own = [episode.task, episode.seed, episode.policy, name, outcome(episode)]
    return [*own, goal, len(episode.steps), file, place, chunk]


def outcome(episode: Episode) -> str:
    """``"solved"``, ``"failed"``, or ``"masked"`` for an episode that a fault ended."""
    if episode.fault is not None or episode.success is None:
        return "masked"
    return "solved" if episode.success else "failed"


def _step(step: StepRecord, keep: KeepPicture) -> Json:
    trace, seen = step.trace, step.trace.observation
    drawn = call_places(trace, _BOX, _GAP)
    done = step.executed or trace.action
    png = seen.png
    return {
        "app": seen.app,
        "png": keep(png) if png is not None and png.startswith(_PNG) else None,
        "elements": [_element(e) for e in seen.elements],
        "past": [_labelled(p.action, p.label) for p in seen.history[-4:]],
        "agents": list(trace.agents),
        "size": [round(drawn.width), round(drawn.height)],
        "messages": [_message(call, step, drawn) for call in trace.calls],
        "critic": step.credit_source,
        "why": list(step.rationale),
        "undecided": trace.undecided,
        "ballot": _ballot(trace),
        "decision": _described(trace.action, seen),
        "executed": _described(done, seen) if done != trace.action else None,
        "index": done.index if done else None,
        "note": step.note,
        "reward": _finite(step.reward),
        "end": "task over" if step.terminated else "out of steps" if step.truncated else "",
    }


def _element(element: Element) -> Json:
    fields: Json = {"role": element.role, "label": element.label}
    given = {"value": element.value, "bounds": element.bounds}
    fields |= {name: value for name, value in given.items() if value is not None}
    flags = {
        "on": element.checked is True,
        "off": element.checked is False,
        "selected": bool(element.selected),
        "focused": element.focused,
        "disabled": not element.enabled,
    }
    fields["state"] = [name for name, set_ in flags.items() if set_]
    return fields


def _message(call: Call, step: StepRecord, drawn: CallPlaces) -> Json:
    """A message and the input of its node; empty fields of the input are omitted.

    ``box`` is its place in the drawing, and ``lines`` the curves from the messages that it heard.
    ``order`` holds the numbers of the elements on the screen, in the order in which the agent saw
    them. ``cut`` holds the numbers, as the agent sees them, of the elements that the prompt leaves
    out. ``on`` holds the numbers on the screen of the elements that the action refers to.
    """
    message, made, action = call.message, call.completion, call.message.action
    chosen = step.trace.action
    acted = [] if action is None else [action.index, action.to_index]
    read: Json = {
        "prompt": _shortened(call.prompt),
        "order": None if call.order is None else list(call.order),
        "cut": list(made.dropped.elements) if made and made.dropped else [],
        "on": [index for index in acted if index is not None],
    }
    return {
        "sender": message.sender,
        "round": message.round,
        "text": message.content,
        "action": _described(message.action, step.trace.observation),
        "chosen": bool(action and chosen and action.key == chosen.key),
        "adapter": call.adapter,
        "error": message.error,
        "heard": _heard(call, step.trace),
        "box": [round(side) for side in drawn.boxes[call.id]],
        "lines": [drawn.curves.get((id, call.id), "") for id in call.heard],
        "left_out": left_out(call) or None,
        "credit": _credit(message, step),
        "tokens": [call.usage.prompt_tokens, call.usage.completion_tokens],
        "seconds": _finite(call.ended - call.started),
        **{name: value for name, value in read.items() if value not in ("", None, [])},
    }


def _shortened(prompt: str) -> str:
    """The prompt; a long one without its middle, because goal and question are at its ends."""
    if len(prompt) <= PROMPT_LIMIT:
        return prompt
    half = PROMPT_LIMIT // 2
    left = len(prompt) - 2 * half
    return f"{prompt[:half]}\n[… {left:,} characters are not in this page …]\n{prompt[-half:]}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _heard(call: Call, trace: Trace) -> list[int | str]:
    """The positions, in the trace, of the messages that a call received. A message that the trace
    lacks is given by its id."""
    place = {message.id: k for k, message in enumerate(trace.messages)}
    return [place.get(id, id) for id in call.heard]


def _credit(message: Message, step: StepRecord) -> float | None:
    agents = step.trace.agents
    if step.credit is None or message.sender not in agents or message.round >= len(step.credit):
        return None
    row = step.credit[message.round]
    column = agents.index(message.sender)
    value = row[column] if column < len(row) else None
    return value if value is not None and math.isfinite(value) else None


def _ballot(trace: Trace) -> list[Json]:
    seen = trace.observation
    return [
        {
            "action": _described(voted, seen) if isinstance(voted, Action) else voted,
            "weight": _finite(weight),
        }
        for voted, weight in votes(trace.ballot)
    ]


def _described(action: Action | None, seen: Observation) -> str | None:
    """An action as text, with the label of its element."""
    element = seen.element(action.index) if action else None
    return _labelled(action, element.label if element else "") if action else None


def _labelled(action: Action, label: str) -> str:
    named = action if action.target or not label else replace(action, target=label)
    return str(named)
