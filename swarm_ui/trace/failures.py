"""Why an episode failed, and what a prompt left out, read from the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal, get_args

import msgspec

from swarm_ui.action import Action, unfit
from swarm_ui.credit import SOLVER_CREDIT
from swarm_ui.errors import UNREADABLE
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

FailureClass = Literal[
    "world_fault", "reply_not_parsed", "loop", "declaration", "vote_overruled", "wrong_element",
    "wrong_text", "other", "not_known",
]  # fmt: skip
FAILURE_CLASSES: tuple[FailureClass, ...] = get_args(FailureClass)
"""The classes of failures, in the order of tables."""
FAILURE_NAMES: Mapping[FailureClass, str] = {
    "world_fault": "world fault",
    "reply_not_parsed": "reply not parsed",
    "loop": "loop",
    "declaration": "early or missing declaration",
    "vote_overruled": "vote overruled a right proposal",
    "wrong_element": "wrong element",
    "wrong_text": "wrong text",
    "other": "other",
    "not_known": "not known",
}
"""Labels of the classes in tables."""
FAILURE_RULES: Mapping[FailureClass, str] = {
    "world_fault": "a fault of the environment, of an endpoint or of a budget ended it; such "
    "episodes are masked and not counted as failed",
    "reply_not_parsed": "its last step, or half of its steps, had no action, because the replies "
    "had none",
    "loop": "when its steps ran out, an action was executed for at least the third time on one "
    "screen",
    "declaration": "after its last right action, it declared an end that the task did not have, or "
    "went on where the solver would have declared the end",
    "vote_overruled": "after its last right action, it executed a wrong one, and a right one was "
    "in the vote",
    "wrong_element": "after its last right action, it acted on the wrong element",
    "wrong_text": "after its last right action, it wrote a wrong text",
    "other": "the solver's grades are known, and no other class applies",
    "not_known": "the solver's grades are not known, and no class that needs none applies",
}
"""The rule of each class, shortened; see :func:`failure_class`."""
_WRITING = frozenset({"input_text", "select", "answer"})
_REPEATS = 3
_RIGHT = 0.5
"""Actions with a grade above this are right."""
_NAMED = 8
"""Maximum number of named elements; the others are only counted."""
_LABEL = 40
"""Maximum number of characters of a label."""


def failure_class(episode: Episode) -> FailureClass | None:
    """Why an episode failed; ``None`` if it was solved: the first class of
    :data:`FAILURE_RULES` that applies, ``declaration`` before ``vote_overruled`` only without
    grades.

    The *deciding step* of a mistake is the first after the last right action. Only the
    environment's own solver says what is right: grades are read from credit whose source is
    :data:`~swarm_ui.credit.SOLVER_CREDIT`, and from :attr:`StepRecord.expert`. Without grades, only
    ``world_fault``, ``reply_not_parsed``, ``loop``, an early ``declaration`` and ``not_known`` can
    be found.
    """
    if episode.success is not False:
        return None if episode.success else "world_fault"
    if not episode.steps:
        return "not_known"
    steps, last = episode.steps, episode.steps[-1]
    ended = last.terminated or _done(last) is None
    if (ended and unusable(last)) or 2 * sum(map(unusable, steps)) >= len(steps):
        return "reply_not_parsed"
    if not ended and _loops(steps):
        return "loop"
    found = _mistake(steps)
    if found == "not_known" and last.terminated and _declares(_done(last)):
        return "declaration"
    return found


def _mistake(steps: Sequence[StepRecord]) -> FailureClass:
    """The mistake of the deciding step."""
    wrong: StepRecord | None = None
    for step in reversed(steps):
        if unusable(step):
            continue
        right = _right(step)
        if right is None:
            return "not_known"
        if right:
            break
        wrong = step
    if wrong is None:
        return "other"
    if any((grade(wrong, action) or 0.0) > _RIGHT for action in _voted(wrong.trace)):
        return "vote_overruled"
    done, expert = _done(wrong), wrong.expert
    if _declares(done) or _declares(expert):
        return "declaration"
    if done is None:
        return "other"
    if done.action_type in _WRITING:
        elsewhere = expert is not None and done.text is not None and expert.text == done.text
        return "wrong_element" if elsewhere else "wrong_text"
    pointing = done.index is not None or done.x is not None
    return "wrong_element" if pointing else "other"


def _right(step: StepRecord) -> bool | None:
    """Whether the executed action was right, or ``None`` if it is not graded."""
    value = grade(step, _done(step))
    if value is not None:
        return value > _RIGHT
    # If every agent abstained, the step waited, which nobody proposed and nobody graded.
    return False if step.trace.action is None and graded(step) else None


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


def _voted(trace: Trace) -> Iterator[Action]:
    """The actions in the vote; none if there was no vote."""
    for text in trace.ballot:
        with suppress(*UNREADABLE):  # another vote than ours may count other texts
            yield msgspec.json.decode(text, type=Action)


def _declares(action: Action | None) -> bool:
    return action is not None and action.action_type == "status"


def graded(step: StepRecord) -> bool:
    """Whether the solver's grades of a step are recorded."""
    return step.credit is not None and step.credit_source == SOLVER_CREDIT


def grade(step: StepRecord, action: Action | None) -> float | None:
    """The solver's grade of an action (above 0.5 is right), or ``None`` if none is recorded."""
    if action is None:
        return None
    if step.expert is not None and step.expert.key == action.key:
        return 1.0
    if step.credit is None or not graded(step):
        return None
    for message in step.trace.messages:
        if message.action is None or message.action.key != action.key:
            continue
        if message.sender in step.trace.agents and message.round < len(step.credit):
            row, column = step.credit[message.round], step.trace.agents.index(message.sender)
            if column < len(row) and row[column] is not None:
                return row[column]
    return None


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
