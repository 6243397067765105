"""The study of broken agents: its teams, its figures and its record."""

from __future__ import annotations

import json
import random
from pathlib import Path

import demo_runs  # noqa: F401  (puts demos/ on the path)
import msgspec
import pytest

from benchmarks.studies.broken_agent.__main__ import NAME, main
from benchmarks.studies.broken_agent.arms import ARMS, BrokenCase, BrokenCell, any_action, ladder
from benchmarks.studies.broken_agent.plan import CONTRASTS, HALF, Plan
from benchmarks.studies.broken_agent.report import (
    Study,
    main_table,
    markdown,
    recovered,
    section,
    study_of,
)
from benchmarks.support.records import read_record
from swarm_ui.action import Action, parse_action
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.adversary import fits
from swarm_ui.optim.edges.prune import AgentAudit
from swarm_ui.stats import Interval, Outcome

PAGE = Path(__file__).parents[2] / "docs" / "credit.md"


def test_any_action_is_one_that_the_screen_allows() -> None:
    elements = (
        Element(index=0, role="text", text="Name", clickable=False),
        Element(index=1, role="field", text="Name", editable=True, clickable=True),
        Element(index=2, role="button", text="Save", clickable=True),
    )
    screen = Observation(goal="type Ada and save", elements=elements)
    drawn = [any_action(screen, random.Random(seed)) for seed in range(200)]
    assert all(fits(action, screen) for action in drawn)
    assert {action.action_type for action in drawn} == {
        "navigate_back", "navigate_home", "status", "click", "input_text",
    }  # fmt: skip
    assert {action.index for action in drawn} == {None, 1, 2}
    assert all(isinstance(parse_action(action.json()), Action) for action in drawn)


def test_a_ladder_breaks_one_agent_in_every_arm_but_the_healthy_ones() -> None:
    """A team that is right by itself nowhere, so that only the wiring is seen."""
    model = ScriptedModel(lambda request: '{"action_type": "wait"}')
    case = BrokenCase(model=model, weights="", sight="half", kind="random", seed=2, noise=0.0)
    told: list[str] = []
    cell = ladder(case, tuning=2, episodes=2, progress=lambda done, what: told.append(what))
    assert cell.broken == "agent_2"
    assert set(cell.outcomes) == {arm.name for arm in ARMS}
    assert len(told) == len(ARMS) + 2
    waiting = {request.seed for request in model.requests}
    assert waiting  # the healthy agents were asked
    policy = case.policy(ARMS[-1], ["agent_2"])
    drawn = policy._graph("open-app", 1)  # type: ignore[operator]
    assert drawn[0].agents == ("agent_0", "agent_1", "agent_3")


def audit(agent: str, gap: float) -> AgentAudit:
    seen = Interval(mean=gap, low=gap - 0.1, high=gap + 0.1, n=9)
    return AgentAudit(agent=agent, gap=seen, failed=0.0, broken=gap < -0.15)


def cell(seed: int, healthy: float, full: float, cut: float) -> BrokenCell:
    n = 100
    shares = dict.fromkeys((arm.name for arm in ARMS), full) | {"healthy": healthy, "cut": cut}
    return BrokenCell(
        sight="screen", kind="random", seed=seed, commit="c" * 40, agent="a" * 64,
        broken="agent_1", found=("agent_1",),
        audits=(audit("agent_1", -0.5), audit("agent_0", 0.1)),
        healthy_found=(), healthy_audits=(audit("agent_1", 0.0),), seconds=1.0,
        outcomes={
            arm: [Outcome(f"task-{k % 10}", 1000 * seed + k, float(k < n * share), seed)
                  for k in range(n)]
            for arm, share in shares.items()
        },
    )  # fmt: skip


def test_recovered_is_the_share_of_what_the_broken_agent_costs() -> None:
    assert recovered([cell(0, 0.8, 0.4, 0.7), cell(1, 0.8, 0.4, 0.7)]) == 0.75
    assert recovered([cell(0, 0.4, 0.4, 0.4)]) is None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cells").mkdir()
    (tmp_path / "settings.json").write_bytes(msgspec.json.encode(Plan()))
    for seed in range(3):
        path = tmp_path / "cells" / f"screen-random-{seed}.json"
        path.write_bytes(msgspec.json.encode(cell(seed, 0.8, 0.4, 0.7)))
    return tmp_path


def test_figures_of_cells(folder: Path) -> None:
    study = study_of(folder)
    assert [row.arm for row in study.rows] == [arm.name for arm in ARMS]
    assert all(row.seeds == 3 and row.episodes == 100 for row in study.rows)
    (search,) = study.searches
    assert (search.found, search.found_in_healthy, search.recovered) == (3, 0, 0.75)
    assert (search.credit_gap, search.largest_healthy_gap) == (0.5, 0.1)
    labels = {arm.name: arm.label for arm in ARMS}
    named = [(c.ours, c.theirs) for c in study.contrasts if c.named]
    assert named == [(labels[a], labels[b]) for a, b in CONTRASTS]
    half = study.contrasts[-1]
    assert half.theirs == HALF and half.difference == pytest.approx(0.7 - 0.6)
    text = markdown(study)
    assert all(arm.label in text for arm in ARMS)
    assert "recovers 75 % of the loss" in text
    assert "lies 0.50 below" in text and "within 0.10 of this median" in text


@pytest.mark.slow
def test_the_quick_run_plays_all_settings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["broken_agent", "--quick", "--half-windows"])
    assert main() == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(found["rows"]) == 4 * len(ARMS) and len(found["searches"]) == 4


def test_the_page_shows_the_record(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = read_record(NAME, Study)
    assert len(study.origin.commit) == 40 and not study.origin.dirty
    assert study.plan == Plan() and {len(name) for name in study.commits} == {40}
    assert all(len(search.seeds) >= 3 for search in study.searches)
    assert sum(one.named for one in study.contrasts) == len(CONTRASTS) <= 3
    monkeypatch.setattr("sys.argv", ["broken_agent", "--recorded"])
    assert main() == 0
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    assert main_table(study) in printed and main_table(study) in page
    for search in study.searches:
        assert section(study, search) in printed
    for row in json.loads(printed.splitlines()[-1])["rows"]:
        assert {"name", "success", "low", "high", "t_low", "seeds", "episodes"} <= set(row)
