"""Why an episode failed, and what a prompt left out, read from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, unfit
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

FailureClass = Literal["world_fault", "reply_not_parsed", "loop", "declaration", "other"]
FAILURE_CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)
"""The classes of failures, in the order of tables."""
FAILURE_NAMES: Mapping[FailureClass, str] = {
    "world_fault": "world fault",
    "reply_not_parsed": "reply not parsed",
    "loop": "loop",
    "declaration": "wrong declaration",
    "other": "other",
}
"""Labels of the classes in tables."""
FAILURE_RULES: Mapping[FailureClass, str] = {
    "world_fault": "a fault of the environment, of an endpoint or of a budget ended it; such "
    "episodes are masked and not counted as failed",
    "reply_not_parsed": "its last step, or half of its steps, had no action, because the replies "
    "had none",
    "loop": "when its steps ran out, an action was executed for at least the third time on one "
    "screen",
    "declaration": "it declared an end that the task did not have",
    "other": "no other class applies",
}
"""The rule of each class."""
_REPEATS = 3
_NAMED = 8
"""Maximum number of named elements; the others are only counted."""
_LABEL = 40
"""Maximum number of characters of a label."""


def failure_class(episode: Episode) -> FailureClass | None:
    """Why an episode failed: the first class of :data:`FAILURE_RULES` that applies; ``None`` if it
    was solved."""
    if episode.success is not False:
        return None if episode.success else "world_fault"
    if not episode.steps:
        return "other"
    steps, last = episode.steps, episode.steps[-1]
    done = _done(last)
    ended = last.terminated or done is None
    if (ended and unusable(last)) or 2 * sum(map(unusable, steps)) >= len(steps):
        return "reply_not_parsed"
    if not ended and _loops(steps):
        return "loop"
    if last.terminated and done is not None and done.action_type == "status":
        return "declaration"
    return "other"


def _loops(steps: Sequence[StepRecord]) -> bool:
    """Whether the last action was executed on the same screen at least ``_REPEATS`` times."""
    last = steps[-1]
    done, screen = _done(last), _screen(last)
    if done is None or unusable(last):
        return False
    acts = [(step, _done(step)) for step in steps]
    same = [step for step, act in acts if act is not None and act.key == done.key]
    return sum(_screen(step) == screen for step in same) >= _REPEATS


def _done(step: StepRecord) -> Action | None:
    """The executed action; other programs may record the decision alone."""
    return step.executed or step.trace.action


def _screen(step: StepRecord) -> Observation:
    """The screen without its picture and without the past actions."""
    return msgspec.structs.replace(step.trace.observation, history=(), png=None)


def unusable(step: StepRecord) -> bool:
    """Whether a step had no action to execute because no reply contained a valid one."""
    trace = step.trace
    if trace.action is not None:
        return unfit(trace.action) is not None
    if step.executed is not None and step.executed.action_type != "wait":
        return False  # guided: another action was executed
    excused = {c.id for c in trace.calls if c.error is not None and not c.error.by_model}
    agents = frozenset(trace.agents)
    return any(
        m.action is None and m.id not in excused and not m.abstains
        for m in trace.messages
        if m.sender in agents
    )


def left_out(trace: Trace, call: Call) -> str:
    """``call.completion.dropped`` as readable text; empty: nothing is left out.

    Elements have the indices of the screen, not those of the agent.
    """
    dropped = call.completion.dropped if call.completion else None
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
