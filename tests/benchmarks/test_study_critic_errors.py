"""The study of critics that err: its settings, its figures and its record."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.critic_errors.__main__ import NAME, main
from benchmarks.studies.critic_errors.cells import CriticCell
from benchmarks.studies.critic_errors.plan import ARMS, CONTRASTS, LABELS, UNTRAINED, WITHOUT, Plan
from benchmarks.studies.critic_errors.report import Study, contrasts_table, main_table, study_of
from benchmarks.support.records import read_record
from swarm_ui.experiment.training.stage2 import team_config
from swarm_ui.stats import Outcome

TEMPLATES = 5
PAGE = Path(__file__).parents[2] / "docs" / "credit.md"


def solved(right: int, seed: int = 0) -> list[Outcome]:
    """Ten episodes, the first ``right`` of them solved."""
    return [Outcome(f"task-{k % TEMPLATES}", k, float(k < right), seed) for k in range(10)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cells").mkdir()
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    (tmp_path / "base.json").write_bytes(msgspec.json.encode(solved(4)))
    for name, right in ((WITHOUT, 5), ("30-learned", 6), ("30-full", 3), ("anti-learned", 5)):
        for seed in (1, 2, 3):
            plain = name in (WITHOUT, "anti-learned")
            made = CriticCell(
                arm=name, seed=seed, commit="c" * 40, rollouts=(0.5, 0.5),
                weights=((), ()) if name == WITHOUT else ((0.1,), (0.25,)),
                outcomes=solved(right, seed), digest=f"{'without' if plain else name}-{seed}",
                training_seconds=1.0, seconds=2.0,
            )  # fmt: skip
            path = tmp_path / "cells" / f"{name}-{seed}.json"
            path.write_bytes(msgspec.json.encode(made))
    return tmp_path


def test_critics_that_err_are_trained_without_examples_of_stage_1() -> None:
    settings = Plan(iterations=1).settings()
    assert settings.rehearsal == 0.0 and team_config(settings, 1).shared_iterations == 1


def test_figures_of_cells(folder: Path) -> None:
    study = study_of(folder)
    assert [row.arm for row in study.rows] == [
        UNTRAINED, WITHOUT, "30-full", "30-learned", "anti-learned",
    ]  # fmt: skip
    rows = {row.arm: row for row in study.rows}
    assert rows["30-learned"].by_seed == [0.6] * 3 and rows["30-learned"].seeds == 3
    assert rows["30-learned"].weights == [[0.25]] * 3 and rows[WITHOUT].weights == []
    assert rows[UNTRAINED].seeds == 0 and rows[UNTRAINED].success == 0.4
    gaps = {(c.ours, c.theirs): c for c in study.contrasts}
    against = gaps[LABELS["30-learned"], LABELS["30-full"]]
    assert against.named and against.difference == 0.3 and against.t_low == 0.3
    assert not gaps[LABELS[UNTRAINED], LABELS[WITHOUT]].named
    assert sum(c.named for c in study.contrasts) == len(CONTRASTS) - 1  # one arm is not there
    assert study.equal == ["anti-learned"]
    assert f"**{'+30.0'}" in contrasts_table(study)
    assert "| 60.0 [" in main_table(study) and "0.25, 0.25, 0.25 | 3 |" in main_table(study)


@pytest.mark.slow
def test_the_quick_run_makes_all_arms(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["critic_errors", "--quick"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["arm"] for row in found["rows"]] == [UNTRAINED, *ARMS]


def test_an_arm_that_does_not_exist_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["critic_errors", "--quick", "--arms", "20-learned"])
    assert main() == 2
    assert "got '20-learned'" in capsys.readouterr().err


def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and {len(name) for name in study.commits} == {40}
    assert [row.arm for row in study.rows] == [UNTRAINED, *ARMS]
    assert all(row.seeds == len(row.by_seed) >= 1 for row in study.rows[1:])
    assert sum(one.named for one in study.contrasts) == len(CONTRASTS) <= 3
    monkeypatch.setattr("sys.argv", ["critic_errors", "--recorded"])
    assert main() == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    for table in (main_table(study), contrasts_table(study)):
        assert table in printed and table in page
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "t_low", "seeds", "episodes"} <= set(row)
