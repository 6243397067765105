"""Every failed episode has one class; and what a prompt left out is told."""

from __future__ import annotations

import msgspec
import pytest

from swarm_ui.action import Action
from swarm_ui.errors import Failure
from swarm_ui.message import Message
from swarm_ui.model import Dropped, Generation
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.trace.failures import (
    FailureClass,
    failure_class,
    left_out,
)
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

OPEN = Action(action_type="click", index=1)
BACK = Action(action_type="navigate_back")
DONE = Action(action_type="status", goal_status="complete")
PASS = '{"action_type":"pass"}'


def step(*said: Action | str, seen: str = "", past: int = 0, ends: bool = False) -> StepRecord:
    """One step: each agent's proposal, or its reply without one. The first is executed."""
    messages = [
        Message(id=f"{name}:0", sender=name, round=0, content=each.json(), action=each)
        if isinstance(each, Action)
        else Message(id=f"{name}:0", sender=name, round=0, content=each, abstains=each == PASS)
        for name, each in zip("abc", said, strict=False)
    ]
    acts = [each for each in said if isinstance(each, Action)]
    trace = Trace(
        run="r",
        seed=0,
        observation=Observation(
            goal="buy milk",
            elements=(Element(index=0, role="button", text=seen),),
            history=(Past(action=BACK),) * past,
        ),
        agents=tuple("abc"[: len(said)]),
        rounds=1,
        calls=tuple(Call(message=message) for message in messages),
        action=acts[0] if acts else None,
    )
    executed = acts[0] if acts else Action(action_type="wait")
    return StepRecord(trace=trace, executed=executed, terminated=ends)


def episode(*steps: StepRecord, success: bool | None = False) -> Episode:
    if steps and not steps[-1].terminated:
        steps = (*steps[:-1], msgspec.structs.replace(steps[-1], truncated=True))
    fault = Failure(kind="environment", message="the page crashed") if success is None else None
    return Episode(environment="e", task="t", seed=1, steps=steps, success=success, fault=fault)


AGAIN = [step(OPEN, past=k) for k in range(3)]  # the list of past actions is not compared
AWAY = step(BACK, seen="other")


@pytest.mark.parametrize(
    ("expected", "steps"),
    [
        ("reply_not_parsed", [step(OPEN), step("I would press save")]),
        ("reply_not_parsed", [step(OPEN), step("hm", "what?"), step("hm", "what?"), step(OPEN)]),
        ("other", [step(PASS, PASS), step(PASS, PASS)]),
        ("loop", AGAIN),
        ("loop", [AGAIN[0], AWAY, AGAIN[1], AWAY, AGAIN[2]]),
        ("other", AGAIN[:2]),
        ("other", [*AGAIN[:2], step(OPEN, seen="other")]),
        ("declaration", [*AGAIN, step(DONE, ends=True)]),
        ("other", [step(OPEN, ends=True)]),
        ("other", []),
    ],
)
def test_the_class_of_a_failed_episode(expected: FailureClass, steps: list[StepRecord]) -> None:
    assert failure_class(episode(*steps)) == expected
    assert failure_class(episode(*steps, success=True)) is None
    assert failure_class(episode(*steps, success=None)) == "fault"


# -- what a prompt left out --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dropped", "told"),
    [
        (None, ""),
        (Dropped(), ""),
        (Dropped(history=1), "1 past action"),
        (Dropped(history=3, reasons=(1,), elements=(0, 5)), "3 past actions, 1 reason, 2 elements"),
    ],
)
def test_what_a_prompt_left_out_is_counted(dropped: Dropped | None, told: str) -> None:
    said = Message(id="agent_2:1", sender="agent_2", round=1, content="")
    assert left_out(Call(message=said, completion=Generation(prompt="", dropped=dropped))) == told
