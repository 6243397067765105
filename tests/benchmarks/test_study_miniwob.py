"""The study of real pages: what its cells keep, its figures and its record."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")

import demo_runs  # noqa: F401  (puts demos/ on the path)

from benchmarks.studies.different_bases.agents import digest
from benchmarks.studies.miniwob.__main__ import NAME, main
from benchmarks.studies.miniwob.cells import Cell, play, random_reply
from benchmarks.studies.miniwob.plan import AGENT, POLICIES, RANDOM, Plan
from benchmarks.studies.miniwob.report import Study, main_table, over_these, study_of, task_table
from benchmarks.support.records import read_record
from swarm_ui.action import Action, parse_action
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.model import Decision, Request
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.adversary import fits
from swarm_ui.stats import Outcome

DOCS = Path(__file__).parents[2] / "docs"


def cell(policy: str, solved: dict[str, list[float | None]]) -> Cell:
    return Cell(
        tasks="reference", policy=policy, agent="" if policy == RANDOM else "a" * 64,
        commits=["c" * 40], seconds=1.0,
        outcomes=[Outcome(task, k, v) for task, own in solved.items() for k, v in enumerate(own)],
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cells").mkdir()
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    made = (
        cell(AGENT, {"login": [1.0, 1.0], "search": [1.0, 0.0], "menu": [0.0, None]}),
        cell(RANDOM, {"login": [0.0, 0.0], "search": [1.0, 0.0], "menu": [0.0, 0.0]}),
    )
    for one in made:
        path = tmp_path / "cells" / f"reference-{one.policy.replace(' ', '-')}.json"
        path.write_bytes(msgspec.json.encode(one))
    return tmp_path


def test_figures_of_cells(folder: Path) -> None:
    study = study_of(folder)
    agent, control = study.rows
    assert (agent.success, agent.masked, agent.seeds) == (0.6, 1, 0)
    assert control.success == pytest.approx(1 / 6, abs=1e-4)
    assert agent.low < agent.these_low < agent.success < agent.these_high < agent.high
    (gap,) = study.contrasts
    assert gap.named and gap.difference == 0.4  # over the five episodes that both played
    assert {t.name: t.success for t in study.tasks if t.policy == AGENT} == {
        "login": 1.0, "search": 0.5, "menu": 0.0,
    }  # fmt: skip
    assert "| base agent, reference tasks | 60.0 |" in main_table(study)
    assert task_table(study, "reference").splitlines()[2:] == [
        "| 100 | login |", "| 50 | search (50) |", "| 0 | menu |",
    ]  # fmt: skip


def test_over_these_tasks_a_task_without_variance_adds_none() -> None:
    sure = [Outcome("a", k, 1.0) for k in range(4)]
    assert over_these(sure) == (1.0, 1.0)
    low, high = over_these([*sure, *(Outcome("b", k, k % 2) for k in range(4))])
    assert 0.5 < low < 0.75 < high <= 1.0


def test_a_finished_cell_is_not_played_again_and_another_agent_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cell.json"
    plan, display = Plan(each=1, tasks=1), ProgressDisplay(quiet=True)
    path.write_bytes(msgspec.json.encode(cell(RANDOM, {plan.of("reference")[0]: [1.0]})))
    before = path.read_bytes()
    play(path, "reference", RANDOM, plan, display)
    assert path.read_bytes() == before
    with pytest.raises(ConfigError, match="another base agent"):
        play(path, "reference", AGENT, plan, display)


def test_random_actions_are_those_that_the_screen_allows() -> None:
    elements = (
        Element(index=0, role="field", text="Name", editable=True, clickable=True),
        Element(index=1, role="button", text="Save", clickable=True),
    )
    screen = Observation(goal="type Ada", elements=elements)
    seeds = random.Random(0)
    empty = Observation(goal="x", elements=())
    for seen, kinds in ((screen, {"click", "input_text"}), (empty, {"scroll"})):
        said = [
            parse_action(random_reply(
                Request(decision=Decision(observation=seen),
                        seed=seeds.getrandbits(31))
            ))
            for _ in range(30)
        ]  # fmt: skip
        actions = [action for action in said if isinstance(action, Action)]
        assert len(actions) == 30 and {action.action_type for action in actions} == kinds
        assert all(fits(action, seen) for action in actions)


@pytest.mark.slow
@pytest.mark.browser
def test_the_quick_run_plays_both_policies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["miniwob", "--quick"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    names = [row["name"] for row in found["rows"]]
    assert names == [f"{policy}, reference tasks" for policy in POLICIES]


def test_the_pages_show_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and {len(name) for name in study.commits} == {40}
    assert study.agent == digest(BASE_AGENT), "the base agent changed: measure it again"
    monkeypatch.setattr("sys.argv", ["miniwob", "--recorded"])
    assert main() == 0
    printed = capsys.readouterr().out
    assert main_table(study) in (DOCS / "results.md").read_text(encoding="utf-8")
    assert main_table(study) in printed and task_table(study, "reference") in printed
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "seeds", "episodes", "masked"} <= set(row)
