"""Wrappers around a phone whose screens list only the last actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.studies.windows.long_phone import LongPhone
from swarm_ui import read_jsonl
from swarm_ui.action import Action
from swarm_ui.environment import Environment, Forgetful, Restorable
from swarm_ui.environments import check_environment
from swarm_ui.environments.wrappers import ActionFilter, Confirm, Recorder, Rule, StepLimit
from swarm_ui.environments.wrappers.action_rules import first_match
from swarm_ui.experiment.user_code import UserEnvironment
from swarm_ui.observation import Observation

CREATE, SEED = "notes-create", 1
WAIT = Action(action_type="wait")
BACK = Action(action_type="navigate_back")
ANSWER = Action(action_type="answer", text="forbidden words")
NO_ANSWERS = Rule(name="no answers", words=("forbidden",), on=("text",))


def actions(screen: Observation) -> list[Action]:
    return [past.action for past in screen.history]


async def played(env: Environment, *given: Action) -> list[Action]:
    """What the last screen lists after these actions."""
    screen = await env.reset(task=CREATE, seed=SEED)
    for action in given:
        screen = (await env.step(action)).observation
    return actions(screen)


def filtered(memory: int | None) -> ActionFilter:
    return ActionFilter(LongPhone(memory=memory), deny=[NO_ANSWERS])


async def test_a_refused_action_is_among_the_last_actions() -> None:
    assert first_match([NO_ANSWERS], ANSWER, Observation(goal="g", elements=())) is not None
    assert await played(filtered(None), WAIT, ANSWER, BACK) == [WAIT, ANSWER, BACK]
    assert await played(filtered(1), BACK, ANSWER) == [ANSWER]
    assert await played(filtered(1), ANSWER, WAIT, WAIT) == [ANSWER]
    assert await played(filtered(1), ANSWER, BACK) == [BACK]
    assert await played(filtered(2), ANSWER, BACK, WAIT, ANSWER) == [BACK, ANSWER]
    assert await played(filtered(3), ANSWER, BACK) == [ANSWER, BACK]
    assert await played(filtered(0), ANSWER) == []


async def test_nested_wrappers_keep_it_there_and_restore_it() -> None:
    async def no(question: object) -> bool:
        return False

    phone = UserEnvironment(LongPhone(memory=3))
    asked = Rule(name="other answers", words=("other",), on=("text",))
    env = ActionFilter(StepLimit(Confirm(phone, no, rules=[asked]), 20), deny=[NO_ANSWERS])
    other = Action(action_type="answer", text="other words")
    assert isinstance(env, Forgetful) and isinstance(env, Restorable)
    assert await played(env, other, ANSWER, BACK) == [other, ANSWER, BACK]
    aside = env.snapshot()
    assert actions((await env.step(ANSWER)).observation) == [ANSWER, BACK, ANSWER]
    assert actions(env.restore(aside)) == [other, ANSWER, BACK]


@pytest.mark.parametrize("memory", [0, 1])
async def test_a_short_memory_keeps_the_contract(memory: int) -> None:
    check_environment(lambda: LongPhone(memory=memory), tasks=(CREATE,))


async def test_a_recording_numbers_all_its_decisions(tmp_path: Path) -> None:
    env = Recorder(LongPhone(memory=0), tmp_path / "e.jsonl")
    await played(env, BACK, BACK, Action(action_type="status", goal_status="complete"))
    (episode,) = read_jsonl(tmp_path / "e.jsonl")
    assert [s.trace.run for s in episode.steps] == [f"{CREATE}/{SEED}/{k}" for k in range(3)]
    assert len({s.trace.seed for s in episode.steps}) == 3
