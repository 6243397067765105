"""Mind2Web's metrics: cases computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from mind2web_samples import always, on, play, record, task, write

from swarm_ui import Action, ConfigError
from swarm_ui.environments.mind2web import Mind2Web, operation_f1, step_score
from swarm_ui.environments.recorded.scores import MeasureInput, measured
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE

WAIT = always(NONE_OF_THESE)


@pytest.mark.parametrize(
    ("predicted", "recorded", "f1"),
    [
        ("CLICK", "CLICK", 1.0),
        ("CLICK", "TYPE New York", 0.0),
        ("TYPE York", "TYPE New York", 2 * 1.0 * (2 / 3) / (1.0 + 2 / 3)),  # precision 1, recall ⅔
        ("TYPE new York", "TYPE New York", 2 / 3),  # case counts: 2 of 3 words, both ways
        ("TYPE York York", "TYPE York", 1.0),  # sets, so a word said twice is one word
        ("", "", 1.0),
        ("", "CLICK", 0.0),
        ("CLICK", "", 0.0),
    ],
)
def test_operation_f1_by_hand(predicted: str, recorded: str, f1: float) -> None:
    assert operation_f1(predicted, recorded) == pytest.approx(f1)


def test_a_step_needs_a_right_element_that_survived_the_pruning() -> None:
    assert step_score(("7", "CLICK"), ("5", "7"), "CLICK") == (1.0, 1.0, 1.0)
    assert step_score(("7", "CLICK"), ("5",), "CLICK") == (0.0, 1.0, 0.0)
    assert step_score(("7", "TYPE a"), ("7",), "TYPE a b") == (1.0, pytest.approx(0.8), 0.0)
    assert step_score(("7", "CLICK"), (), "CLICK") == (0.0, 0.0, 0.0)
    assert step_score(None, ("7",), "CLICK") == (0.0, 0.0, 0.0)


@pytest.fixture
def two_tasks(tmp_path: Path) -> Mind2Web:
    ada = [record("TYPE", "New York", [11], [12]), record("CLICK", "", [21, 22], [23])]
    bob = [
        record("SELECT", "2", [31], [32]),
        record("CLICK", "", [], [41, 42]),
        record("CLICK", "", [51], [52]),
    ]
    write(tmp_path, [task("ada", ada), task("bob", bob)])
    return Mind2Web(tmp_path, "test_task")


def test_a_table_by_hand(two_tasks: Mind2Web) -> None:
    """Element, F1, step of each answer::

    ada  1    0.8  0     right field, "York" instead of "New York"
         1    1    1     the second of two right elements
    bob  1    0    0     clicked where "2" was to be selected
         0    0    0     nothing right on the page, so nothing counts
         1    1    1
    """
    scores = two_tasks.score(
        [
            play(two_tasks, "ada", [on("n11", "input_text", "York"), on("n22")]),
            play(two_tasks, "bob", [on("n31"), on("n41"), on("n51")]),
        ]
    )
    by_hand = {
        "element_acc": 4 / 5,
        "marco_element_acc": (2 / 2 + 2 / 3) / 2,
        "action_f1": (0.8 + 1 + 0 + 0 + 1) / 5,
        "marco_action_f1": ((0.8 + 1) / 2 + 1 / 3) / 2,
        "step_acc": 2 / 5,
        "marco_step_acc": (1 / 2 + 1 / 3) / 2,
        "task success": 0.0,
        "right element kept by pruning": 4 / 5,
    }
    assert {k: scores[k].value for k in by_hand} == pytest.approx(by_hand)
    assert (scores["step_acc"].steps, scores["step_acc"].tasks) == (5, 2)
    assert "| step success (macro) | `marco_step_acc` | 41.7 [" in scores.markdown()


def test_task_success_is_a_task_without_a_wrong_step(two_tasks: Mind2Web) -> None:
    ada = play(two_tasks, "ada", [on("n11", "input_text", "New York"), on("n21")])
    bob = play(two_tasks, "bob", [on("n31", "select", "2"), on("n41"), on("n51")])
    assert (ada.success, bob.success) == (True, False)
    assert two_tasks.score([ada, bob])["task success"].value == 0.5


def test_what_was_not_answered_is_wrong_and_counted(two_tasks: Mind2Web) -> None:
    nowhere = always(Action(action_type="click", index=99))
    cut = play(two_tasks, "ada", [nowhere, on("n11", "input_text", "New York")])
    scores = two_tasks.score([cut])
    assert scores["element_acc"].value == 0.0  # the first action on a page is the answer to it
    assert scores.counts == {
        "episodes": 1, "masked by a fault": 0, "steps": 2, "pointing at no element": 1,
        "not reached": 1,
    }  # fmt: skip


def test_faults_are_masked_not_wrong(two_tasks: Mind2Web) -> None:
    right = [on("n11", "input_text", "New York"), on("n21")]
    broken = play(two_tasks, "bob", [WAIT], fault="the endpoint is gone")
    scores = two_tasks.score([play(two_tasks, "ada", right), broken])
    assert scores["step_acc"].value == 1.0 and scores.counts["masked by a fault"] == 1


def test_an_episode_of_other_settings_is_refused(two_tasks: Mind2Web, tmp_path: Path) -> None:
    episode = play(two_tasks, "ada", [on("n12"), on("n23")])
    with pytest.raises(ConfigError, match=r"'ada', step 0.*same data and settings"):
        Mind2Web(tmp_path, "test_task", top_k=1).score([episode])


def test_intervals_come_from_drawing_tasks() -> None:
    """Ten tasks of ten equal steps: as uncertain as ten tosses, not as a hundred."""
    values = {f"t{k}": [float(k < 5)] * 10 for k in range(10)}
    micro, macro = measured(
        [MeasureInput(name="a", values=values), MeasureInput(name="b", values=values, macro=True)],
    )
    assert micro.value == macro.value == 0.5
    assert (micro.low, micro.high) == (0.2, 0.8) == (macro.low, macro.high)
    assert (micro.steps, micro.tasks) == (100, 10)
