"""Intervals against closed forms, coverage by simulation, and masking."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.stats import (
    Interval,
    Outcome,
    clustered_difference,
    clustered_mean,
    outcomes,
    over_seeds,
    paired_difference,
    percentile_interval,
    tango,
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


def test_outcomes_keep_none_apart_from_failure_and_name_the_template() -> None:
    made = [
        Episode(environment="e", task="t", seed=k, success=success)
        for k, success in enumerate([True, False, None])
    ]
    found = outcomes(made, run=2)
    assert found == [Outcome("t", k, value, 2) for k, value in enumerate([1.0, 0.0, None])]
    assert wilson(found) == wilson([1.0, 0.0])


# -- clustered by template --------------------------------------------------------------------


def drawn(rng: random.Random, templates: int, each: int, spread: float) -> list[Outcome]:
    """Episodes of templates whose chance of success is drawn from 0.5 ± ``spread``."""
    found = []
    for template in range(templates):
        chance = 0.5 + rng.uniform(-spread, spread)
        found += [
            Outcome(f"t{template}", seed, float(rng.random() < chance)) for seed in range(each)
        ]
    return found


def width(interval: Interval | None) -> float:
    assert interval is not None
    return interval.high - interval.low


def test_with_one_episode_a_template_it_is_the_plain_bootstrap() -> None:
    rng = random.Random(1)
    ours, theirs = drawn(rng, 40, 1, 0.3), drawn(rng, 40, 1, 0.3)
    clustered = clustered_difference(ours, theirs)
    deltas = [float(o.value or 0) - float(t.value or 0) for o, t in zip(ours, theirs, strict=True)]
    again = random.Random(0)
    means = [sum(again.choices(deltas, k=40)) / 40 for _ in range(2000)]
    assert clustered == percentile_interval(sum(deltas) / 40, means, 40)


@pytest.mark.parametrize("spread", [0.0, 0.45])
def test_clustered_intervals_cover_the_truth(
    spread: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_ui.stats.paired_clustered.RESAMPLES", 200)
    rng = random.Random(3)
    hits, naive, trials = 0, 0, 80
    for _ in range(trials):
        values = drawn(rng, 25, 8, spread)
        interval = clustered_mean(values)
        plain = wilson([o.value for o in values])
        assert interval is not None and plain is not None
        hits += interval.low <= 0.5 <= interval.high
        naive += plain.low <= 0.5 <= plain.high
    assert hits / trials >= 0.9
    if spread:  # what the interval without templates claims is not true
        assert naive / trials < 0.85


def test_runs_are_resampled_too() -> None:
    rng = random.Random(4)
    episodes = drawn(rng, 30, 4, 0.1)
    alike = [Outcome(o.template, o.seed, o.value, run) for o in episodes for run in range(3)]
    unlike = [Outcome(o.template, o.seed, float(run > 0), run) for o in episodes for run in (0, 1)]
    one = clustered_mean(episodes)
    assert one is not None
    same = clustered_mean(alike)
    assert same is not None and (same.mean, same.n) == (one.mean, 3 * one.n)
    assert width(same) == pytest.approx(width(one), rel=0.15)
    assert clustered_mean(unlike) == Interval(mean=0.5, low=0.0, high=1.0, n=240)


def test_pairs_are_found_by_template_and_seed() -> None:
    ours = [Outcome("a", 1, 1.0), Outcome("a", 2, None), Outcome("b", 1, 1.0), Outcome("b", 1, 0.0)]
    theirs = [Outcome("b", 1, 0.0), Outcome("a", 2, 1.0), Outcome("a", 1, 0.0)]
    with pytest.raises(ConfigError, match="got 4 and 3, of which 1 are on one side"):
        clustered_difference(ours, theirs)
    found = clustered_difference(ours, [*theirs, Outcome("b", 1, 0.0)])
    assert found is not None and (found.mean, found.n) == (pytest.approx(2 / 3), 3)
    assert clustered_difference([Outcome("a", 1, None)], [Outcome("a", 1, 1.0)]) is None
    assert clustered_mean([]) is None


def test_equal_outcomes_are_as_many_observations_as_templates_or_episodes_of_one() -> None:
    many = [Outcome(f"t{t}", k, 1.0) for t in range(5) for k in range(10)]
    one = [Outcome("t", k, 0.0, run) for k in range(10) for run in range(3)]
    masked = [Outcome("t", 10, None), Outcome("u", 11, None)]
    for values, same, n in ((many, [1.0] * 5, 50), ([*one, *masked], [0.0] * 10, 30)):
        expected, found = wilson(same), clustered_mean(values)
        assert expected is not None and found is not None
        assert (found.low, found.high, found.n) == (expected.low, expected.high, n)
    worse = clustered_difference(one, [Outcome(o.template, o.seed, 1.0, o.run) for o in one])
    assert worse is not None and (worse.low, worse.high) == tango(0, 10, 10)


# -- score intervals of paired differences ------------------------------------------------------


def test_tangos_interval_against_published_numbers() -> None:
    # Fagerland, Lydersen and Laake (2014), airway hyper-responsiveness: 1, 1, 7, 12 of 21.
    low, high = tango(1, 7, 21)
    assert (round(low, 3), round(high, 3)) == (-0.517, -0.026)
    # Without a discordant pair the bounds have a closed form.
    z2 = 1.959964**2
    assert tango(0, 0, 4) == pytest.approx((-z2 / (4 + z2), z2 / (4 + z2)))
    assert tango(4, 0, 4) == pytest.approx(((4 - z2) / (4 + z2), 1.0))


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_tangos_interval_agrees_with_mcnemars_test_and_has_no_favourite(
    better: int, worse: int, same: int
) -> None:
    n = better + worse + same
    if n == 0:
        return
    low, high = tango(better, worse, n)
    assert -1 <= low <= (better - worse) / n <= high <= 1 and low < high
    assert tango(worse, better, n) == pytest.approx((-high, -low))
    if better + worse:
        chi = (better - worse) ** 2 / (better + worse)
        if abs(chi - 1.959964**2) > 1e-6:
            assert (low > 0 or high < 0) == (chi > 1.959964**2)


def pairs(deltas: dict[str, list[int]]) -> tuple[list[Outcome], list[Outcome]]:
    """Outcomes of two sides with these differences, by template."""
    cells = [(t, k, d) for t, values in deltas.items() for k, d in enumerate(values)]
    ours = [Outcome(t, k, float(d >= 0)) for t, k, d in cells]
    return ours, [Outcome(t, k, float(d <= 0)) for t, k, d in cells]


def test_the_score_interval_is_wider_where_episodes_of_a_template_agree() -> None:
    agreeing = {f"t{k}": [[0, 1, -1, 1][k % 4]] * 10 for k in range(20)}
    mixed = {f"t{k}": [[0, 1, -1, 1][(j + k) % 4] for j in range(20)] for k in range(10)}
    assert width(paired_difference(*pairs(agreeing))) > 2 * width(paired_difference(*pairs(mixed)))
    ours, theirs = pairs(mixed)
    plain = tango(100, 50, 200)
    assert width(paired_difference(ours, theirs)) == pytest.approx(plain[1] - plain[0])
