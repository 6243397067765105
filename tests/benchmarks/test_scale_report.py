"""The tables of the scaling benchmark, and the page of the documentation that shows them."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmark_scripts import benchmark_script
from rich.console import Console

from benchmarks.scaling.play import Tally, digest
from benchmarks.scaling.report import markdown, show, tables
from benchmarks.support.records import read_record, record_path
from swarm_ui.trace.records import Episode

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    return benchmark_script("scale")


def figures() -> dict[str, Any]:
    delay = {
        "overhead": 0.05, "local_s": 1.0, "ray_s": 1.05, "local_cpu_ms_per_decision": 1.0,
        "ray_cpu_ms_per_decision": 2.0, "episodes": 24, "rounds": 5,
    }  # fmt: skip
    world = dict.fromkeys(("1ms", "20ms", "200ms"), delay)
    part = {"peak_mb": 100.0, "cpu_ms_per_episode": 1.0, "episodes_per_s": 90.0}
    system = {"short": part, "long": part, "memory_ratio": 1.0}
    told = {"efficiency": 0.5, "episodes_per_s": 100.0, "bottleneck": "limiter",
            "busy": {"limiter": 0.9}}  # fmt: skip
    run = told | {"workers": 8, "processes": 8, "each": 1, "start_s": 3.0, "error": 0.02,
                  "simulated_episodes_per_s": 102.0}  # fmt: skip
    return {
        "commit": "0123456789abcdef", "machine": "made up", "overhead_200ms": 0.3,
        "overhead": {"phone": world, "miniwob": world},
        "bookkeeping": {"queued": [1000, 10000], "in_flight": 64, "local": system, "ray": system},
        "weak_scaling": {"8": 0.5}, "weak_scaling_measured": [run],
        "weak_scaling_simulated": {"1000": told},
        "binds_at": {"scaled": {"limiter": 500.0}, "recorded": {"limiter": 9000.0}},
        "lifted": {"as it is": 0.5},
        "written_per_s": {"1": 400.0, "64": 9000.0},
    }  # fmt: skip


def test_every_table_is_whole_and_a_missed_target_is_told() -> None:
    data = figures()
    for rows in tables(data):
        assert rows.cells and all(len(row) == len(rows.columns) for row in rows.cells)
    told = io.StringIO()
    show(data, Console(file=told, width=150))
    assert "missed: overhead_200ms 0.300, target 0.1" in told.getvalue()


def test_the_page_gets_the_tables_between_its_marks(scale: ModuleType) -> None:
    page = scale.PAGE.read_text(encoding="utf-8")
    made = scale.with_tables(page, figures())
    assert markdown(figures()) in made and "Not recorded yet" not in made
    assert scale.with_tables(made, figures()) == made
    assert made.split("## Killed processes")[1] == page.split("## Killed processes")[1]


def test_the_page_shows_the_recorded_run(scale: ModuleType) -> None:
    page = scale.PAGE.read_text(encoding="utf-8")
    if record_path("scale").exists():
        data = read_record("scale", dict[str, Any])
        assert scale.with_tables(page, data) == page
    else:
        assert "\nNot recorded yet.\n" in page


def test_sections_that_were_measured_are_not_measured_again(
    scale: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run(section: str, quick: bool) -> dict[str, Any]:
        asked.append(section)
        return {"figure": 1}

    monkeypatch.setattr(scale, "_run", run)
    for _ in range(2):
        assert scale.measured("weak", False, tmp_path) == {"figure": 1}
    assert asked == ["weak"]
    scale.measured("weak", True, tmp_path)
    assert asked == ["weak", "weak"], "rough figures are others"


def episode(seed: int, seconds: float = 0.0) -> Episode:
    return Episode(environment="e", task="t", seed=seed, policy="p", success=True, seconds=seconds)


def test_lost_doubled_and_other_episodes_are_counted() -> None:
    assert digest(episode(1, seconds=1.0)) == digest(episode(1, seconds=2.0)) != digest(episode(2))
    tally = Tally(2)
    tally.add([(0, episode(0)), (1, episode(1))])
    tally.add([(1, episode(1, seconds=9.0)), (0, episode(0))])
    assert (tally.lost, tally.twice, tally.equal) == (0, 0, True)
    tally.add([(0, episode(0)), (0, episode(0))])
    assert (tally.lost, tally.twice, tally.equal) == (1, 1, True)
    tally.add([(0, episode(7)), (1, episode(1))])
    assert not tally.equal
