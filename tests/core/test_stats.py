"""Intervals against closed forms, coverage by simulation, and masking."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.stats import (
    bootstrap_difference,
    markdown,
    outcomes,
    over_seeds,
    paired_difference,
    table,
    wilson,
)
from swarm_ui.trace.records import Episode


def test_wilson_against_published_numbers() -> None:
    # Agresti and Coull (1998) and Newcombe (1998): 0 of 10, 81 of 263.
    none = wilson([0.0] * 10)
    assert none is not None
    assert (none.low, round(none.high, 4)) == (0.0, 0.2775)
    some = wilson([1.0] * 81 + [0.0] * 182)
    assert some is not None
    assert (round(some.low, 4), round(some.high, 4)) == (0.2553, 0.3662)


@given(st.lists(st.sampled_from([0.0, 1.0, None]), max_size=40))
def test_masked_episodes_are_left_out(values: list[float | None]) -> None:
    kept = [v for v in values if v is not None]
    assert wilson(values) == wilson(kept)
    if kept:
        interval = wilson(values)
        assert interval is not None
        assert interval.n == len(kept)
        assert 0.0 <= interval.low <= interval.mean <= interval.high <= 1.0
    else:
        assert wilson(values) is None


def test_paired_difference_by_hand() -> None:
    interval = paired_difference([1, 1, 0, 1, None], [0, 1, 0, 0, 1])
    assert interval is not None
    assert (interval.mean, interval.n) == (0.5, 4)
    half = 1.959964 * math.sqrt((4 * 0.25) / 3 / 4)
    assert interval.high - interval.mean == pytest.approx(half)
    with pytest.raises(ConfigError, match="same episodes"):
        paired_difference([1.0], [1.0, 0.0])
    assert paired_difference([None], [1.0]) is None


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    rng = random.Random(0)
    hits = {"wilson": 0, "paired": 0, "bootstrap": 0}
    for _ in range(200):
        theirs = [float(rng.random() < 0.5) for _ in range(80)]
        ours = [1.0 if t or rng.random() < 0.2 else 0.0 for t in theirs]  # truth: +0.1
        one = wilson(theirs)
        two = paired_difference(ours, theirs)
        three = bootstrap_difference(ours, theirs, rng, resamples=200)
        assert one is not None and two is not None and three is not None
        hits["wilson"] += one.low <= 0.5 <= one.high
        hits["paired"] += two.low <= 0.1 <= two.high
        hits["bootstrap"] += three.low <= 0.1 <= three.high
    assert all(180 <= count <= 199 for count in hits.values()), hits


def test_one_run_says_nothing_about_the_next() -> None:
    assert over_seeds([]) is None
    one = over_seeds([0.7])
    assert one is not None
    assert one.high == math.inf
    three = over_seeds([0.6, 0.7, 0.8])
    assert three is not None
    assert three.high - three.mean == pytest.approx(4.303 * 0.1 / math.sqrt(3))
    many = over_seeds([0.0, 1.0] * 15)
    assert many is not None
    # t with 29 degrees of freedom: 2.045
    assert many.high - many.mean == pytest.approx(2.045 * math.sqrt(7.5 / 29 / 30), rel=2e-3)


def test_table_compares_with_the_row_it_is_told_to() -> None:
    results = {"base": [0.0, 0.0, 1.0, None], "team": [1.0, 1.0, 1.0, 1.0]}
    base, team = table(results, against="base")
    assert (base.masked, base.difference) == (1, None)
    assert team.difference is not None
    assert (team.difference.n, round(team.difference.mean, 3)) == (3, 0.667)
    text = markdown([base, team], against="base")
    assert "| base | 33.3 [6.1, 79.2] | – | 3 | 1 |" in text
    with pytest.raises(ConfigError, match="no row 'x'"):
        table(results, against="x")


def test_outcomes_keep_none_apart_from_failure() -> None:
    made = [
        Episode(environment="e", task="t", seed=k, success=success)
        for k, success in enumerate([True, False, None])
    ]
    assert outcomes(made) == [1.0, 0.0, None]
