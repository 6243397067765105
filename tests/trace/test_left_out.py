"""What a prompt left out, in words: by the screen's own indices, whatever the agent's order was."""

from __future__ import annotations

import random

import msgspec
import pytest
from report_samples import trace

from swarm_ui.model import Dropped
from swarm_ui.trace.left_out import left_out
from swarm_ui.trace.records import Call, Trace


@pytest.fixture
def shown() -> Trace:
    return trace("Ada", 0, random.Random(0))


def call(**more: object) -> Call:
    made = Call(message="agent_2:1", node="agent_2", round=1, heard=("agent_2:0", "agent_1:1"))
    return msgspec.structs.replace(made, **more)


def test_whole_prompts_leave_nothing_out(shown: Trace) -> None:
    assert left_out(shown, call()) == ""
    assert left_out(shown, call(dropped=Dropped())) == ""


def test_actions_reasons_and_elements_are_told(shown: Trace) -> None:
    dropped = Dropped(history=3, reasons=(1,), elements=(0, 5))
    assert left_out(shown, call(dropped=dropped)) == (
        "3 oldest past actions; the reason of agent_1 (round 2); "
        "2 elements: “Contacts” [0], “Grace Hopper” [5]"
    )
    order = (5, 4, 3, 2, 1, 0)
    assert "“Grace Hopper” [5], “Contacts” [0]" in left_out(
        shown, call(dropped=dropped, order=order)
    )
    assert left_out(shown, call(dropped=Dropped(history=1))) == "the oldest past action"


def test_many_elements_and_long_labels_stay_short(shown: Trace) -> None:
    long = msgspec.structs.replace(shown.observation.elements[0], text="x" * 5_000)
    elements = (long,) * 300
    screen = msgspec.structs.replace(shown.observation, elements=elements)
    wide = msgspec.structs.replace(shown, observation=screen)
    told = left_out(wide, call(dropped=Dropped(elements=tuple(range(300)))))
    assert told.startswith("300 elements: “xxx") and told.endswith(", …") and len(told) < 500


def test_numbers_of_a_damaged_trace_name_nothing(shown: Trace) -> None:
    dropped = Dropped(reasons=(0, 7), elements=(99, -1))
    told = left_out(shown, call(dropped=dropped, order=(0,)))
    assert told == (
        "2 reasons of agent_2 (round 1); 2 elements: (not on the screen), (not on the screen)"
    )
