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

from swarm_ui import ConfigError, MissingExtra, render
from swarm_ui.environments.mind2web import SPLITS, Mind2Web, synthetic

TESTS = [split for split in SPLITS if split != "train"]


@pytest.mark.parametrize("split", TESTS)
def test_both_formats_of_the_synthetic_data_are_the_same_tasks(split: Any) -> None:
    raw, flat = Mind2Web(synthetic(), split), Mind2Web(synthetic(flattened=True), split)
    assert len(raw.tasks) == 2 and raw.tasks == flat.tasks
    for name in raw.tasks:
        ours, theirs = raw.load(name), flat.load(name)
        assert [s.observation for s in ours] == [s.observation for s in theirs]
        assert [s.expert() for s in ours] == [s.expert() for s in theirs]
        assert all(s.right(s.expert()) for s in ours)


def test_a_page_as_an_agent_sees_it() -> None:
    data = Mind2Web(synthetic(), "test_task")
    third = data.load("synthetic-test_task-0")[2]
    assert render(third.observation).splitlines() == [
        '0: link "Home"',
        '1: link "Help"',
        '2: link "Sign in"',
        '3: field "Departure harbour" value="Northport"',
        '4: field "Arrival harbour" value="Elm Island"',
        '5: field "1 2 3 4" value=""',
        '6: button "Search ferries"',
    ]
    people = third.observation.elements[5]
    assert (people.description, people.editable) == ("People", False)
    assert people.bounds == (20, 250, 220, 280)
    assert [(p.action.action_type, p.label, p.action.text) for p in third.observation.history] == [
        ("input_text", "Departure harbour", "Northport"),
        ("input_text", "Arrival harbour", "Elm Island"),
    ]
    assert third.expert().json() == (
        '{"action_type":"select","target":"1 2 3 4","index":5,"text":"2"}'
    )


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


def test_long_texts_are_cut_and_a_list_keeps_its_options(tmp_path: Path) -> None:
    many = " ".join(map(str, range(30)))
    pages = [record("CLICK", "", [1], [2], tag=tag) for tag in ("div", "select")]
    for page in pages:
        page["cleaned_html"] = page["cleaned_html"].replace("n1", many)
    write(tmp_path, [task("t", pages)])
    long, options = (s.observation.elements[0] for s in Mind2Web(tmp_path, words=3).load("t"))
    assert (long.text, options.text) == ("0 1 2 …", many)


# ---- pruning --------------------------------------------------------------------------------


def test_top_k_by_ranks_in_the_data(tmp_path: Path) -> None:
    ranks = {1: 2, 2: 0, 3: 1, 4: 3}
    write(tmp_path, [task("t", [record("CLICK", "", [1], [2, 3, 4], ranks=ranks)])])
    for top_k, shown, rights in ((2, ["n2", "n3"], ()), (3, ["n1", "n2", "n3"], ("1",))):
        data = Mind2Web(tmp_path, top_k=top_k, ranks="data")
        step = data.load("t")[0]
        assert [e.label for e in step.observation.elements] == shown
        assert step.rights == rights
        assert data.name == f"mind2web test_task (offline, top {top_k} by ranks in the data)"


@pytest.mark.parametrize("kind", ["mapping", "file"])
def test_top_k_by_given_ranks(tmp_path: Path, kind: str) -> None:
    write(tmp_path, [task("t", [record("CLICK", "", [1], [2, 3])])])
    best_first = {"3": 0, "1": 1, "2": 2}
    ranks: Any = {"t_t-0": best_first}
    if kind == "file":
        ranks = tmp_path / "ranks.jsonl"
        lines = [{"id": "other", "ranks": {}}, {"id": "t_t-0", "ranks": best_first}]
        ranks.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    step = Mind2Web(tmp_path / "test_task_0.json", top_k=2, ranks=ranks).load("t")[0]
    assert [e.label for e in step.observation.elements] == ["n1", "n3"]


def test_the_built_in_ranker_goes_by_words_and_says_what_it_is(tmp_path: Path) -> None:
    page = record("CLICK", "", [4], [1, 2, 3])
    page["cleaned_html"] = page["cleaned_html"].replace("n4", "Quiet Orchard")
    write(tmp_path, [task("t", [page], goal="Buy The Quiet Orchard.")])
    data = Mind2Web(tmp_path, top_k=1)
    assert [e.label for e in data.load("t")[0].observation.elements] == ["Quiet Orchard"]
    assert "the built-in word ranker" in data.name


def test_the_built_in_ranker_does_not_know_what_is_right(tmp_path: Path) -> None:
    shown = []
    for pos, neg in (([1], [2, 3, 4]), ([4], [1, 2, 3]), ([], [1, 2, 3, 4])):
        write(tmp_path, [task("t", [record("CLICK", "", pos, neg)])])
        screen = Mind2Web(tmp_path, top_k=2).load("t")[0].observation
        shown.append([e.label for e in screen.elements])
    assert shown[0] == shown[1] == shown[2]


def test_all_candidates_without_pruning(tmp_path: Path) -> None:
    write(tmp_path, [task("t", [record("CLICK", "", [1], range(2, 200))])])
    assert len(Mind2Web(tmp_path, top_k=None).load("t")[0].observation.elements) == 199


def test_ranks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [task("t", [record("CLICK", "", [1], [2])])])
    for ranks, lacks in (("data", "candidate 1"), ({}, "t_t-0"), ({"t_t-0": {"1": 0}}, "2")):
        with pytest.raises(ConfigError, match=lacks):
            _ = Mind2Web(path, ranks=ranks).load("t")[0].observation  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Mind2Web(path, ranks=tmp_path / "none.jsonl")


# ---- files ----------------------------------------------------------------------------------


def test_only_what_is_asked_for_is_read(tmp_path: Path) -> None:
    good = task("good", [record("CLICK", "", [1], [2])])
    bad = {**task("bad", [record("CLICK", "", [1], [2])]), "confirmed_task": 7}
    write(tmp_path, [good, bad])
    (tmp_path / "test_task_1.json").write_text('[{"annot', encoding="utf-8")
    data = Mind2Web(tmp_path)
    assert len(data.load("good")) == 1
    where = r"test_task_0.json, record 1 \(bad\).*Expected `str`, got `int` - at `\$.confirmed_task"
    with pytest.raises(ConfigError, match=where):
        data.load("bad")
    with pytest.raises(ConfigError, match=r"test_task_1.json: not a JSON array.*complete"):
        _ = data.tasks


def test_files_of_a_split_are_found_wherever_they_lie(tmp_path: Path) -> None:
    for folder, split in (("data/train", "train"), ("test/test_task", "test_task")):
        (tmp_path / folder).mkdir(parents=True)
        for k in (0, 1):
            one = task(f"{split}-{k}", [record("CLICK", "", [1], [2])])
            write(tmp_path / folder, [one], f"{split}_{k}.json")
    assert Mind2Web(tmp_path, "train").tasks == ("train-0", "train-1")
    assert Mind2Web(tmp_path, "test_task").tasks == ("test_task-0", "test_task-1")
    with pytest.raises(ConfigError, match="no Mind2Web data of 'test_domain'"):
        Mind2Web(tmp_path, "test_domain")


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


def test_rows_as_an_array_with_objects_instead_of_strings(tmp_path: Path) -> None:
    whole = rows()
    for row in whole:
        row["operation"] = json.loads(row["operation"])
        row["pos_candidates"] = [json.loads(c) for c in row["pos_candidates"]]
        row["neg_candidates"] = json.dumps([json.loads(c) for c in row["neg_candidates"]])
        row["target_action_index"] = int(row["target_action_index"])
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    ours, theirs = Mind2Web(path, "test_website"), Mind2Web(synthetic(), "test_website")
    for name in theirs.tasks:
        seen = [s.observation for s in ours.load(name)]
        assert seen == [s.observation for s in theirs.load(name)]


def png(color: str, form: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 2), color).save(out, form)
    return out.getvalue()


def test_parquet_row_groups_and_pictures(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
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
            assert one.expert() == other.expert()
    assert Mind2Web(path, "test_website").load(ours.tasks[0])[0].observation.png is None


def test_pictures_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "a.png").write_bytes(png("blue", "PNG"))
    row = rows()[0]
    for named in ("shots/a.png", "shots/none.png"):
        path = tmp_path / "test_website.jsonl"
        path.write_text(json.dumps({**row, "screenshot": named}), encoding="utf-8")
        data = Mind2Web(path, "test_website", screenshots=True)
        if named == "shots/a.png":
            assert data.load(row["annotation_id"])[0].observation.png == png("blue", "PNG")
        else:
            with pytest.raises(ConfigError, match=r"record 0: 'screenshot'.*shots/none.png"):
                data.load(row["annotation_id"])
    with pytest.raises(ConfigError, match="raw format has no screenshots"):
        _ = Mind2Web(synthetic(), "test_website", screenshots=True).tasks


def test_parquet_without_pyarrow_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train-0.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[mind2web\]"):
        _ = Mind2Web(tmp_path, "train").tasks


def test_wrong_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "train.parquet"
    path.write_bytes(b"no such thing")
    with pytest.raises(ConfigError, match=r"train.parquet: not a parquet file"):
        _ = Mind2Web(path, "train").tasks
    parquet.write_table(arrow.table({"annotation_id": ["a"]}), path)
    with pytest.raises(ConfigError, match=r"columns confirmed_task, action_uid, .* are missing"):
        _ = Mind2Web(path, "train").tasks


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
    ("changes", "message"),
    [
        ({"cleaned_html": None}, r"record 0 \(t\).*required field `cleaned_html`.*actions\[0\]"),
        ({"annotation_id": None}, r"record 0.*required field `annotation_id`"),
        ({"operation": {"op": "HOVER"}}, r"record 0.*'operation.op' must be one of CLICK"),
        ({"action_reprs": []}, r"record 0.*'action_reprs' has 0 entries for 1 actions"),
        ({"action_reprs": ["step"]}, r"action_reprs\[0\]: expected '\[tag\] text -> OP: value'"),
        ({"cleaned_html": "<html><p></html>"}, r"action 0: 'cleaned_html' cannot be read"),
        (
            {"cleaned_html": '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'},
            "XML entities, which are refused",
        ),
        ({"neg_candidates": [{"tag": "a"}]}, r"`backend_node_id`.*neg_candidates\[0\]"),
        ({"pos_candidates": [{"tag": "a", "backend_node_id": "1", "attributes": "{"}]}, "record 0"),
    ],
)
def test_bad_records_name_file_record_and_what_is_missing(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, [wrong(**changes)])
    with pytest.raises(ConfigError, match=message) as caught:
        step = Mind2Web(path).load("t")[0]
        _ = step.observation, step.past
    assert "test_task_0.json" in str(caught.value)


def test_bad_rows_name_file_record_and_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "test_website.jsonl"
    first = rows()[0]
    name = first["annotation_id"]
    for change, message in (
        ({"operation": "{"}, "record 0: not a flattened Mind2Web row"),
        ({"target_action_index": "9"}, "record 0: 'target_action_index' is 9, but"),
        ({"target_action_index": "x"}, "record 0: not a flattened Mind2Web row: invalid literal"),
    ):
        path.write_text(json.dumps({**first, **change}), encoding="utf-8")
        with pytest.raises(ConfigError, match=message):
            Mind2Web(path, "test_website").load(name)
    path.write_text(json.dumps(first) + "\n\n" + json.dumps(first) + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"record 1: .* 0 occurs twice, also in .*record 0"):
        Mind2Web(path, "test_website").load(name)


def test_bad_arguments_and_missing_files(tmp_path: Path) -> None:
    path = write(tmp_path, [task("t", [record("CLICK", "", [1], [2])])])
    for arguments, message in (
        ({"split": "test"}, "has the splits train, test_task"),
        ({"top_k": 0}, "top_k"),
        ({"words": 0}, "words"),
    ):
        with pytest.raises(ConfigError, match=message):
            Mind2Web(path, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no task 'nobody' among 1"):
        Mind2Web(path).load("nobody")
    with pytest.raises(ConfigError, match="no Mind2Web data"):
        Mind2Web(tmp_path / "nowhere")
    (tmp_path / "test_task_1.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="several formats"):
        Mind2Web(tmp_path)
    empty = tmp_path / "empty.json"
    empty.write_bytes(b"")
    with pytest.raises(ConfigError, match="cannot be read"):
        _ = Mind2Web(empty).tasks
    write(tmp_path, [task("t", [record("CLICK", "", [1], [2])])] * 2, "twice.json")
    with pytest.raises(ConfigError, match="'t' occurs twice"):
        Mind2Web(tmp_path / "twice.json").load("t")
