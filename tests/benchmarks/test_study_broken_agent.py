"""The study of broken agents: what it is made of."""

from __future__ import annotations

import json
import random
from pathlib import Path

import demo_runs  # noqa: F401  (puts demos/ on the path)
import msgspec
import pytest

from benchmarks.studies.broken_agent.arms import ARMS, BrokenCase, BrokenCell, any_action, ladder
from benchmarks.studies.broken_agent.report import beyond_half, recovered
from benchmarks.studies.broken_agent.report import summary as broken_summary
from swarm_ui.action import Action, parse_action
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.observation import Element, Observation
from swarm_ui.optim.edges.prune_agents import AgentAudit
from swarm_ui.optim.preferences.adversary import fits
from swarm_ui.stats import Interval


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
    case = BrokenCase(model=model, sight="half", kind="random", seed=2, noise=0.0)
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
    rates = dict.fromkeys((arm.name for arm in ARMS), full) | {"healthy": healthy, "cut": cut}
    return BrokenCell(
        sight="half", kind="random", seed=seed, broken="agent_1", found=("agent_1",),
        audits=(audit("agent_1", -0.5), audit("agent_0", 0.1)), healthy_found=(),
        healthy_audits=(audit("agent_1", 0.0),), seconds=1.0,
        outcomes={k: tuple(float(i < n * rate) for i in range(n)) for k, rate in rates.items()},
    )  # fmt: skip


def test_recovered_is_the_share_of_what_the_broken_agent_costs() -> None:
    cells = [cell(0, 0.8, 0.4, 0.7), cell(1, 0.8, 0.4, 0.7)]
    assert recovered(cells) == pytest.approx(0.75)
    beyond = beyond_half(cells)
    assert beyond is not None and beyond.mean == pytest.approx(0.7 - 0.6)
    assert recovered([cell(0, 0.4, 0.4, 0.4)]) is None


def test_the_broken_table_has_all_arms(tmp_path: Path) -> None:
    for seed in range(2):
        path = tmp_path / f"half-random-{seed}.json"
        path.write_bytes(msgspec.json.encode(cell(seed, 0.8, 0.4, 0.7)))
    text = broken_summary(tmp_path)
    assert all(arm.label in text for arm in ARMS)
    assert "Cutting both gives back 75 %" in text
    assert "lies 0.50 below" in text and "further than 0.10" in text
    figures = json.loads((tmp_path / "summary.json").read_text())
    assert figures["half-random"]["found"] == 2
