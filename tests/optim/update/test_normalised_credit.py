"""Advantages of a batch by group: closed forms, mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import click, decided, screen

from swarm_ui import Action, Credit, Episode, Failure, StepRecord
from swarm_ui.optim import preference_pairs, scored_replies


def episode(
    *steps: StepRecord, success: bool | None = True, fault: Failure | None = None
) -> Episode:
    return Episode(environment="e", task="t", seed=0, steps=steps, success=success, fault=fault)


def step(
    matrix: Sequence[Sequence[Action | None]],
    goal: str = "save it",
    credit: Sequence[Sequence[float | None]] | None = None,
) -> StepRecord:
    trace = decided(matrix, observation=screen(goal=goal))
    given = None if credit is None else tuple(map(tuple, credit))
    return StepRecord(trace=trace, executed=trace.action, credit=given)


BATCH = [
    episode(
        step([[click(0), click(1)], [click(0), None]], "one", credit=[[1.0, 0.0], [0.5, None]]),
        step([[click(0), click(1)]], "two", credit=[[0.0, 1.0]]),
    ),
    episode(step([[click(0), click(1)]], "one", credit=[[0.5, 1.0]]), success=False),
    episode(
        step([[click(0), click(1)]], "one", credit=[[0.0, 0.0]]),
        success=None,
        fault=Failure(kind="environment", message="x"),
    ),
    episode(step([[click(0), click(1)]], "one")),
]


def test_advantages_are_relative_to_the_screen() -> None:
    """Screen "one" has the credits 1, 0, 1/2, 1/2, 1 (mean 0.6, deviation 0.374...)."""
    found = [reply.advantage for reply in scored_replies(BATCH)]
    spread = math.sqrt(0.14)
    expected = [0.4 / spread, -0.6 / spread, -0.1 / spread, -1.0, 1.0, -0.1 / spread, 0.4 / spread]
    assert found == pytest.approx(expected, abs=1e-4)


def test_credit_may_be_given_beside_the_episodes() -> None:
    bare = episode(step([[click(0), click(1)]]))
    credit = Credit(values=(((1.0, 0.0),),))
    assert [r.advantage for r in scored_replies([bare], [credit])] == pytest.approx(
        [1.0, -1.0], abs=1e-4
    )
    assert {pair.node for pair in preference_pairs([bare], [credit])} == {"agent_0", "agent_1"}


@given(st.floats(0, 1), st.integers(2, 9))
def test_equal_credit_has_no_advantage(value: float, count: int) -> None:
    assert scored_replies([episode(step([[click(0)]], credit=[[value]]))] * count) == []
