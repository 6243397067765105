"""The simulation of the budget that learned edges need."""

from __future__ import annotations

import random
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from benchmark_scripts import benchmark_script

from benchmarks.support.records import read_record


@pytest.fixture(scope="module")
def power() -> ModuleType:
    return benchmark_script("edge_power")


def test_every_dag_of_four_agents_has_a_value(power: ModuleType) -> None:
    dags = power.all_dags()
    assert len(dags) == len(set(dags)) == 543  # the number of labelled DAGs with four nodes
    world = power.instance(dags, 0.3, random.Random(1))
    assert max(world.values.values()) == pytest.approx(0.9)
    assert min(world.values.values()) == pytest.approx(0.6)


def test_graphs_share_the_difficulty_of_their_episodes(power: ModuleType) -> None:
    from swarm_ui.optim.edges.candidates import EdgeSample

    dags = power.all_dags()
    world = power.instance(dags, 1e-9, random.Random(0))
    samples = [EdgeSample(order=power.AGENTS, edges=(), log_prob=None)] * 2
    rng = random.Random(0)
    pairs = [power.utilities(world, samples, rng) for _ in range(400)]
    spread = sum((a - b) ** 2 for a, b in pairs) / 400
    alone = 2 * 0.75 * 0.25 / power.EPISODES
    assert spread == pytest.approx(alone * (1 - power.SHARED), rel=0.25)


def test_a_large_effect_is_learned_with_many_episodes(power: ModuleType) -> None:
    world = power.instance(power.all_dags(), 0.9, random.Random(3))
    for name in power.LEARNERS:
        before, after = power.learn(name, world, 5, (0, 60))
        assert after < 0.5 * before


def test_rows_and_chance(power: ModuleType) -> None:
    data = power.measured(2, (0, 1))
    assert len(data["rows"]) == 2 * 2 * 3 and len(data["chance"]) == 3
    assert all(r["low"] <= r["power"] <= r["high"] for r in data["rows"])
    assert all(a["power"] >= b["power"] for a, b in pairwise(data["chance"]))


def test_the_record_has_all_budgets(power: ModuleType) -> None:
    data = read_record(power.NAME, dict[str, Any])
    assert not data["origin"]["dirty"]
    found = {(r["learner"], r["spread"], r["iterations"]) for r in data["rows"]}
    assert len(found) == len(power.LEARNERS) * len(power.SPREADS) * len(power.BUDGETS)
