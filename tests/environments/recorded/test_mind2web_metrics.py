"""Mind2Web's metrics: cases computed by hand, and the official formula written out once more."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mind2web_samples import Answer, always, on, play, record, task, write

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


def official(tasks: list[dict[str, Any]], said: dict[str, list[Any]], top_k: int) -> Any:
    """The published formula, written straight down from its description."""
    element: list[tuple[float, str]] = []
    f1: list[tuple[float, str]] = []
    step: list[tuple[float, str]] = []
    for one in tasks:
        name = one["annotation_id"]
        for action, (node, kind, value) in zip(one["actions"], said[name], strict=True):
            kept = [c for c in action["pos_candidates"] if c["rank"] < top_k]
            ids = [c["backend_node_id"] for c in kept]
            if not ids or node is None:
                element.append((0, name))
                f1.append((0, name))
                step.append((0, name))
                continue
            gold = action["operation"]["op"]
            if gold != "CLICK":
                gold += " " + action["operation"]["value"]
            guess = kind if kind == "CLICK" else f"{kind} {value}"
            a, b = set(guess.strip().split()), set(gold.strip().split())
            hits = len(a & b)
            precision, recall = hits / (hits + len(a - b)), hits / (hits + len(b - a))
            agreed = 0.0 if hits == 0 else 2 * precision * recall / (precision + recall)
            element.append((float(node in ids), name))
            f1.append((agreed, name))
            step.append((float(agreed == 1 and node in ids), name))
    result = {}
    for key, values in (("element_acc", element), ("action_f1", f1), ("step_acc", step)):
        result[key] = sum(v for v, _ in values) / len(values)
        groups = defaultdict(list)
        for value, name in values:
            groups[name].append(value)
        means = [sum(g) / len(g) for g in groups.values()]
        result[f"marco_{key}"] = sum(means) / len(means)
    wrong = defaultdict(int)
    for value, name in step:
        wrong[name] += value == 0
    result["task success"] = sum(n == 0 for n in wrong.values()) / len(wrong)
    return result


VALUES = st.sampled_from(["", "a", "a b", "b a", "a a", "A", "c\nd"])
KINDS = {"CLICK": "click", "TYPE": "input_text", "SELECT": "select"}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_scorer_agrees_with_the_official_formula(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6)))
    top_k = data.draw(st.integers(1, 5))
    tasks, said, given = [], {}, {}
    for t in range(data.draw(st.integers(1, 4))):
        actions, answered = [], []
        for _ in range(data.draw(st.integers(1, 4))):
            nodes = rng.sample(range(1, 90), 5)
            ranks = dict(zip(nodes, rng.sample(range(5), 5), strict=True))
            right = rng.randint(0, 2)
            op = data.draw(st.sampled_from(sorted(KINDS)))
            value = data.draw(VALUES).split("\n")[0]
            actions.append(record(op, value, nodes[:right], nodes[right:], ranks=ranks))
            given[f"t{t}_t{t}-{len(actions) - 1}"] = {str(n): rank for n, rank in ranks.items()}
            shown = [n for n in nodes if ranks[n] < top_k]
            kind = op if rng.random() < 0.7 else rng.choice(sorted(KINDS))
            spoken = value if rng.random() < 0.6 else data.draw(VALUES).split("\n")[0]
            node = None if rng.random() < 0.1 else rng.choice(shown)
            node = nodes[0] if right and nodes[0] in shown and rng.random() < 0.5 else node
            answered.append((node and str(node), kind, spoken))
        tasks.append(task(f"t{t}", actions))
        said[f"t{t}"] = answered
    path = write(tmp_path_factory.mktemp("data"), tasks)
    found = Mind2Web(path, "test_task", top_k=top_k, ranks=given)
    episodes = [
        play(found, name, [_answer(*one) for one in answered]) for name, answered in said.items()
    ]
    scores = found.score(episodes, resamples=20)
    told = json.loads(path.read_text(encoding="utf-8"))
    expected = official(told, said, top_k)
    assert {k: scores[k].value for k in expected} == pytest.approx(expected)
    for one, episode in zip(told, episodes, strict=True):
        assert episode.success == (official([one], said, top_k)["task success"] == 1.0)


def _answer(node: str | None, kind: str, value: str) -> Answer:
    return WAIT if node is None else on(f"n{node}", KINDS[kind], None if kind == "CLICK" else value)


def test_intervals_come_from_drawing_tasks() -> None:
    """Ten tasks of ten equal steps: as uncertain as ten tosses, not as a hundred."""
    values = {f"t{k}": [float(k < 5)] * 10 for k in range(10)}
    micro, macro = measured(
        [MeasureInput(name="a", values=values), MeasureInput(name="b", values=values, macro=True)],
        seed=0,
        resamples=2000,
    )
    assert micro.value == macro.value == 0.5
    assert (micro.low, micro.high) == (0.2, 0.8) == (macro.low, macro.high)
    assert (micro.steps, micro.tasks) == (100, 10)
