"""Why an episode failed, and what a prompt left out, read from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from swarm_ui.action import Action
from swarm_ui.trace.records import Call, Episode, StepRecord

FailureClass = Literal["fault", "reply_not_parsed", "loop", "declaration", "other"]
FAILURES: Mapping[FailureClass, tuple[str, str]] = {
    "fault": (
        "fault",
        "a fault of the environment, of an endpoint or of a budget ended it; such episodes are "
        "masked and not counted as failed",
    ),
    "reply_not_parsed": (
        "reply not parsed",
        "its last step, or half of its steps, had no action, because the replies had none",
    ),
    "loop": (
        "loop",
        "when its steps ran out, an action was executed for at least the third time on one screen",
    ),
    "declaration": ("wrong declaration", "it declared an end that the task did not have"),
    "other": ("other", "no other class applies"),
}
"""The label and the rule of each class, in the order of tables."""
_REPEATS = 3


def failure_class(episode: Episode) -> FailureClass | None:
    """Why an episode failed: the first class of :data:`FAILURES` that applies; ``None`` if it
    was solved."""
    if episode.success is not False:
        return None if episode.success else "fault"
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
    done, screen = _done(last), last.trace.observation.screen_key()
    if done is None or unusable(last):
        return False
    acts = [(step, _done(step)) for step in steps]
    same = [step for step, act in acts if act is not None and act.key == done.key]
    return sum(step.trace.observation.screen_key() == screen for step in same) >= _REPEATS


def _done(step: StepRecord) -> Action | None:
    """The executed action; other programs may record the decision alone."""
    return step.executed or step.trace.action


def unusable(step: StepRecord) -> bool:
    """Whether a step had no action to execute because no reply contained a valid one."""
    trace = step.trace
    if trace.action is not None:
        return False
    if step.executed is not None and step.executed.action_type != "wait":
        return False  # guided: another action was executed
    excused = {c.id for c in trace.calls if c.error is not None and not c.error.by_model}
    agents = frozenset(trace.agents)
    return any(
        m.action is None and m.id not in excused and not m.abstains
        for m in trace.messages
        if m.sender in agents
    )


def left_out(call: Call) -> str:
    """What the prompt of a call leaves out, counted; empty: nothing."""
    dropped = call.completion.dropped if call.completion else None
    if dropped is None:
        return ""
    counts = {"past action": dropped.history, "reason": len(dropped.reasons)}
    counts["element"] = len(dropped.elements)
    return ", ".join(f"{n} {what}{'s' * (n != 1)}" for what, n in counts.items() if n)
