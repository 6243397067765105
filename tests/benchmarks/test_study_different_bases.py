"""The study of different base agents: teams, figures, record and page."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # (puts demos/ on the path)

from benchmarks.studies.different_bases.__main__ import NAME, main
from benchmarks.studies.different_bases.agents import continued, team
from benchmarks.studies.different_bases.cells import Cell, Decision, clones, play
from benchmarks.studies.different_bases.plan import (
    AGENTS,
    DIFFERENT,
    MEASURES,
    POOLS,
    SPLITS,
    Plan,
    Split,
)
from benchmarks.studies.different_bases.report import (
    Study,
    any_clone,
    any_different,
    contrasts_table,
    main_rows,
    study_of,
    teams_table,
    verdict,
)
from benchmarks.support.records import read_record
from swarm_ui.environments.base import at_once
from swarm_ui.environments.phone import TEST_SEEDS, VALIDATION_SEEDS, PhoneEnvironment, tasks
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import base_arms
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.stats import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
SMALL = Plan(validation=1, parameters=1, templates=1, apps=1)


@demo_runs.needs_agent
async def test_four_clones_are_the_vote_of_the_learning_benchmark() -> None:
    model = LocalModel.load(BASE_AGENT)
    ours = team([model] * AGENTS)
    theirs = {arm.name: arm for arm in base_arms(Settings())}["base-vote"].graph(model)
    task, seed = SMALL.jobs("parameters")[0]
    screen = at_once(PhoneEnvironment().reset(task=task, seed=seed))
    one, other = await ours.run(screen, seed=3), await theirs.run(screen, seed=3)
    assert one.action == other.action
    assert [m.content for m in one.messages] == [m.content for m in other.messages]


@demo_runs.needs_agent
def test_equal_agents_have_nothing_to_gain() -> None:
    cell = play("continued", [Path(BASE_AGENT)] * AGENTS, "parameters", SMALL)
    assert {d.visitor for d in cell.decisions} == {clones(0), DIFFERENT}
    for decision in cell.decisions:
        assert decision.right == [decision.right[0]] * AGENTS
        assert len(set(decision.votes)) == 1 and len(decision.votes) == AGENTS + 1
        assert any_different(decision) == any_clone(decision, 0)
    values = [[o.value for o in found] for found in cell.success.values()]
    assert len(values) == AGENTS + 1 and values == [values[0]] * len(values)


def test_different_agents_have_each_another_view() -> None:
    row = [[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    one = Decision(task="t", seed=0, visitor=DIFFERENT, right=row, votes=[0] * 5)
    assert any_different(one) == 0.25 and any_clone(one, 0) == 1.0 and any_clone(one, 1) == 0.0


def test_agents_and_views_are_chosen_on_validation_seeds_and_tested_on_others() -> None:
    plan = Plan()
    for split in SPLITS:
        seeds = VALIDATION_SEEDS if split == "validation" else TEST_SEEDS
        assert all(seed in seeds for _, seed in plan.jobs(split))
    assert {task for task, _ in plan.jobs("validation")} == set(tasks("train"))


def test_agents_must_be_three_folders(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected 3 folders of agents"):
        continued([Path(BASE_AGENT)])
    with pytest.raises(ConfigError, match="no agent in"):
        continued([Path(BASE_AGENT), Path(BASE_AGENT), tmp_path])


def cell(pool: str, split: Split, best: int) -> Cell:
    """Each agent is right on every fourth template, and the best one on half of them."""
    decisions = [
        Decision(
            task=f"task-{n}", seed=k, visitor=DIFFERENT,
            right=[[int(n % 4 == a or (a == best and n % 4 == 3 - a))] * 4 for a in range(4)],
            votes=[0, 0, 0, 0, 1],
        )
        for n in range(12)
        for k in range(3)
    ]  # fmt: skip
    won = [Outcome(f"task-{n}", 0, 1.0) for n in range(12)]
    lost = [Outcome(f"task-{n}", 0, 0.0) for n in range(12)]
    success = {clones(k): lost for k in range(AGENTS)} | {DIFFERENT: won}
    return Cell(
        pool=pool, split=split, commit="c" * 40, digests=["d"] * 4, decisions=decisions,
        success=success, seconds=1.0,
    )  # fmt: skip


def test_figures_of_cells(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    (tmp_path / "cells").mkdir()
    for split in ("validation", "parameters"):
        path = tmp_path / "cells" / f"scratch-{split}.json"
        path.write_bytes(msgspec.json.encode(cell("scratch", split, 2)))
    study = study_of(tmp_path)
    assert study.best == {"scratch": 2}
    row = next(r for r in study.rows if r.name == DIFFERENT and r.split == "parameters")
    assert (row.single, row.any, row.vote, row.success) == (0.5, 1.0, 1.0, 1.0)
    assert row.headroom == 0.5 and 0.0 < row.headroom_low < 0.5 < row.headroom_high
    same = next(r for r in study.rows if r.best and r.split == "parameters")
    assert same.name == clones(2) and same.headroom == 0.0
    named = {c.measure: c for c in study.contrasts if c.named}
    assert set(named) == set(MEASURES) and all(c.split == "parameters" for c in named.values())
    assert named["gain of any"].difference == 0.5 and named["gain of the vote"].difference == 1.0
    assert "at least the 4 points" in verdict(study)


@pytest.mark.slow
def test_the_quick_run_trains_agents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["different_bases", "--quick"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {row["pool"] for row in found["rows"]} == {"scratch"}


def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and set(study.best) <= set(POOLS)
    monkeypatch.setattr("sys.argv", ["different_bases", "--recorded"])
    assert main() == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    assert teams_table(main_rows(study)) in page
    assert contrasts_table([one for one in study.contrasts if one.named]) in page
    for table in (teams_table(study.rows), contrasts_table(study.contrasts)):
        assert table in printed
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "seeds"} <= set(row)
