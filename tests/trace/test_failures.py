"""Every failed episode has one class, and grades of the solver alone say what was right."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import trace as sample_trace

from swarm_ui.action import Action
from swarm_ui.credit import SOLVER_CREDIT
from swarm_ui.errors import Failure
from swarm_ui.message import Message
from swarm_ui.model import Dropped, Generation
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.trace.failures import (
    FAILURE_CLASSES,
    FAILURE_NAMES,
    FAILURE_RULES,
    failure_class,
    left_out,
)
from swarm_ui.trace.records import Call, Episode, StepRecord, Trace

AGENTS = ("a", "b", "c")
SAVE, BACK = Action(action_type="click", index=0), Action(action_type="navigate_back")
OPEN = Action(action_type="click", index=1)
WRITE = Action(action_type="input_text", index=2, text="milk")
DONE = Action(action_type="status", goal_status="complete")
WAIT = Action(action_type="wait")
REFUSED = "no JSON object in the reply"


def screen(name: str = "", past: int = 0) -> Observation:
    elements = tuple(Element(index=k, role="button", text=f"{name}{k}") for k in range(3))
    history = tuple(Past(action=BACK) for _ in range(past))
    return Observation(goal="buy milk", elements=elements, history=history)


def step(
    *proposals: Action | str,
    executed: Action | None = None,
    right: tuple[Action, ...] | None = None,
    expert: Action | None = None,
    source: str = SOLVER_CREDIT,
    seen: Observation | None = None,
    terminated: bool = False,
) -> StepRecord:
    """One step: each agent's proposal, or its reply without one; ``right``: what is graded 1."""
    messages = tuple(
        Message(id=f"{name}:0", sender=name, round=0, content=said, error=REFUSED)
        if isinstance(said, str) and "pass" not in said
        else Message(id=f"{name}:0", sender=name, round=0, content=said, abstains=True)
        if isinstance(said, str)
        else Message(id=f"{name}:0", sender=name, round=0, content=said.json(), action=said)
        for name, said in zip(AGENTS, proposals, strict=False)
    )
    acts = [said for said in proposals if isinstance(said, Action)]
    decided = executed or (acts[0] if acts else None)
    credit = None
    if right is not None:
        keys = {action.key for action in right}
        credit = (tuple(None if m.action is None else float(m.action.key in keys)
                        for m in messages),)  # fmt: skip
    trace = Trace(
        run="r",
        seed=0,
        observation=seen or screen(),
        agents=AGENTS[: len(proposals)],
        rounds=1,
        calls=tuple(Call(message=message) for message in messages),
        ballot={action.json(): 1.0 for action in acts} if len(proposals) > 1 else {},
        action=decided if acts else None,
    )
    return StepRecord(
        trace=trace,
        executed=decided or WAIT,
        credit=credit,
        credit_source=source if credit is not None else "",
        expert=expert,
        terminated=terminated,
    )


def failed(*steps: StepRecord, fault: Failure | None = None) -> Episode:
    if steps and not steps[-1].terminated:
        steps = (*steps[:-1], msgspec.structs.replace(steps[-1], truncated=True))
    outcome = None if fault is not None else False
    return Episode(environment="e", task="t", seed=1, steps=steps, success=outcome, fault=fault)


RIGHT = step(OPEN, right=(OPEN,), expert=OPEN)


def test_a_solved_episode_has_no_class() -> None:
    solved = Episode(environment="e", task="t", seed=1, steps=(RIGHT,), success=True)
    assert failure_class(solved) is None


def test_a_fault_is_the_worlds() -> None:
    broken = failed(step("?"), fault=Failure(kind="environment", message="the page crashed"))
    assert failure_class(broken) == "world_fault"


@pytest.mark.parametrize(
    "steps",
    [
        (RIGHT, step("I would press save")),
        (RIGHT, step("hm", "pardon?"), step("hm", "what?"), RIGHT),
        (RIGHT, msgspec.structs.replace(step("hm"), executed=None)),
        (step(Action(action_type="click", x=2**40, y=1), executed=None),),
    ],
    ids=["last", "half", "a reply ended it", "outside of all bounds"],
)
def test_replies_without_an_action(steps: tuple[StepRecord, ...]) -> None:
    assert failure_class(failed(*steps)) == "reply_not_parsed"


def test_who_abstains_has_a_reply() -> None:
    silent = step('{"action_type":"pass"}', '{"action_type":"pass"}')
    assert failure_class(failed(silent, silent)) == "not_known"
    graded = msgspec.structs.replace(silent, credit=((None, None),), credit_source=SOLVER_CREDIT)
    assert failure_class(failed(RIGHT, graded)) == "other"


def test_the_same_action_on_the_same_screen_is_a_loop() -> None:
    again = [step(OPEN, seen=screen(past=k)) for k in range(3)]
    assert failure_class(failed(*again)) == "loop", "the list of past actions is not compared"
    assert failure_class(failed(*again[:2])) == "not_known"
    elsewhere = step(OPEN, seen=screen("other"))
    assert failure_class(failed(*again[:2], elsewhere)) == "not_known"
    between = step(BACK, seen=screen("other"))
    assert failure_class(failed(again[0], between, again[1], between, again[2])) == "loop"


def test_a_loop_that_the_agent_left_is_none() -> None:
    again = [step(OPEN, right=(), expert=SAVE) for _ in range(3)]
    end = step(DONE, right=(), expert=SAVE, terminated=True)
    assert failure_class(failed(*again, end)) == "wrong_element"


@pytest.mark.parametrize(
    "steps",
    [
        (RIGHT, step(DONE, right=(), expert=SAVE, terminated=True)),
        (step(OPEN), step(DONE, terminated=True)),
        (RIGHT, step(SAVE, right=(), expert=DONE), step(BACK, right=(), expert=DONE)),
    ],
    ids=["early", "early, ungraded", "missing"],
)
def test_declarations(steps: tuple[StepRecord, ...]) -> None:
    assert failure_class(failed(*steps)) == "declaration"


def test_a_declaration_after_a_mistake_is_not_the_mistake() -> None:
    wrong = step(OPEN, right=(), expert=SAVE)
    end = step(DONE, right=(), expert=SAVE, terminated=True)
    assert failure_class(failed(RIGHT, wrong, end)) == "wrong_element"
    assert failure_class(failed(wrong, RIGHT, end)) == "declaration", "it was corrected"


def test_a_vote_that_overrules_a_right_proposal() -> None:
    overruled = step(OPEN, SAVE, OPEN, right=(SAVE,), expert=SAVE)
    assert failure_class(failed(RIGHT, overruled)) == "vote_overruled"
    ended = step(DONE, SAVE, DONE, right=(SAVE,), expert=SAVE, terminated=True)
    assert failure_class(failed(RIGHT, ended)) == "vote_overruled"
    known_by_expert = step(OPEN, SAVE, OPEN, right=(), expert=SAVE)
    assert failure_class(failed(RIGHT, known_by_expert)) == "vote_overruled"


def test_a_right_proposal_outside_of_the_vote_was_not_overruled() -> None:
    spoken = step(OPEN, SAVE, OPEN, right=(SAVE,))
    trace = msgspec.structs.replace(spoken.trace, ballot={OPEN.json(): 2.0, "not an action": 1.0})
    outside = msgspec.structs.replace(spoken, trace=trace)
    assert failure_class(failed(RIGHT, outside)) == "wrong_element"


def test_wrong_elements_and_wrong_texts() -> None:
    assert failure_class(failed(RIGHT, step(OPEN, right=(), expert=SAVE))) == "wrong_element"
    assert failure_class(failed(RIGHT, step(OPEN, right=()))) == "wrong_element"
    same_text = msgspec.structs.replace(WRITE, index=1)
    assert failure_class(failed(step(same_text, right=(), expert=WRITE))) == "wrong_element"
    other_text = msgspec.structs.replace(WRITE, text="tea")
    assert failure_class(failed(step(other_text, right=(), expert=WRITE))) == "wrong_text"


def test_what_no_rule_names_is_other() -> None:
    assert failure_class(failed(RIGHT, step(BACK, right=(), expert=SAVE))) == "other"
    assert failure_class(failed(RIGHT, RIGHT)) == "other", "right, but too slow"


@pytest.mark.parametrize(
    "source", ["outcome", "critic: some model", "scripted critic, 10 % flipped"]
)
def test_estimates_of_other_critics_are_not_used(source: str) -> None:
    judged = step(OPEN, SAVE, OPEN, right=(SAVE,), source=source)
    assert failure_class(failed(judged)) == "not_known"
    assert failure_class(failed()) == "not_known", "no step at all"


def test_every_class_has_a_name_and_a_rule() -> None:
    assert tuple(FAILURE_NAMES) == tuple(FAILURE_RULES) == FAILURE_CLASSES


ACTIONS = st.sampled_from([SAVE, OPEN, BACK, WRITE, DONE, WAIT])
PROPOSALS = st.lists(
    ACTIONS | st.sampled_from(["hm", '{"action_type":"pass"}']), min_size=1, max_size=3
)
STEPS = st.builds(
    lambda said, right, expert, source, where, executed: step(
        *said, right=right, expert=expert, source=source, seen=screen(where), executed=executed
    ),
    PROPOSALS,
    st.none() | st.tuples(ACTIONS),
    st.none() | ACTIONS,
    st.sampled_from([SOLVER_CREDIT, "outcome"]),
    st.sampled_from(["", "other"]),
    st.none() | ACTIONS,
)


@given(steps=st.lists(STEPS, max_size=5), ends=st.booleans(), lost=st.booleans(),
       success=st.sampled_from([True, False, None]))  # fmt: skip
def test_each_failed_episode_has_exactly_one_class(
    steps: list[StepRecord], ends: bool, lost: bool, success: bool | None
) -> None:
    if steps:
        steps[-1] = msgspec.structs.replace(steps[-1], terminated=ends, truncated=not ends)
        if lost:
            steps[-1] = msgspec.structs.replace(steps[-1], executed=None)
    episode = Episode(environment="e", task="t", seed=1, steps=tuple(steps), success=success)
    found = failure_class(episode)
    assert (found is None) == (success is True)
    assert found is None or FAILURE_CLASSES.count(found) == 1
    assert (found == "world_fault") == (success is None)
    graded = any(s.expert is not None or s.credit_source == SOLVER_CREDIT for s in steps)
    if not graded:
        assert found in {
            None,
            "world_fault",
            "reply_not_parsed",
            "loop",
            "declaration",
            "not_known",
        }


# -- what a prompt left out --------------------------------------------------------------------


@pytest.fixture
def shown() -> Trace:
    return sample_trace("Ada", 0, random.Random(0))


def dropping(dropped: Dropped | None = None, order: tuple[int, ...] | None = None) -> Call:
    said = Message(id="agent_2:1", sender="agent_2", round=1, content="")
    made = Generation(prompt="", dropped=dropped)
    return Call(message=said, completion=made, heard=("agent_2:0", "agent_1:1"), order=order)


def test_whole_prompts_leave_nothing_out(shown: Trace) -> None:
    assert left_out(shown, dropping()) == ""
    assert left_out(shown, dropping(dropped=Dropped())) == ""


def test_actions_reasons_and_elements_are_told(shown: Trace) -> None:
    dropped = Dropped(history=3, reasons=(1,), elements=(0, 5))
    assert left_out(shown, dropping(dropped=dropped)) == (
        "3 oldest past actions; the reason of agent_1 (round 2); "
        "2 elements: “Contacts” [0], “Grace Hopper” [5]"
    )
    order = (5, 4, 3, 2, 1, 0)
    assert "“Grace Hopper” [5], “Contacts” [0]" in left_out(
        shown, dropping(dropped=dropped, order=order)
    )
    assert left_out(shown, dropping(dropped=Dropped(history=1))) == "the oldest past action"


def test_many_elements_and_long_labels_stay_short(shown: Trace) -> None:
    long = msgspec.structs.replace(shown.observation.elements[0], text="x" * 5_000)
    elements = (long,) * 300
    screen = msgspec.structs.replace(shown.observation, elements=elements)
    wide = msgspec.structs.replace(shown, observation=screen)
    told = left_out(wide, dropping(dropped=Dropped(elements=tuple(range(300)))))
    assert told.startswith("300 elements: “xxx") and told.endswith(", …") and len(told) < 500


def test_numbers_of_a_damaged_trace_name_nothing(shown: Trace) -> None:
    dropped = Dropped(reasons=(0, 7), elements=(99, -1))
    told = left_out(shown, dropping(dropped=dropped, order=(0,)))
    assert told == (
        "2 reasons of agent_2 (round 1); 2 elements: (not on the screen), (not on the screen)"
    )
