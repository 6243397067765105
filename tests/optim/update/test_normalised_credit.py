"""Advantages of a batch by group: closed forms, mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning_fakes import click, decided, screen

from swarm_ui import Action, ConfigError, Episode, Failure, StepRecord
from swarm_ui.optim.preferences.normalise import By, normalise


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


@pytest.mark.parametrize(
    ("by", "means", "spreads", "groups"),
    [
        ("batch", (4 / 7, 4 / 7), (None, None), 1),
        ("agent", (0.5, 2 / 3), (math.sqrt(0.125), math.sqrt(2) / 3), 2),
    ],
)
def test_advantages_against_the_closed_form(
    by: By, means: tuple[float, float], spreads: tuple[float | None, ...], groups: int
) -> None:
    plain = normalise(BATCH, by=by, scale=False)
    a, b = means
    assert plain.groups == groups
    first, second, masked, none = plain.values
    assert first[0] == ((pytest.approx(1 - a), pytest.approx(-b)), (pytest.approx(0.5 - a), None))
    assert first[1] == ((pytest.approx(-a), pytest.approx(1 - b)),)
    assert second == (((pytest.approx(0.5 - a), pytest.approx(1 - b)),),)
    assert masked == none == (None,)
    if spreads[0] is not None and spreads[1] is not None:
        scaled = normalise(BATCH, by=by).values[0][0]
        assert scaled is not None
        assert scaled[0] == (
            pytest.approx((1 - a) / spreads[0], rel=1e-4),
            pytest.approx(-b / spreads[1], rel=1e-4),
        )


def test_advantages_by_round_and_by_anchor() -> None:
    by_round = normalise(BATCH, by="agent and round", scale=False)
    assert by_round.groups == 2  # the second round's lone message has nobody to be compared with
    assert by_round.values[0][0] == (
        (pytest.approx(0.5), pytest.approx(-2 / 3)),
        (0.0, None),
    )
    anchors = normalise(BATCH, by="state", scale=False)
    assert anchors.groups == 2
    one = 3.0 / 5  # 1, 0, .5 of the first episode and .5, 1 of the second: equal screens
    assert anchors.values[0][0] == (
        (pytest.approx(1 - one), pytest.approx(-one)),
        (pytest.approx(0.5 - one), None),
    )
    assert anchors.values[0][1] == ((-0.5, 0.5),)
    assert anchors.values[1][0] == ((pytest.approx(0.5 - one), pytest.approx(1 - one)),)
    with pytest.raises(ConfigError, match="by must be one of batch, agent"):
        normalise(BATCH, by="team")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.none() | st.floats(0, 1), min_size=3, max_size=3), min_size=1))
def test_advantages_have_mean_zero_and_variance_one(rows: list[list[float | None]]) -> None:
    episodes = [episode(step([[click(0)] * 3], credit=[row])) for row in rows]
    found = normalise(episodes, by="agent", floor=1e-12).values
    for agent in range(3):
        column = [
            steps[0][0][agent]
            for steps in found
            if steps[0] is not None and steps[0][0][agent] is not None
        ]
        kept = [v for v in column if v is not None]
        given_values = {row[agent] for row in rows if row[agent] is not None}
        if kept:
            assert math.fsum(kept) == pytest.approx(0.0, abs=1e-6)
        spread = max(given_values, default=0) - min(given_values, default=0)
        if spread > 1e-3:
            assert math.fsum(v * v for v in kept) / len(kept) == pytest.approx(1.0, rel=1e-6)


def test_equal_credit_is_no_advantage_however_it_is_rounded() -> None:
    value = 0.45975772132034287  # of which three have a mean that is another float
    batch = [episode(step([[click(0)]], credit=((value,),))) for _ in range(3)]
    assert normalise(batch).values == ((((0.0,),),),) * 3
