"""Reading Mind2Web: formats, pruning, elements, history, and data that is wrong."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mind2web_samples import record, task, write
from PIL import Image

from swarm_ui import ConfigError, MissingExtra
from swarm_ui.environments.mind2web import SPLITS, Mind2Web, synthetic

TESTS = [split for split in SPLITS if split != "train"]


@pytest.mark.parametrize("split", TESTS)
def test_both_formats_of_the_synthetic_data_are_the_same_tasks(split: Any) -> None:
    raw, flat = Mind2Web(synthetic(), split), Mind2Web(synthetic(flattened=True), split)
    assert len(raw.tasks) == 2 and raw.tasks == flat.tasks
    for name in raw.tasks:
        ours, theirs = raw.load(name), flat.load(name)
        assert [s.observation for s in ours] == [s.observation for s in theirs]
        assert [s.expert for s in ours] == [s.expert for s in theirs]
        assert all(s.right(s.expert) for s in ours)


def test_elements_stand_as_on_the_page_never_the_right_ones_first(tmp_path: Path) -> None:
    write(tmp_path, [task("t", [record("CLICK", "", [50], [70, 20, 60])])])
    step = Mind2Web(tmp_path).load("t")[0]
    assert [e.label for e in step.observation.elements] == ["n20", "n50", "n60", "n70"]


def test_attributes_make_roles_states_and_labels(tmp_path: Path) -> None:
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


# ---- pruning --------------------------------------------------------------------------------


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


# ---- files ----------------------------------------------------------------------------------


def test_files_of_a_split_are_found_wherever_they_lie(tmp_path: Path) -> None:
    for folder, split in (("data/train", "train"), ("test/test_task", "test_task")):
        (tmp_path / folder).mkdir(parents=True)
        for k in (0, 1):
            one = task(f"{split}-{k}", [record("CLICK", "", [1], [2])])
            write(tmp_path / folder, [one], f"{split}_{k}.json")
    assert Mind2Web(tmp_path, "train").tasks == ("train-0", "train-1")
    assert Mind2Web(tmp_path, "test_task").tasks == ("test_task-0", "test_task-1")
    with pytest.raises(ConfigError, match="test_domain"):
        _ = Mind2Web(tmp_path, "test_domain").tasks


def rows() -> list[dict[str, Any]]:
    path = synthetic(flattened=True) / "test_website.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_of_a_task_may_be_anywhere_and_may_be_missing(tmp_path: Path) -> None:
    mixed = rows()
    for number, chosen in enumerate((mixed[1::2], mixed[:2:-2])):
        lines = "".join(json.dumps(row) + "\n" for row in chosen)
        (tmp_path / f"test_website_{number}.jsonl").write_text(lines, encoding="utf-8")
    data = Mind2Web(tmp_path, "test_website")
    parks = data.load("synthetic-test_website-0")
    # The first row of this task is in neither file; its action still stands in the history.
    assert [len(s.observation.history) for s in parks] == [1]
    tools = data.load("synthetic-test_website-1")
    assert [len(s.observation.history) for s in tools] == [0, 1, 2, 3]


def png(color: str, form: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 2), color).save(out, form)
    return out.getvalue()


def test_rows_and_pictures_of_parquet(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = rows()
    for row in table:
        row["screenshot"] = {"bytes": png("red", "JPEG"), "path": None}
    path = tmp_path / "test_website-00000-of-00001.parquet"
    parquet.write_table(arrow.Table.from_pylist(table), path, row_group_size=2)
    ours = Mind2Web(tmp_path, "test_website", screenshots=True)
    theirs = Mind2Web(synthetic(), "test_website")
    assert ours.tasks == theirs.tasks
    for name in theirs.tasks:
        for one, other in zip(ours.load(name), theirs.load(name), strict=True):
            assert one.observation.png is not None
            assert one.observation.png.startswith(b"\x89PNG")
            assert one.observation.elements == other.observation.elements
            assert one.expert == other.expert
    assert Mind2Web(path, "test_website").load(ours.tasks[0])[0].observation.png is None
    with pytest.raises(ConfigError, match="screenshot"):
        Mind2Web(synthetic(), "test_website", screenshots=True).load(ours.tasks[0])


def test_parquet_without_datasets_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train-0.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[mind2web\]"):
        _ = Mind2Web(tmp_path, "train").tasks


def wrong(**changes: Any) -> dict[str, Any]:
    one = task("t", [record("CLICK", "", [1], [2])])
    action = one["actions"][0]
    for name, value in changes.items():
        holder = action if name in action else one
        if value is None:
            del holder[name]
        else:
            holder[name] = value
    return one


@pytest.mark.parametrize(
    "changes",
    [
        {"cleaned_html": None},
        {"annotation_id": None},
        {"confirmed_task": 7},
        {"actions": "none"},
        {"operation": {"op": "HOVER"}},
        {"action_reprs": []},
        {"action_reprs": ["step"]},
        {"cleaned_html": "<html><p></html>"},
        {"cleaned_html": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'},
        {"neg_candidates": [{"tag": "a"}]},
        {"pos_candidates": [{"tag": "a", "backend_node_id": "1", "attributes": "{"}]},
    ],
    ids=str,
)
def test_a_wrong_task_is_named(tmp_path: Path, changes: Any) -> None:
    path = write(tmp_path, [wrong(**changes)])
    with pytest.raises(ConfigError, match=r"test_task_0\.json"):
        Mind2Web(path).load("t")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"annotation_id": ["a"]}), tmp_path / "columns.parquet")
    parquet.write_table(arrow.table({"other": ["a"]}), tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_bytes(b"no such thing")
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "cut.json").write_text('[{"annot', encoding="utf-8")
    names = {path.name for path in tmp_path.iterdir()} | {"nowhere.json"}
    for name in names:
        with pytest.raises(ConfigError, match=name):
            Mind2Web(tmp_path / name, "train").load("a")
    (tmp_path / "train.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ConfigError, match="nobody"):
        Mind2Web(tmp_path, "train").load("nobody")
    (tmp_path / "train.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"json and \.jsonl"):
        _ = Mind2Web(tmp_path, "train").tasks
    with pytest.raises(ConfigError, match="test_website"):
        Mind2Web(tmp_path, "test")  # type: ignore[arg-type]
