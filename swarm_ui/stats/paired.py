"""Intervals for the difference of two policies that played the same episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats.interval import Interval, Outcome, Z

_STEPS = 60
"""Bisections of [-1, 1]: enough for every digit of a float."""


def score_difference(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> Interval | None:
    """Mean of ``ours - theirs``, paired by template and episode, with Tango's score interval.

    It is valid for few episodes, and also if the two sides never or always differ. The normal
    interval is not, nor is a bootstrap, whose resamples are then all equal.

    Episodes of one template resemble each other. The counts are therefore divided by the design
    effect of the templates (Rao and Scott, 1992), which is estimated from the differences and is at
    least 1. If all differences are equal, it cannot be estimated, and each template counts as one
    observation. If all episodes are of one template, the interval is about new episodes of that
    template. Few templates say little about how much templates differ.

    Args:
        ours, theirs: outcomes 0 or 1 of one run each. An episode that is masked on one side is
            left out of both.

    Returns:
        ``None`` if nothing is left unmasked.

    Raises:
        ConfigError: the two sides are not the same episodes, an outcome is neither 0 nor 1, or
            there are several training runs (for which there is
            :func:`~swarm_ui.stats.clustered_difference`).
    """
    kept = [o for o in differences(ours, theirs) if o.value is not None]
    if len({o.run for o in kept}) > 1:
        raise ConfigError(
            "a score interval is for one run on each side; use clustered_difference for several"
        )
    values = [float(o.value or 0.0) for o in kept]
    if not values:
        return None
    if not {-1.0, 0.0, 1.0}.issuperset(values):
        raise ConfigError(
            "a score interval needs outcomes of 0 or 1; use clustered_difference for others"
        )
    n, templates = len(values), _by_template(kept)
    share = 1 / _design_effect(templates, sum(values) / n)
    if len(set(values)) == 1 and len(templates) > 1:
        share = len(templates) / n
    low, high = tango(share * values.count(1.0), share * values.count(-1.0), share * n)
    return Interval(mean=sum(values) / n, low=low, high=high, n=n)


def tango(better: float, worse: float, n: float) -> tuple[float, float]:
    """Tango's 95 % score interval of the difference of two paired proportions.

    It contains the differences that the score test does not reject. For a difference of 0, this is
    McNemar's test without continuity correction. Source: T. Tango, Statistics in Medicine 17
    (1998), 891-908.

    Args:
        better: pairs of which only the first succeeded.
        worse: pairs of which only the second succeeded.
        n: all pairs. The three need not be whole numbers.

    Returns:
        The bounds, from -1 to 1.
    """
    estimate = (better - worse) / n

    def rejects(difference: float) -> bool:
        # The most probable share of ``worse`` among the distributions with this difference.
        b = -better - worse + (2 * n - better + worse) * difference
        c = -worse * difference * (1 - difference)
        share = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (better - worse - n * difference) ** 2 > Z**2 * max(0.0, variance)

    def bound(outside: float) -> float:
        inside = estimate
        for _ in range(_STEPS):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if rejects(middle) else (middle, outside)
        return inside

    return bound(-1.0), bound(1.0)


def constant_difference(values: Sequence[float], observations: int) -> Interval | None:
    """The score interval of differences that are all -1, all 0 or all 1; ``None`` for others.

    ``observations``: how many of them count as independent.
    """
    first = values[0]
    if set(values) != {first} or first not in (-1.0, 0.0, 1.0):
        return None
    low, high = tango(observations * (first > 0), observations * (first < 0), observations)
    return Interval(mean=first, low=low, high=high, n=len(values))


def differences(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> list[Outcome]:
    """``ours - theirs`` for each episode; ``None`` if one side is masked.

    Raises:
        ConfigError: the two sides are not the same episodes.
    """
    left, right = by_episode(ours), by_episode(theirs)
    if left.keys() != right.keys():
        lacking = len(left.keys() ^ right.keys())
        raise ConfigError(
            f"a paired comparison needs the same episodes on both sides, got {len(left)} and "
            f"{len(right)}, of which {lacking} are on one side only"
        )
    deltas = []
    for key, outcome in left.items():
        a, b = outcome.value, right[key].value
        value = None if a is None or b is None else a - b
        deltas.append(msgspec.structs.replace(outcome, value=value))
    return deltas


def by_episode(values: Sequence[Outcome]) -> dict[tuple[int, str, int, int], Outcome]:
    """Outcomes by run, template, seed, and number among those with the same three."""
    found: dict[tuple[int, str, int, int], Outcome] = {}
    repeats: dict[tuple[int, str, int], int] = {}
    for outcome in values:
        key = (outcome.run, outcome.template, outcome.seed)
        repeats[key] = repeats.get(key, -1) + 1
        found[*key, repeats[key]] = outcome
    return found


def _by_template(values: Sequence[Outcome]) -> list[list[float]]:
    found: dict[str, list[float]] = {}
    for outcome in values:
        found.setdefault(outcome.template, []).append(float(outcome.value or 0.0))
    return list(found.values())


def _design_effect(templates: Sequence[Sequence[float]], mean: float) -> float:
    """The ratio of the variance of the mean to its variance for independent values.

    At least 1, and at most what it is where all values of a template are equal.
    """
    count, n = len(templates), sum(map(len, templates))
    squares = sum((value - mean) ** 2 for values in templates for value in values)
    if count < 2 or squares == 0.0:
        return 1.0
    sums = sum(sum(value - mean for value in values) ** 2 for values in templates)
    effect = (sums * count / (count - 1)) / (squares * n / (n - 1))
    return min(max(1.0, effect), sum(len(values) ** 2 for values in templates) / n)
