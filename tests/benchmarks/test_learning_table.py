"""The learning benchmark's figures: means, clustered intervals and contrasts on made-up results."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from benchmark_scripts import benchmark_script

from benchmarks.studies.learning import cells, figures
from benchmarks.studies.learning.cells import CELL_FILE, CellOrigin, Row
from benchmarks.studies.learning.kept import SETTINGS_FILE, kept_files
from benchmarks.studies.learning.report import tables
from benchmarks.studies.learning.variants import BY_NAME
from benchmarks.studies.restore import packed_files, recorded_files, restore
from benchmarks.support import records
from benchmarks.support.origin import Origin
from benchmarks.support.records import record_path, write_record
from swarm_ui.errors import ConfigError
from swarm_ui.report.results import ArmResult, Cost, Results
from swarm_ui.storage.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def learning() -> ModuleType:
    return benchmark_script("learning")


def keep(folder: Path, cpu: float, **arms: list[float | None]) -> None:
    run = RunDirectory.create(folder, name=folder.name, config={})
    if cpu:
        updates = [{"steps": 75, "pairs": 900}, {"steps": 35, "pairs": 300}]
        line = {"rollout_seconds": cpu, "update_seconds": 2.0, "peak_memory_mb": 10 * cpu}
        work = {"calls": 40, "prompt_tokens": 500, "completion_tokens": 100}
        for _ in range(2):  # a run that was continued repeats a line
            run.log({"kind": "rollouts", "iteration": 0, **work})
        run.log({"kind": "iteration", "iteration": 0, "updates": updates, **line})
    results = Results(training_cpu_seconds=cpu)
    for name, outcomes in arms.items():
        jobs = tuple((f"task-{k // 2}", k) for k in range(len(outcomes)))
        results.arms.append(
            ArmResult(
                split="parameters", environment="e", arm=name.replace("_", "-"), label=name,
                jobs=jobs, outcomes=tuple(outcomes), work=Cost(), checker=2,
            )
        )  # fmt: skip
    results.save(folder)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    keep(tmp_path / "base", 0, base_greedy=[0, 0, 1, 0], base_vote=[0, 0, 1, 1])
    keep(tmp_path / "full-1", 60, trained_team=[1, 0, 1, 1], trained_vote=[1, 1, 1, 1])
    keep(
        tmp_path / "full-2", 80, trained_team=[1, 1, 1, None], trained_vote=[1, 1, 1, 1],
        trained_team_2=[0, 1, 1, None], trained_team_3=[0, 1, 0, 1],
    )  # fmt: skip
    keep(tmp_path / "independent_voters-1", 50, trained_vote=[1, 0, 1, 1], trained_greedy=[0] * 4)
    for seed in (1, 2, 3):
        keep(tmp_path / f"rft_unguided-{seed}", 9, trained_vote=[1, 1, 1, seed % 2])
        keep(tmp_path / f"rft_outcome-{seed}", 9, trained_vote=[0, 1, 1, 0])
    RunDirectory.create(tmp_path / "rft-1", name="rft-1", config={})  # begun, not finished
    return tmp_path


@pytest.fixture
def found(study: Path) -> dict[str, Row]:
    return {row.name: row for row in cells.rows(study)}


@pytest.fixture
def data(study: Path) -> dict[str, Any]:
    return figures.figures(cells.rows(study))


def lines(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in data["rows"]}


def test_an_outcome_on_several_graphs_is_their_mean(found: dict[str, Row]) -> None:
    full = found["full"]
    assert full.runs[1] == (1, 0, 1, 1)
    assert full.runs[2] == pytest.approx((1 / 3, 1, 2 / 3, 1))  # masked on two graphs of three
    assert full.graphs == 3
    assert "rft" not in found  # none of its runs is finished


def test_means_are_over_seeds_and_episodes(data: dict[str, Any]) -> None:
    by_name = lines(data)
    assert by_name["base_x4"]["success"] == 0.5
    full = by_name["full"]
    assert full["by_seed"] == pytest.approx([0.75, 0.75])
    assert full["success"] == pytest.approx(0.75)
    assert (full["seeds"], full["episodes"], full["graphs"]) == (2, 4, 3)
    assert full["cluster_low"] <= full["success"] <= full["cluster_high"]
    assert full["low"] <= full["success"] <= full["high"]
    assert full["split"] == "new_parameters"
    assert by_name["full_vote"]["success"] == 1.0


def test_the_work_of_training_is_counted_once(data: dict[str, Any]) -> None:
    full = lines(data)["full"]
    assert (full["cpu_s"], full["steps"], full["samples"], full["calls"]) == (70, 110, 3520, 40)
    assert full["work"] == {"cpu_s": 70, "tokens": 600}
    assert (full["iteration_s"], full["peak_mb"]) == (72, 800)
    base = lines(data)["base_x4"]
    assert base["steps"] is base["calls"] is base["iteration_s"] is None


def test_three_seeds_give_an_interval_over_seeds(data: dict[str, Any]) -> None:
    by_name = lines(data)
    assert by_name["full"]["t_low"] is None  # two seeds
    assert by_name["base_x4"]["t_low"] is None  # not trained
    row = by_name["rft_unguided"]
    assert row["by_seed"] == [1.0, 0.75, 1.0]
    assert row["t_low"] == pytest.approx(0.9167 - 4.303 * 0.0833, abs=1e-3)


def test_intervals_are_clustered_by_template() -> None:
    """Episodes of a template agree here, so twice the episodes say nothing more."""
    jobs = tuple((f"task-{k // 10}", k) for k in range(80))
    runs = {1: tuple(float((k // 10) % 2) for k in range(80))}
    row = Row("full", "parameters", jobs, runs, 1, cells.Work(), True, 2)
    line = figures.figures([row])["rows"][0]
    width, plain = line["cluster_high"] - line["cluster_low"], line["high"] - line["low"]
    assert width > 2.5 * plain


def test_differences_are_paired_over_the_seeds_of_both(data: dict[str, Any]) -> None:
    full = lines(data)["full"]
    assert full["over_base_x4"] == pytest.approx(full["success"] - 0.5)
    assert full["over_own_vote"] == pytest.approx(-0.25)
    assert full["beats_base_x4_low"] <= full["over_base_x4"] <= full["over_high"]
    by_name = {line["other"]: line for line in data["comparisons"]}
    assert set(by_name) == {
        "base_x1", "base_x4", "full_vote", "independent_voters", "independent_voters_greedy",
        "rft_unguided", "rft_outcome",
    }  # fmt: skip
    voters = by_name["independent_voters"]
    assert voters["seeds"] == 1 and voters["gap"] == 0.0  # seed 1 alone
    assert by_name["base_x4"]["each_seed"] == pytest.approx([0.25, 0.25])


def test_contrasts_are_named_in_advance_and_say_what_is_missing(data: dict[str, Any]) -> None:
    assert len(figures.CONTRASTS) == 3
    here = [line for line in data["contrasts"] if line["split"] == "new_parameters"]
    by_name = {line["name"]: line for line in here}
    credit = by_name["critic against outcome"]
    assert credit["gap"] == pytest.approx((4 + 3 + 4) / 12 - 0.5)
    assert credit["seeds"] == 3 and credit["t_low"] < credit["gap"] < credit["t_high"]
    ours, theirs = credit["sides"]
    assert ours["steps"] == theirs["steps"] and ours["calls"] == theirs["calls"]
    assert by_name["team against one agent"]["seeds"] == 0
    assert "gap" not in by_name["team against one agent"]


def test_variants_without_guidance_say_so_in_their_settings() -> None:
    from swarm_ui.optim.config import TeamConfig

    assert all(v.critic or not v.guided for v in BY_NAME.values())
    for variant in BY_NAME.values():
        config = variant.config(TeamConfig())
        if not variant.guided:
            assert (config.guide, config.grade_negatives) == (0.0, False)
            assert "no guidance" in variant.label and "not graded" in variant.label
        else:
            assert config == TeamConfig()


def test_runs_on_other_episodes_are_refused(study: Path) -> None:
    keep(study / "full-3", 60, trained_team=[1, 0, 1])
    with pytest.raises(SystemExit, match=r"full, parameters: .*same episodes"):
        cells.rows(study)


def test_the_origin_of_each_cell_is_kept(study: Path) -> None:
    made = Origin(commit="abc", dirty=False, command="python x", machine="m")
    begun = CellOrigin(origin=made, trainer={"guide": 0.0})
    (study / "full-1" / CELL_FILE).write_bytes(msgspec.json.encode(begun))
    by_name = {line["cell"]: line for line in cells.cell_origins(study)}
    assert by_name["full-1"]["commit"] == "abc" and by_name["full-1"]["trainer"] == {"guide": 0.0}
    assert "commit" not in by_name["full-2"]  # of a version that did not record it
    assert "rft-1" not in by_name


def test_a_folder_is_restored_from_its_record(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RESULTS", tmp_path / "results")
    begun = CellOrigin(origin=Origin(commit="abc", dirty=False, command="python x", machine="m"))
    (study / "full-1" / CELL_FILE).write_bytes(msgspec.json.encode(begun))
    settings = {"iterations": 5, "processes": None}
    write_record("learning", {"rows": []}, packed_files(kept_files(study, settings)))
    other = tmp_path / "other"
    restore("learning", other, {SETTINGS_FILE: settings})
    assert cells.rows(other) == cells.rows(study)
    assert cells.cell_origins(other) == cells.cell_origins(study)
    assert not (other / "rft-1").exists()  # it was not finished
    again = kept_files(other, settings)
    assert again == kept_files(study, settings) == recorded_files("learning")
    with pytest.raises(ConfigError, match=r"other settings \(iterations=5, now 6\)"):
        restore("learning", other, {SETTINGS_FILE: {**settings, "iterations": 6}})


def whole(data: dict[str, Any]) -> str:
    """All tables as Markdown."""
    return "\n".join(table.markdown() for table in tables(data))


def test_tables_show_clustered_intervals(learning: ModuleType, data: dict[str, Any]) -> None:
    text = whole(data)
    row = lines(data)["full"]
    shown = f"{100 * row['success']:.1f} [{100 * row['cluster_low']:.1f}, "
    assert shown in text and "not measured" in text and "exploratory" in text
    short = learning.short_table(data)
    assert shown in short and "| 2 |" in short


def test_a_variant_that_was_tested_without_graphs_is_shown(
    learning: ModuleType, study: Path
) -> None:
    keep(study / "rft-2", 60, trained_vote=[1, 1, 1, 0], trained_greedy=[1, 0, 1, 0])
    data = figures.figures(cells.rows(study))
    row = "| RFT (the default), critic, trained with redrawn edges | – | 75.0 ["
    assert row in whole(data)
    assert "RFT (the default), critic, trained with redrawn edges (1)" in learning.coverage(data)


def test_the_record_has_its_origin_and_no_path(learning: ModuleType) -> None:
    data = learning.read("learning")
    assert data["checker"] == 2 and not data["origin"]["dirty"]
    assert re.fullmatch("[0-9a-f]{40}", data["origin"]["commit"])
    assert data["settings"]["iterations"] == 5 and data["episodes_hash"]
    assert all(line.get("commit") and not line["dirty"] for line in data["cells"])
    text = record_path("learning").read_text(encoding="utf-8")
    assert '"/' not in text and " /" not in text
    for row in data["rows"]:
        for key in ("t_low", "t_high", "cluster_low", "cluster_high", "steps", "calls", "work"):
            assert key in row


def test_the_recorded_rows_have_those_of_web_pages(learning: ModuleType) -> None:
    names = {line["name"] for line in learning.recorded()["rows"] if line["split"] == "web"}
    assert names >= {"web_before", "web_after"}


def test_the_pages_show_the_records(learning: ModuleType) -> None:
    for page, part, text in learning.page_parts():
        written = (ROOT / page).read_text(encoding="utf-8")
        begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
        assert f"{begin}\n\n{text}\n{end}" in written, (
            f"{page} differs from the records; run benchmarks/learning.py --recorded --pages"
        )


def test_answers_have_a_number_and_its_interval_each(learning: ModuleType) -> None:
    parts = {(page, part): text for page, part, text in learning.page_parts()}
    lines = parts["docs/results.md", "answers"].splitlines()
    assert len(lines) == 6
    for number, line in enumerate(lines, 1):
        figures = re.findall(r"points \[[+-][\d.]+, [+-][\d.]+\]", line)
        assert len(figures) == {2: 3, 3: 2, 4: 2}.get(number, 1), "some answers have two settings"
