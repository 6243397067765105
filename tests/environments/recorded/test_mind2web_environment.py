"""Mind2Web behind the environment contract, and a team on it from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mind2web_samples import always, on, play, record, task, write

from swarm_ui import (
    Action,
    ConfigError,
    EnvironmentFault,
)
from swarm_ui.environments.mind2web import Mind2Web, synthetic
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE, TeacherForced


@pytest.fixture
def data(tmp_path: Path) -> Mind2Web:
    pages = [record("CLICK", "", [10 * k], [10 * k + 1, 10 * k + 2]) for k in (1, 2, 3)]
    write(tmp_path, [task("t", pages)])
    return Mind2Web(tmp_path)


def labels(data: Mind2Web, answers: list[Any]) -> list[list[str]]:
    screens = [s.trace.observation for s in play(data, "t", answers).steps]
    return [[e.label for e in screen.elements] for screen in screens]


def test_whatever_the_agent_does_the_recording_goes_on(data: Mind2Web) -> None:
    pages = [["n10", "n11", "n12"], ["n20", "n21", "n22"], ["n30", "n31", "n32"]]
    assert labels(data, [on("n10"), on("n20"), on("n30")]) == pages
    assert labels(data, [on("n12"), always(NONE_OF_THESE), on("n31")]) == pages
    wrong = play(data, "t", [on("n12"), on("n20"), on("n30")])
    history = [past.label for past in wrong.steps[2].trace.observation.history]
    assert history == ["step 0", "step 1"]  # the recorded actions, not the agent's


def test_reward_only_at_the_end_and_only_if_all_steps_were_right(data: Mind2Web) -> None:
    right = play(data, "t", [on("n10"), on("n20"), on("n30")])
    assert [(s.reward, s.terminated) for s in right.steps] == [(0, False), (0, False), (1, True)]
    for wrong in range(3):
        answers = [on("n10"), on("n20"), on("n30")]
        answers[wrong] = always(NONE_OF_THESE)
        assert [s.reward for s in play(data, "t", answers).steps] == [0, 0, 0]


def test_pointing_nowhere_is_a_wrong_answer_to_its_page(data: Mind2Web) -> None:
    nowhere = always(Action(action_type="click", index=7))
    episode = play(data, "t", [on("n10"), nowhere, on("n20"), on("n30")])
    assert episode.steps[1].note == "no element 7; the page has 3"
    assert episode.steps[-1].terminated and episode.steps[-1].reward == 0
    assert [len(s.trace.observation.history) for s in episode.steps] == [0, 1, 2, 2]


def test_what_is_no_operation_is_none_of_these(data: Mind2Web) -> None:
    scroll = always(Action(action_type="scroll", direction="down"))
    aside = always(Action(action_type="click", x=-5, y=3))
    first, second, *_ = play(data, "t", [scroll, aside, on("n30")]).steps
    assert first.note == "'scroll' is not an operation of Mind2Web: taken as 'none of these'"
    assert second.note == "no element at (-5, 3): taken as 'none of these'"


def test_a_point_means_the_smallest_element_there() -> None:
    found = Mind2Web(synthetic(), "test_task")
    step = found.load("synthetic-test_task-0")[0]
    left, top, right, bottom = step.observation.elements[step.expert.index or 0].bounds or ()
    x, y = (left + right) // 2, (top + bottom) // 2
    assert step.right(Action(action_type="input_text", x=x, y=y, text="Northport"))
    assert not step.right(Action(action_type="input_text", x=x, y=y + 40, text="Northport"))


async def test_a_page_without_a_right_element_cannot_be_answered(tmp_path: Path) -> None:
    write(tmp_path, [task("t", [record("CLICK", "", [], [1, 2])] * 2)])
    env = Mind2Web(tmp_path).environment()
    await env.reset(task="t", seed=0)
    assert env.expert() == NONE_OF_THESE
    actions = [NONE_OF_THESE, *(Action(action_type="click", index=k) for k in (0, 1))]
    assert [env.grade(action) for action in actions] == [0, 0, 0]


async def test_empty_tasks_and_strange_states_are_refused(tmp_path: Path) -> None:
    write(tmp_path, [task("t", [])])
    env: TeacherForced = Mind2Web(tmp_path).environment()
    with pytest.raises(ConfigError):
        await env.reset(task="t", seed=0)
    with pytest.raises(EnvironmentFault):
        env.restore("state")
