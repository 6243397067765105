"""The learning benchmark's table: means, intervals and differences on made-up results."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmark_scripts import benchmark_script

from swarm_ui.storage.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def learning() -> ModuleType:
    return benchmark_script("learning")


def keep(folder: Path, cpu: float, **arms: list[float | None]) -> None:
    from swarm_ui.experiment.results import ArmResult, Cost, Results

    run = RunDirectory.create(folder, name=folder.name, config={})
    if cpu:
        line = {"rollout_seconds": cpu, "update_seconds": 2.0, "peak_memory_mb": 10 * cpu}
        run.log({"kind": "iteration", **line})
    results = Results(training_cpu_seconds=cpu)
    for name, outcomes in arms.items():
        jobs = tuple((f"task-{k}", k) for k in range(len(outcomes)))
        results.arms.append(
            ArmResult(
                split="parameters", environment="e", arm=name.replace("_", "-"), label=name,
                jobs=jobs, outcomes=tuple(outcomes), work=Cost(),
            )
        )  # fmt: skip
    results.save(folder)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    keep(tmp_path / "base", 0, base_greedy=[0, 0, 1, 0], base_vote=[0, 0, 1, 1])
    keep(tmp_path / "full-1", 60, trained_team=[1, 0, 1, 1], trained_vote=[1, 1, 1, 1])
    keep(tmp_path / "full-2", 80, trained_team=[1, 1, 1, None], trained_vote=[1, 1, 1, 1])
    keep(tmp_path / "independent_voters-1", 50, trained_vote=[1, 0, 1, 1], trained_greedy=[0] * 4)
    return tmp_path


def lines(learning: ModuleType, study: Path) -> dict[str, dict[str, Any]]:
    return {line["name"]: line for line in learning.figures(learning.rows(study))["rows"]}


def test_means_are_over_seeds_and_episodes_and_masked_ones_are_left_out(
    learning: ModuleType, study: Path
) -> None:
    found = lines(learning, study)
    assert found["base_x4"]["success"] == 0.5
    full = found["full"]
    assert full["success"] == (1 + 0.5 + 1 + 1) / 4
    assert (full["seeds"], full["episodes"], full["cpu_s"]) == (2, 4, 70)
    assert full["by_seed"] == [2 / 3, 1.0]  # of the episodes that neither seed lost
    assert found["full_vote"]["success"] == 1.0
    assert full["low"] <= full["success"] <= full["high"]
    assert full["split"] == "new_parameters"
    assert (full["iteration_s"], full["peak_mb"]) == (72, 800)
    assert found["base_x4"]["iteration_s"] is found["base_x4"]["peak_mb"] is None


def test_differences_are_paired(learning: ModuleType, study: Path) -> None:
    full = lines(learning, study)["full"]
    assert full["over_base_x4"] == full["success"] - 0.5
    assert full["beats_base_x4_low"] <= full["over_base_x4"] <= full["over_high"]
    # Every episode gains by 1 or by nothing but one, so no resample can lose.
    assert full["beats_base_x4_low"] >= 0


def test_full_is_compared_with_every_other_row(learning: ModuleType, study: Path) -> None:
    found = learning.figures(learning.rows(study))["comparisons"]
    by_name = {line["other"]: line for line in found}
    assert set(by_name) == {
        "base_x1", "base_x4", "full_vote", "independent_voters", "independent_voters_greedy"
    }  # fmt: skip
    assert by_name["base_x4"]["gap"] == 0.875 - 0.5
    assert by_name["base_x4"]["each_seed"] == pytest.approx([2 / 3 - 0.5, 1.0 - 0.5])
    assert by_name["independent_voters"]["gap"] == 0.875 - 0.75


def test_voters_without_edges_have_no_team(learning: ModuleType, study: Path) -> None:
    found = lines(learning, study)
    assert found["independent_voters"]["success"] == 0.75
    assert "independent_voters_vote" not in found
    assert found["independent_voters_greedy"]["success"] == 0.0


def test_runs_on_other_episodes_are_refused(learning: ModuleType, study: Path) -> None:
    keep(study / "full-3", 60, trained_team=[1, 0, 1])
    with pytest.raises(SystemExit, match=r"full, parameters: .*same episodes"):
        learning.rows(study)


def test_the_interval_of_a_mean(learning: ModuleType) -> None:
    low, high = learning.bootstrap([0.0] * 50 + [1.0] * 50)
    assert (low, high) == (pytest.approx(0.4, abs=0.03), pytest.approx(0.6, abs=0.03))
    assert learning.bootstrap([1.0] * 10) == (1.0, 1.0)


def test_the_page_of_results_shows_the_recorded_run(learning: ModuleType) -> None:
    data = learning.recorded()
    page = (ROOT / "docs" / "results_tables.md").read_text(encoding="utf-8")
    assert learning.markdown(data) in page
    phone = {line["name"] for line in data["rows"] if line["split"] == "new_apps"}
    assert phone >= {
        "untrained", "base_x1", "base_x4", "full", "rft", "without_cr", "without_edge_update",
        "independent_voters", "learned_edges", "more_stage1", "critic_imitation",
    }  # fmt: skip
    web = {line["name"] for line in data["rows"] if line["split"] == "web"}
    assert web >= {"web_before", "web_after"}
    full = [line for line in data["rows"] if line["name"] == "full"]
    assert all("beats_base_x4_low" in line and line["seeds"] == 3 for line in full)
