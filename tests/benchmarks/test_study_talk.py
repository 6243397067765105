"""What the talk study says of made-up decisions, its record, and how scripts of studies end."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.talk.__main__ import NAME, main
from benchmarks.studies.talk.cells import Cell, Decision, Seen
from benchmarks.studies.talk.plan import CONTRASTS, MEASURES, Plan
from benchmarks.studies.talk.report import Study, study_of, table
from benchmarks.support.records import read_record, record_path
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.script_runner import script
from swarm_ui.experiment.settings import Settings

ALIKE = Seen(right=[1, 1], alike=True, vote=1)
SPLIT = Seen(right=[1, 0], alike=False, vote=1)
WRONG = Seen(right=[0, 0], alike=True, vote=0)
PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def folder_of(path: Path, pairs: list[tuple[Seen, Seen]]) -> Path:
    """Three teams with these decisions."""
    (path / "cells").mkdir()
    (path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    for seed in (1, 2, 3):
        decisions = [
            Decision(task=f"task-{k}", seed=k, silent=silent, talking=talking)
            for k, (silent, talking) in enumerate(pairs)
        ]
        cell = Cell(
            seed=seed, commit="c" * 40, edges=[("agent_0", "agent_1")], graph="unseen DAG",
            digest="d", decisions=decisions, training_seconds=1.0, seconds=2.0,
        )  # fmt: skip
        (path / "cells" / f"{seed}.json").write_bytes(msgspec.json.encode(cell))
    return path


def test_teams_are_trained_with_the_settings_of_the_demo() -> None:
    ours, theirs = Plan().settings(3), Settings(seed=3, processes=1)
    assert ours == theirs


def test_shares_are_of_decisions_and_a_split_is_the_silent_team_s(tmp_path: Path) -> None:
    study = study_of(folder_of(tmp_path, [(SPLIT, WRONG), (ALIKE, ALIKE), (WRONG, SPLIT)]))
    rows = {(row.measure, row.edges): row for row in study.rows}
    found = {name: rows[name, False].success for name in MEASURES}
    assert found == {"one": 0.5, "any": 0.6667, "same": 0.6667, "vote": 0.6667, "split": 1.0}
    assert {name: rows[name, True].success for name in MEASURES} == found | {"split": 0.0}
    assert rows["vote", True].decisions == 9 and rows["split", True].decisions == 3
    assert study.decisions == 9


def test_differences_are_paired_by_screen(tmp_path: Path) -> None:
    study = study_of(folder_of(tmp_path, [(SPLIT, WRONG), (SPLIT, ALIKE)]))
    gaps = {gap.measure: gap for gap in study.contrasts}
    assert (gaps["vote"].difference, gaps["vote"].low, gaps["vote"].high) == (-0.5, -1.0, 0.0)
    assert gaps["same"].difference == 1.0 and gaps["same"].by_seed == [1.0] * 3
    assert {gap.measure for gap in study.contrasts if gap.named} == {*CONTRASTS}
    assert "| the vote is right | 100.0 | 50.0 | **-50.0 [-100.0, +0.0]** |" in table(study)


@pytest.mark.slow
def test_the_quick_run_trains_a_team(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["talk", "--quick"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {"one", "any", "same", "vote"} <= {row["measure"] for row in found["rows"]}


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("no such run"), 2, "error: no such run\n"),
        (KeyboardInterrupt(), 130, "stopped; the same command continues\n"),
    ],
)
def test_a_script_that_cannot_go_on_says_so_and_with_which_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        raise error

    assert script(fails)() == code
    assert capsys.readouterr().err == said
    assert script(lambda: 0)() == 0


@pytest.mark.skipif(not record_path(NAME).exists(), reason="nothing is recorded yet")
def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and {len(name) for name in study.commits} == {40}
    assert all(row.seeds >= 3 for row in study.rows)
    assert sum(one.named for one in study.contrasts) == len(CONTRASTS) <= 3
    monkeypatch.setattr("sys.argv", ["talk", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert table(study) in printed and table(study) in PAGE.read_text(encoding="utf-8")
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "t_low", "seeds", "decisions"} <= set(row)
