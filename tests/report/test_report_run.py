"""A report made of a run's folder alone: all that is there, and a word on what is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from report_samples import episode, png, report

from swarm_ui.errors import ConfigError
from swarm_ui.report import gathered, write_report
from swarm_ui.report.compressed_episodes import joined
from swarm_ui.report.contents import Estimate, ReportTable
from swarm_ui.report.results import success_interval
from swarm_ui.report.run_reader import learning_curves
from swarm_ui.report.totals import family, set_name
from swarm_ui.storage.run_directory import RunDirectory


def iteration(k: int, **more: object) -> dict[str, object]:
    return {"kind": "iteration", "iteration": k, "success": 0.5 + 0.25 * k, "episodes": 5,
            "masked": 1, "credit": 0.6, "rollout_seconds": 4.0, "update_seconds": 2.0,
            "cpu_seconds": 5.0, "graphs": [], "loss/a": 0.5, **more}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", name="phone", config={"rounds": 3})


def cells(table: ReportTable) -> dict[object, tuple[object, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_curves_have_intervals_of_unmasked_episodes(run: RunDirectory) -> None:
    for k in range(2):
        run.log(iteration(k))
    curve = next(
        c for c in gathered(run.path).curves if c.title == "Success of rollouts by iteration"
    )
    first = curve.series[0].points[0]
    # Wilson interval of 2 of 4, from the closed form.
    assert (first.x, first.y) == (1.0, 0.5)
    assert (first.low, first.high) == pytest.approx((0.1500, 0.8500), abs=5e-5)


def test_an_iteration_that_was_done_again_counts_once(run: RunDirectory) -> None:
    for k in (0, 1, 1):
        run.log(iteration(k))
    table = next(t for t in gathered(run.path).tables if t.title == "Cost of training")
    assert [row[0] for row in table.rows] == ["1", "2"]


def test_learned_edges_come_before_played_ones(run: RunDirectory) -> None:
    run.log(iteration(0, **{"edge/a>b": 0.25, "edge/b>c": 1.0}))
    run.log(iteration(1, **{"edge/a>b": 0.75, "edge/b>c": 0.5}))
    (history,) = gathered(run.path).edge_histories
    assert history.nodes == ("a", "b", "c")
    assert [f.edges[0] for f in history.frames] == [("a", "b", 0.25), ("a", "b", 0.75)]


def test_played_graphs_are_shown_as_shares(run: RunDirectory) -> None:
    graphs = [[["a", "b"]], [["a", "b"], ["a", "c"]]]
    run.log(iteration(0, graphs=graphs))
    (history,) = gathered(run.path).edge_histories
    assert {edge[:2]: edge[2] for edge in history.frames[0].edges} == {
        ("a", "b"): 1.0,
        ("a", "c"): 0.5,
    }
    assert "not learned" in history.note


def test_kept_episodes_tell_success_by_task_and_cost(run: RunDirectory) -> None:
    run.write_episodes(
        "test", [episode("x"), episode("x", success=False), episode("x", success=None)]
    )
    data = gathered(run.path)
    tables = {table.title: cells(table) for table in data.tables}
    found = tables["Success of kept episodes"]["test"][0]
    assert isinstance(found, Estimate)
    assert (found.value, found.count) == (0.5, 2), "the masked episode is not counted"
    assert tables["Cost of kept episodes"]["test"][:2] == (3, 9)
    (by_task,) = [m for m in data.heat_maps if m.percent]
    assert by_task.values == ((0.5,),)
    assert by_task.details == (("1/2",),)
    assert by_task.title == "kept episodes"
    assert data.headline is None, "a selection of episodes is no figure to begin with"
    told = [table.note for table in data.tables] + [m.note for m in data.heat_maps]
    assert sum("selection" in note for note in told) == 1, "a footnote is told once"


def test_results_of_all_tests_come_before_what_was_kept_of_them(run: RunDirectory) -> None:
    run.write_episodes("known-base", [episode("x", success=False)])
    arm = {"split": "known", "arm": "base", "jobs": [["add-x", 1], ["add-y", 2], ["add-y", 3]],
           "outcomes": [1.0, 0.0, None], "work": {"calls": 7, "decisions": 5}}  # fmt: skip
    plan = {"name": "plan", "jobs": [["add-x", 1]], "outcomes": [1.0], "steps": 4, "tokens": 90}
    (run.path / "results.json").write_text(json.dumps({"arms": [plan, arm]}))
    data = gathered(run.path)
    assert data.summary == "2 of 3 tested episodes were solved. 1 more were masked by faults."
    rest, known = (m for m in data.heat_maps if m.percent)
    assert (known.title, known.columns) == ("known", ("base",))
    assert dict(zip(known.rows, known.details, strict=True)) == {
        "add-x": ("1/1",),
        "add-y": ("0/1",),
    }
    assert (rest.columns, rest.details) == (("plan",), (("1/1",),))
    cost = next(cells(t) for t in data.tables if t.title == "Cost of tested episodes")
    assert cost["known: base"][:3] == (3, 5, 7)
    assert cost["plan"][:3] == (1, 4, None), "what was not recorded is not 0"


def test_seeds_of_a_split_are_one_column_and_unknown_columns_are_left_out(
    run: RunDirectory,
) -> None:
    plans = [
        {"name": f"apps-seed{k}", "split": "apps", "jobs": [["add", k]], "outcomes": [float(k)]}
        for k in range(2)
    ]
    (run.path / "results.json").write_text(json.dumps({"arms": plans}))
    data = gathered(run.path)
    (by_task,) = [m for m in data.heat_maps if m.percent]
    assert (by_task.columns, by_task.details) == (("apps",), (("1/2",),))
    success = next(cells(t) for t in data.tables if t.title.startswith("Success"))
    assert list(success) == ["apps-seed0", "apps-seed1"]
    cost = next(t for t in data.tables if t.title.startswith("Cost"))
    assert cost.columns == ("", "episodes", "tokens")


def policy(split: str, label: str, outcomes: list[float]) -> dict[str, object]:
    jobs = [["add" if k % 2 else "edit", k] for k in range(len(outcomes))]
    return {"split": split, "arm": label, "label": label, "jobs": jobs, "outcomes": outcomes}


def test_success_by_task_has_a_map_for_each_split_with_the_labels_of_the_tables(
    run: RunDirectory,
) -> None:
    arms = [policy(split, label, [1.0, 0.0]) for split in ("a", "b") for label in ("base", "team")]
    document = {"arms": arms, "splits": {"a": "known apps", "b": "new apps"}}
    (run.path / "results.json").write_text(json.dumps(document))
    maps = [m for m in gathered(run.path).heat_maps if m.percent]
    assert [m.title for m in maps] == ["known apps", "new apps"]
    assert [m.columns for m in maps] == [("base", "team")] * 2
    text = write_report(run.path).read_text(encoding="utf-8")
    opened = re.findall(r'<details name="split"( open="")?><summary>(\w+ apps)', text)
    assert opened == [(' open=""', "known apps"), ("", "new apps")], "one split at a time"


def test_headline_and_arms_are_those_of_the_first_split(run: RunDirectory) -> None:
    arms = [policy("a", "base", [1.0, 0.0, 0.0, 0.0]), policy("a", "team", [1.0, 1.0, 1.0, 0.0]),
            policy("b", "team", [0.0, 0.0])]  # fmt: skip
    document = {"arms": arms, "splits": {"a": "known apps"}}
    (run.path / "results.json").write_text(json.dumps(document))
    data = gathered(run.path)
    assert data.headline is not None and data.arms is not None
    assert (data.headline.label, data.headline.where) == ("Success: team", "known apps")
    assert data.headline.value.value == 0.75
    printed = success_interval([("edit", 0), ("add", 1), ("edit", 2), ("add", 3)], [1, 1, 1, 0])
    assert printed is not None
    ends = data.headline.value.low, data.headline.value.high
    assert ends == (printed.low, printed.high), "the interval that eval prints"
    assert [(arm.name, arm.value.value, arm.chosen) for arm in data.arms.arms] == [
        ("base", 0.25, False), ("team", 0.75, True)
    ]  # fmt: skip


def test_a_training_without_a_test_begins_with_its_last_rollouts(run: RunDirectory) -> None:
    for k in range(2):
        run.log(iteration(k))
    headline = gathered(run.path).headline
    assert headline is not None
    assert (headline.value.value, headline.value.count) == (0.75, 4)
    assert "not a test" in headline.where


def test_credit_is_shown_in_the_order_of_iterations_on_one_scale(run: RunDirectory) -> None:
    for k, values in ((10, [[0.62, 0.9]]), (2, [[0.6, 0.7]]), (1, [[0.5, None]])):
        run.log({"kind": "credit", "iteration": k, "agents": ["a", "b"], "values": values})
    maps = gathered(run.path).heat_maps
    assert [m.title for m in maps] == [f"Mean credit in iteration {k}" for k in (2, 3, 11)]
    assert {(m.low, m.high) for m in maps} == {(0.5, 0.9)}
    text = write_report(run.path).read_text(encoding="utf-8")
    assert text.count('class="gradient"') == 1
    shares = re.findall(r"--share:(\d+)%", text)
    assert shares == ["0", "25", "50", "30", "100"]


def test_settings_are_told_in_words(tmp_path: Path) -> None:
    config = {"command": "eval", "seeds": [0, 1], "on": True, "off": False, "none": None,
              "team": {"agents": 2, "edges": "", "update": {"steps": 3}, "more": {}}}  # fmt: skip
    made = RunDirectory.create(tmp_path / "run", name="phone", config=config)
    facts = dict(gathered(made.path).facts)
    assert facts["settings"] == "command eval, seeds 0 1, on yes"
    assert (facts["team"], facts["update"]) == ("agents 2", "steps 3")
    assert "more" not in facts


def test_settings_that_are_zero_are_told(tmp_path: Path) -> None:
    config = {"seed": 0, "off": False, "team": {"temperature": 0.0, "seed": 0}}
    facts = dict(gathered(RunDirectory.create(tmp_path / "run", config=config).path).facts)
    assert facts["settings"] == "seed 0" and facts["team"] == "temperature 0.0, seed 0"


def test_an_empty_run_says_what_it_lacks(run: RunDirectory) -> None:
    data = gathered(run.path)
    said = " ".join(data.missing)
    for word in ("Episodes", "Credit", "Learning curves", "Edges"):
        assert word in said
    text = write_report(run.path).read_text(encoding="utf-8")
    assert "Not in this run" in text
    assert "no measurements of iterations" in text


def test_damage_is_told_and_the_rest_is_shown(run: RunDirectory) -> None:
    path = run.write_episodes("test", [episode("x"), episode("y")])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"version": 1, "episode"')
    (run.path / "metrics.jsonl").write_bytes(b"nonsense\n")
    (run.path / "results.json").write_text("[1]")
    (run.path / "config.json").write_text("{")
    data = gathered(run.path)
    assert [len(part.episodes) for part in data.sets] == [2]
    said = " ".join(data.missing)
    for word in ("test.jsonl after the first 2", "Measurements", "results.json", "config.json"):
        assert word in said
    assert 'id="viewer"' in write_report(run.path).read_text(encoding="utf-8")


CREDIT = {"kind": "credit", "iteration": 0, "agents": ["a", "b"]}


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "iteration", "iteration": 1, "success": 2.0, "episodes": 3},
        {"kind": "iteration", "iteration": 1, "episodes": "many", "success": 0.5},
        {"iteration": 1, "graphs": 3},
        {"kind": "iteration", "iteration": 1, "graphs": [3]},
        {"kind": "iteration", "iteration": 1, "graphs": [[["a", "b", "c"]]]},
        CREDIT,
        {**CREDIT, "values": [[0.1]]},
        {"kind": "rollouts", "iteration": [1]},
    ],
)
def test_measurements_of_another_form_are_told_and_the_others_are_shown(
    run: RunDirectory, line: dict[str, object]
) -> None:
    run.log(iteration(0))
    run.log({"kind": "mine", "values": 3})
    run.log(line)
    data = gathered(run.path)
    (said,) = (told for told in data.missing if told.startswith("Measurements"))
    assert "left out 1 of 3 lines of metrics.jsonl that have another form (line 3: " in said
    assert data.curves == learning_curves(run.path) and len(data.curves[0].series[0].points) == 1
    assert "left out 1 of 3 lines" in write_report(run.path).read_text(encoding="utf-8")


def test_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such directory"):
        write_report(tmp_path / "none")


def test_what_is_given_stays_and_the_folder_fills_the_rest(run: RunDirectory) -> None:
    run.write_episodes("test", [episode("x"), episode("y")])
    run.log(iteration(0))
    text = write_report(run.path, report("Ada")).read_text(encoding="utf-8")
    assert "A team learns to operate a phone Ada" in text
    assert "Cost of training" in text
    assert "Success of kept episodes" not in text, "the given tables tell the success"
    assert "5 episodes" in text, "three given ones and two of the folder"


def test_a_given_episode_brings_its_screenshots(run: RunDirectory) -> None:
    bare, seen = episode("x"), episode("x", picture=png())
    run.write_episodes("test", [bare, episode("y")])
    (part,) = joined((seen,), gathered(run.path).sets)
    assert part.name == "test"
    assert [e == seen for e in part.episodes] == [True, False]
    other = episode("z")
    assert [p.name for p in joined((other,), gathered(run.path).sets)] == ["sample", "test"]


def test_a_given_episode_replaces_only_its_own(run: RunDirectory) -> None:
    """The same job may be played in several iterations, with other replies each time."""
    first = episode("x")
    steps = tuple(msgspec.structs.replace(step, reward=0.0) for step in first.steps)
    later = msgspec.structs.replace(first, steps=steps)
    run.write_episodes("train-000", [first])
    run.write_episodes("train-001", [later])
    before, after = joined((episode("x", picture=png()),), gathered(run.path).sets)
    assert next(iter(before.episodes)) == episode("x", picture=png())
    assert next(iter(after.episodes)) == later


@pytest.mark.parametrize(
    ("task", "word"),
    [("click-button", "click"), ("ContactsAddContact", "Contacts"), ("SMSReply", "SMS"),
     ("phone_to_message", "phone"), ("任务", "任务"), ("", "")],
)  # fmt: skip
def test_family_is_the_first_word(task: str, word: str) -> None:
    assert family(task) == word


def test_iterations_of_training_are_one_set() -> None:
    assert set_name("train-004") == set_name("train-112") == "train"
    assert set_name("parameters-base-vote") == "parameters-base-vote"
