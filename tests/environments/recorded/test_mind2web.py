"""Mind2Web: reading its files, its pages behind the environment contract, and its metrics."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from mind2web_samples import always, on, play, record, task, write
from PIL import Image

from swarm_ui import Action, ConfigError, EnvironmentFault
from swarm_ui.environments.recorded.mind2web import (
    SPLITS,
    Mind2Web,
    step_score,
    synthetic,
)
from swarm_ui.environments.recorded.scores import Column, measured
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE

WAIT = always(NONE_OF_THESE)


# ---- files and pages ------------------------------------------------------------------------


@pytest.mark.parametrize("split", [split for split in SPLITS if split != "train"])
def test_both_formats_of_the_synthetic_data_are_the_same_tasks(split: Any) -> None:
    raw, flat = Mind2Web(synthetic(), split), Mind2Web(synthetic(flattened=True), split)
    assert len(raw.tasks) == 2 and raw.tasks == flat.tasks
    for name in raw.tasks:
        assert raw.load(name) == flat.load(name)
        assert all(step.right(step.expert) for step in raw.load(name))


def test_attributes_make_roles_states_and_labels_in_the_order_of_the_page(tmp_path: Path) -> None:
    page = record("CLICK", "", [1], [2, 3, 4, 5], tag="input")
    told: list[dict[str, Any]] = [
        {"type": "checkbox", "aria_label": "News", "input_checked": "true"},
        {"type": "submit", "value": "Send"},
        {"role": "tab", "aria_label": "Map", "aria_selected": "true"},
        {"type": "password", "placeholder": "Secret", "bounding_box_rect": "-1,-1,-1,-1"},
        {"name": "city", "input_value": "Oslo", "bounding_box_rect": "1.4,2.6,3,4"},
    ]
    for candidate, attributes in zip(
        page["pos_candidates"] + page["neg_candidates"], told, strict=True
    ):
        candidate["attributes"] = json.dumps(attributes)
    page["neg_candidates"][1]["tag"] = "div"
    page["cleaned_html"] = "<html>" + '<input backend_node_id="5"/>' + "</html>"
    write(tmp_path, [task("t", [page])])
    elements = {e.label: e for e in Mind2Web(tmp_path).load("t")[0].observation.elements}
    assert [e.role for e in elements.values()] == ["field", "checkbox", "button", "tab", "field"]
    assert list(elements) == ["city", "News", "Send", "Map", "Secret"]
    assert (elements["News"].checked, elements["Map"].selected) == (True, True)
    assert elements["city"].value == "Oslo" and elements["city"].bounds == (1, 3, 4, 7)
    assert elements["Secret"].bounds is None and elements["Send"].value is None


def test_top_k_by_given_ranks(tmp_path: Path) -> None:
    write(tmp_path, [task("t", [record("CLICK", "", [2], [1, 3])])])
    ranks = {"other": {}, "t_t-0": {"3": 0, "1": 1, "2": 2}}
    for top_k, shown, rights in ((2, ["n1", "n3"], ()), (3, ["n1", "n2", "n3"], ("2",))):
        data = Mind2Web(tmp_path / "test_task_0.json", top_k=top_k, ranks=ranks)
        step = data.load("t")[0]
        assert [e.label for e in step.observation.elements] == shown
        assert step.rights == rights
        assert f"top {top_k}" in data.name and "built-in" not in data.name
    for wrong in ({}, {"t_t-0": {"1": 0}}):
        with pytest.raises(ConfigError, match="t_t-0"):
            Mind2Web(tmp_path, ranks=wrong).load("t")  # type: ignore[arg-type]


def test_the_built_in_ranker_does_not_know_what_is_right(tmp_path: Path) -> None:
    shown = []
    for pos, neg in (([1], [2, 3, 4]), ([4], [1, 2, 3]), ([], [1, 2, 3, 4])):
        write(tmp_path, [task("t", [record("CLICK", "", pos, neg)])])
        screen = Mind2Web(tmp_path, top_k=2).load("t")[0].observation
        shown.append([e.label for e in screen.elements])
    assert shown[0] == shown[1] == shown[2]


def test_rows_of_a_task_may_be_anywhere_and_may_be_missing(tmp_path: Path) -> None:
    mixed = rows()
    for number, chosen in enumerate((mixed[1::2], mixed[:2:-2])):
        lines = "".join(json.dumps(row) + "\n" for row in chosen)
        (tmp_path / f"test_website_{number}.jsonl").write_text(lines, encoding="utf-8")
    data = Mind2Web(tmp_path, "test_website")
    # The first row of this task is in neither file; its action still stands in the history.
    parks, tools = (data.load(f"synthetic-test_website-{k}") for k in (0, 1))
    assert [len(s.observation.history) for s in parks] == [1]
    assert [len(s.observation.history) for s in tools] == [0, 1, 2, 3]


def rows() -> list[dict[str, Any]]:
    path = synthetic(flattened=True) / "test_website.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_and_pictures_of_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    picture = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(picture, "JPEG")
    table = [{**row, "screenshot": {"bytes": picture.getvalue(), "path": None}} for row in rows()]
    path = tmp_path / "test_website-00000-of-00001.parquet"
    parquet.write_table(arrow.Table.from_pylist(table), path, row_group_size=2)
    ours = Mind2Web(tmp_path, "test_website", screenshots=True)
    theirs = Mind2Web(synthetic(), "test_website")
    assert ours.tasks == theirs.tasks
    for name in theirs.tasks:
        for one, other in zip(ours.load(name), theirs.load(name), strict=True):
            assert (one.observation.png or b"").startswith(b"\x89PNG")
            assert one.observation.elements == other.observation.elements
            assert one.expert == other.expert
    assert Mind2Web(path, "test_website").load(ours.tasks[0])[0].observation.png is None
    with pytest.raises(ConfigError, match="screenshot"):
        Mind2Web(synthetic(), "test_website", screenshots=True).load(ours.tasks[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"cleaned_html": None},
        {"confirmed_task": 7},
        {"operation": {"op": "FLY"}},
        {"action_reprs": ["step"]},
        {"cleaned_html": "<html><p></html>"},
        {"neg_candidates": [{"tag": "a"}]},
    ],
    ids=str,
)
def test_a_wrong_task_is_named(tmp_path: Path, changes: dict[str, Any]) -> None:
    one = task("t", [record("CLICK", "", [1], [2])])
    for name, value in changes.items():
        (one["actions"][0] if name in one["actions"][0] else one)[name] = value
    path = write(tmp_path, [one])
    with pytest.raises(ConfigError, match=r"task 't': not an action of Mind2Web"):
        Mind2Web(path).load("t")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"other": ["a"]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_bytes(b"no such thing")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "cut.json").write_text('[{"annot', encoding="utf-8")
    for name in {path.name for path in tmp_path.iterdir()} | {"nowhere.json"}:
        with pytest.raises(ConfigError, match=name):
            _ = Mind2Web(tmp_path / name, "train").tasks
    with pytest.raises(ConfigError, match="nobody"):
        Mind2Web(synthetic()).load("nobody")
    (tmp_path / "train.json").write_text("[]", encoding="utf-8")
    (tmp_path / "train.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"json and \.jsonl"):
        _ = Mind2Web(tmp_path, "train").tasks
    with pytest.raises(ConfigError, match="test_website"):
        Mind2Web(tmp_path, "test")  # type: ignore[arg-type]


# ---- episodes -------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> Mind2Web:
    pages = [record("CLICK", "", [10 * k], [10 * k + 1, 10 * k + 2]) for k in (1, 2, 3)]
    write(tmp_path, [task("t", pages), task("empty", [])])
    return Mind2Web(tmp_path)


def test_what_is_no_answer_counts_as_a_wrong_one(data: Mind2Web) -> None:
    nowhere = always(Action(action_type="click", index=7))
    episode = play(data, "t", [on("n10"), nowhere, on("n20"), on("n30")])
    assert episode.steps[1].note == "no element 7; the page has 3"
    assert episode.steps[-1].terminated and episode.steps[-1].reward == 0
    assert [len(s.trace.observation.history) for s in episode.steps] == [0, 1, 2, 2]
    scroll = always(Action(action_type="scroll", direction="down"))
    aside = always(Action(action_type="click", x=-5, y=3))
    first, second, *_ = play(data, "t", [scroll, aside, on("n30")]).steps
    assert first.note == "'scroll' is not an operation of Mind2Web: taken as 'none of these'"
    assert second.note == "no element at (-5, 3): taken as 'none of these'"


def test_a_point_means_the_smallest_element_there() -> None:
    step = Mind2Web(synthetic(), "test_task").load("synthetic-test_task-0")[0]
    left, top, right, bottom = step.observation.elements[step.expert.index or 0].bounds or ()
    x, y = (left + right) // 2, (top + bottom) // 2
    assert step.right(Action(action_type="input_text", x=x, y=y, text="Northport"))
    assert not step.right(Action(action_type="input_text", x=x, y=y + 40, text="Northport"))


async def test_pages_without_a_right_element_empty_tasks_and_strange_states(
    tmp_path: Path, data: Mind2Web
) -> None:
    with pytest.raises(ConfigError):
        await data.environment().reset(task="empty", seed=0)
    write(tmp_path, [task("t", [record("CLICK", "", [], [1, 2])] * 2)])
    env = Mind2Web(tmp_path).environment()
    await env.reset(task="t", seed=0)
    assert env.expert() == NONE_OF_THESE
    actions = [NONE_OF_THESE, *(Action(action_type="click", index=k) for k in (0, 1))]
    assert [env.grade(action) for action in actions] == [0, 0, 0]
    with pytest.raises(EnvironmentFault):
        env.restore("state")


# ---- metrics --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicted", "rights", "recorded", "scores"),
    [
        (("7", "CLICK"), "57", "CLICK", (1, 1, 1)),
        (("7", "CLICK"), "5", "CLICK", (0, 1, 0)),
        (("7", "CLICK"), "", "CLICK", (0, 0, 0)),  # the pruning kept no right element
        (None, "7", "CLICK", (0, 0, 0)),
        (("7", "CLICK"), "7", "TYPE New York", (1, 0, 0)),
        (("7", "TYPE York"), "7", "TYPE New York", (1, 0.8, 0)),  # precision 1, recall 2/3
        (("7", "TYPE new York"), "7", "TYPE New York", (1, 2 / 3, 0)),  # case counts
        (("7", "TYPE York York"), "7", "TYPE York", (1, 1, 1)),  # sets of words
        (("7", ""), "7", "", (1, 1, 1)),
    ],
)
def test_a_step_by_hand(
    predicted: Any, rights: str, recorded: str, scores: tuple[float, ...]
) -> None:
    assert step_score(predicted, list(rights), recorded) == pytest.approx(scores)


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
    assert "step success (macro): 41.7 [" in str(scores)


def test_unanswered_steps_are_wrong_faults_are_masked(two_tasks: Mind2Web, tmp_path: Path) -> None:
    right = play(two_tasks, "ada", [on("n11", "input_text", "New York"), on("n21")])
    wrong = play(two_tasks, "bob", [on("n31", "select", "2"), on("n41"), on("n51")])
    assert two_tasks.score([right, wrong])["task success"].value == 0.5
    nowhere = always(Action(action_type="click", index=99))
    cut = play(two_tasks, "ada", [nowhere, on("n11", "input_text", "New York")])
    broken = play(two_tasks, "bob", [WAIT], fault="the endpoint is gone")
    scores = two_tasks.score([cut, broken])
    assert scores["element_acc"].value == 0.0  # the first action on a page is the answer to it
    assert scores.counts == {
        "episodes": 2, "masked by a fault": 1, "steps": 2, "pointing at no element": 1,
        "not reached": 1,
    }  # fmt: skip
    with pytest.raises(ConfigError, match=r"'ada', step 0.*same data and settings"):
        Mind2Web(tmp_path, "test_task", top_k=1).score([right])


def test_intervals_come_from_drawing_tasks() -> None:
    """Ten tasks of ten equal steps: as uncertain as ten tosses, not as a hundred."""
    attempts = [(f"t{k}", [{"v": float(k < 5)}] * 10) for k in range(10)]
    micro, macro = measured([Column("a", "v"), Column("b", "v", macro=True)], attempts)
    assert micro.value == macro.value == 0.5
    assert (micro.low, micro.high) == (0.2, 0.8) == (macro.low, macro.high)
    assert (micro.steps, micro.tasks) == (100, 10)
