"""Credit that compares the episodes of a batch: numbers by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from learning_fakes import click, decided, screen

from swarm_ui import Action, ConfigError, Episode, Failure, StepRecord
from swarm_ui.optim import MALT, DrMAS, GiGPO, ProgressAttribution
from swarm_ui.optim.credit.critic import credit_of
from swarm_ui.optim.credit.groups import fitted

ALL = (DrMAS, GiGPO, MALT, ProgressAttribution)
Row = Sequence[Action | None]


def step(row: Row, goal: str = "start", executed: Action | None = None) -> StepRecord:
    trace = decided([row], observation=screen(("a", "b", "c", "d", "e"), goal=goal))
    return StepRecord(trace=trace, executed=executed or row[0])


def episode(success: bool | None, *steps: StepRecord, seed: int = 0) -> Episode:
    fault = Failure(kind="environment", message="x") if success is None else None
    return Episode(environment="e", task="t", seed=seed, steps=steps, success=success, fault=fault)


async def values(critic: Any, *episodes: Episode) -> list[list[object]]:
    """``[episodes][steps]``, the row of each decision."""
    found = await critic(episodes)
    assert all(credit.source == critic.name for credit in found)
    return [[matrix[0] for matrix in credit.values] for credit in found]


def near(*row: float | None) -> object:
    return pytest.approx(row, abs=1e-4)


@pytest.mark.parametrize("kind", ALL)
async def test_every_critic_keeps_the_contract(kind: type[Any]) -> None:
    """Shapes, range, masked episodes, and no dependence on the order of the episodes."""
    batch = [
        episode(True, step([click(0), click(1)]), step([click(1), None], "two"), seed=1),
        episode(False, step([click(1), click(0)]), seed=2),
        episode(None, step([click(0), click(1)]), seed=3),
    ]
    critic = kind()
    found = await credit_of(critic, batch)
    assert [c.shape for c in found] == [(2, 1, 2), (1, 1, 2), (1, 1, 2)]
    assert [c.signed for c in found] == [True, True, False] and found[2].scored == 0
    turned = await critic(batch[::-1])
    for ours, theirs in zip(found, turned[::-1], strict=True):
        for one, other in zip(ours.values, theirs.values, strict=True):
            assert other[0] == pytest.approx(one[0])
    assert await critic([]) == []


async def test_state_wise_advantages_compare_equal_screens_and_outcomes() -> None:
    solved = episode(True, step([click(0), click(1)]), step([click(1), click(2)], "two"), seed=1)
    failed = episode(False, step([click(1), click(2)]), seed=2)
    found = await values(GiGPO(discount=0.5), solved, failed)
    # Outcome: +1 and -1. On the first screen the returns 0.5 and 0 are +1 and -1. The second
    # screen occurs once: 0.
    assert found[0][0] == near(2 / 3, -1 / 2)  # agent_1 proposed what the other attempt did
    assert found[0][1] == near(1 / 2, None)  # nobody tried its action there
    assert found[1][0] == near(-2 / 3, None)
    alone = await values(GiGPO(weight=0.0), solved, failed)
    assert alone[0][0] == near(1 / 2, 0.0)
    for wrong in ({"discount": 0.0}, {"discount": 1.1}, {"weight": -1.0}):
        with pytest.raises(ConfigError, match="GiGPO"):
            GiGPO(**wrong)


async def test_a_tree_node_has_the_success_rate_of_the_attempts_through_it() -> None:
    attempts = [
        episode(True, step([click(0), click(3)]), step([click(1), click(4)], "two"), seed=1),
        episode(False, step([click(0), click(4)]), step([click(2), click(1)], "two"), seed=2),
        episode(True, step([click(3), click(0)]), seed=3),
    ]
    found = await values(MALT(), *attempts)
    assert found[0] == [near(0.0, 1.0), near(1.0, None)]
    assert found[1] == [near(0.0, None), near(-1.0, 1.0)]
    assert found[2] == [near(1.0, 0.0)]


async def test_starts_that_differ_are_not_compared() -> None:
    one = episode(True, step([click(0)], "one"), seed=1)
    other = episode(False, step([click(1)], "other"), seed=2)
    for kind in (DrMAS, GiGPO):
        assert await values(kind(), one, other) == [[near(0.0)], [near(0.0)]]
    assert await values(MALT(), one, other) == [[near(1.0)], [near(-1.0)]]


def test_contributions_add_up_to_the_outcome_up_to_the_penalty() -> None:
    # One feature: w minimises (2 w - 1)^2 + r w^2, so w = 2 / (4 + r).
    assert fitted([[("a",), ("a",)]], [1.0], 1.0) == {"a": pytest.approx(0.4)}
    two = fitted([[("a",), ("b",)], [("b",)]], [1.0, 0.0], 1e-9)
    assert two == {"a": pytest.approx(1.0), "b": pytest.approx(0.0, abs=1e-6)}
    assert fitted([], [], 1.0) == {}
