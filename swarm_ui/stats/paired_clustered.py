"""Rates and differences of policies on the same episodes, clustered by task template."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats.intervals import Interval, Outcome, Z, percentile_interval, wilson

RESAMPLES = 2000
"""Number of resamples of a bootstrap, which are the same for equal outcomes."""
_KEPT = 512
"""Number of bootstraps whose result is kept."""
_STEPS = 60
"""Bisections of [-1, 1]: enough for every digit of a float."""


def clustered_mean(values: Sequence[Outcome]) -> Interval | None:
    """Mean outcome with a percentile interval from a hierarchical bootstrap; ``None`` if nothing is
    left unmasked.

    Each resample draws, with replacement, training runs, then templates, then the episodes of each
    template that was drawn. All drawn runs are evaluated on the same drawn episodes. The interval
    is about new templates; with one template, about its episodes. Few runs say little about the
    variance between runs; see :func:`over_seeds`. If all outcomes are 1 or all are 0, every
    resample is the same, and the interval is Wilson's, of as many observations as there are
    templates (or episodes, with one template).
    """
    kept = {o.value for o in values if o.value is not None}
    if kept in ({0.0}, {1.0}):
        same = wilson([*kept] * _observations(values))
        n = sum(o.value is not None for o in values)
        return None if same is None else msgspec.structs.replace(same, n=n)
    return _clustered(values)


def paired_difference(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> Interval | None:
    """Mean of ``ours - theirs`` on the same episodes: the interval of every table and report.

    An episode that is masked on one side is left out of both. Several training runs, and outcomes
    other than 0 and 1, have the interval of :func:`clustered_difference`. Else it is Tango's score
    interval, which is valid for few episodes, and also if the two sides never or always differ. Its
    counts are divided by the design effect of the templates (Rao and Scott, 1992), which is
    estimated from the differences and is at least 1. If all differences are equal, it cannot be
    estimated, and each template counts as one observation. Of one template, the interval is about
    its episodes. Raises ``ConfigError`` if the two sides are not the same episodes.
    """
    both = [*ours, *theirs]
    if len({o.run for o in both}) > 1 or not {o.value for o in both} <= {None, 0.0, 1.0}:
        return clustered_difference(ours, theirs)
    templates: dict[str, list[float]] = {}
    for delta in differences(ours, theirs):
        if delta.value is not None:
            templates.setdefault(delta.template, []).append(float(delta.value))
    values = list(chain.from_iterable(templates.values()))
    if not values:
        return None
    n = len(values)
    share = 1 / _design_effect([*templates.values()], sum(values) / n)
    if len(set(values)) == 1 and len(templates) > 1:
        share = len(templates) / n
    low, high = tango(share * values.count(1.0), share * values.count(-1.0), share * n)
    return Interval(mean=sum(values) / n, low=low, high=high, n=n)


def clustered_difference(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> Interval | None:
    """Mean of ``ours - theirs``, paired by run, template and episode, with the interval of
    :func:`clustered_mean`.

    An episode that is masked on one side is left out of both. If all differences are equal, the
    interval is Tango's, with the observations of :func:`clustered_mean`. Raises ``ConfigError`` if
    the sides have other episodes.
    """
    deltas = differences(ours, theirs)
    values = [float(o.value) for o in deltas if o.value is not None]
    if values and set(values) in ({-1.0}, {0.0}, {1.0}):
        n, first = _observations(deltas), values[0]
        low, high = tango(n * (first > 0), n * (first < 0), n)
        return Interval(mean=first, low=low, high=high, n=len(values))
    return _clustered(deltas)


def _observations(values: Sequence[Outcome]) -> int:
    """Number of outcomes that count as independent if all are equal: the templates, because a
    second episode of a template may say nothing new; of one template, the episodes. All runs play
    the same episodes."""
    kept = [key for key, outcome in by_episode(values).items() if outcome.value is not None]
    templates = {template for _, template, _, _ in kept}
    return len(templates) if len(templates) > 1 else len({key[1:] for key in kept})


def _clustered(values: Sequence[Outcome]) -> Interval | None:
    templates: dict[str, dict[tuple[int, int], list[tuple[int, float]]]] = {}
    for (run, template, episode, repeat), outcome in by_episode(values).items():
        if outcome.value is not None:
            episodes = templates.setdefault(template, {})
            episodes.setdefault((episode, repeat), []).append((run, float(outcome.value)))
    kept = [o for o in values if o.value is not None]
    if not kept:
        return None
    runs = sorted({o.run for o in kept})

    @cache
    def clusters(drawn: tuple[int, ...]) -> list[list[complex]]:
        # Sum (real) and number (imaginary) of the outcomes of the drawn runs, by template and
        # episode. Complex numbers, because both are then added at once.
        return [
            [
                complex(
                    sum(v * drawn.count(r) for r, v in cell), sum(drawn.count(r) for r, _ in cell)
                )
                for cell in episodes.values()
            ]
            for episodes in templates.values()
        ]

    mean = sum(float(o.value or 0.0) for o in kept) / len(kept)
    if len(runs) == 1:
        one_run = tuple(tuple(cell.real for cell in cluster) for cluster in clusters((runs[0],)))
        low, high = _resampled_bounds(one_run)
        return Interval(mean=mean, low=low, high=high, n=len(kept))
    rng, means = random.Random(0), []
    for _ in range(RESAMPLES):
        drawn = tuple(sorted(rng.choices(runs, k=len(runs))))
        total = 0j
        for cluster in rng.choices(clusters(drawn), k=len(templates)):
            chosen = cluster if len(cluster) == 1 else rng.choices(cluster, k=len(cluster))
            total = sum(chosen, total)
        if total.imag:
            means.append(total.real / total.imag)
    return percentile_interval(mean, means, len(kept))


@lru_cache(maxsize=_KEPT)  # a run writes its table after each arm, a report an interval often
def _resampled_bounds(clusters: tuple[tuple[float, ...], ...]) -> tuple[float, float]:
    """Percentiles of the means of resamples of clusters and of the values of each drawn cluster.

    If a cluster has few different values, the sum of its draws is drawn from its exact
    distribution, which takes one random number instead of one for each value.
    """
    rng, means = random.Random(0), list[float]()
    sums = [
        (values, *(_sum_distribution(values) if len(set(values)) <= 3 else ([], [])))
        for values in clusters
    ]
    for _ in range(RESAMPLES):
        total, count = 0.0, 0
        for values, support, cumulative in rng.choices(sums, k=len(sums)):
            if not support:
                total += sum(rng.choices(values, k=len(values)))
            elif len(support) == 1:
                total += support[0]
            else:
                total += support[min(bisect(cumulative, rng.random()), len(support) - 1)]
            count += len(values)
        means.append(total / count)
    found = percentile_interval(0.0, means, len(means))
    return found.low, found.high


def _sum_distribution(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The sums of ``len(values)`` draws with replacement, and their cumulative probabilities."""
    single = {value: n / len(values) for value, n in Counter(values).items()}
    sums = {0.0: 1.0}
    for _ in values:
        longer: dict[float, float] = {}
        for total, p in sums.items():
            for value, q in single.items():
                longer[total + value] = longer.get(total + value, 0.0) + p * q
        sums = longer
    support = sorted(sums)
    return support, list(accumulate(sums[total] for total in support))


def tango(better: float, worse: float, n: float) -> tuple[float, float]:
    """Tango's 95 % score interval of the difference of two paired proportions, in [-1, 1].

    It contains the differences that the score test does not reject. For a difference of 0, this is
    McNemar's test without continuity correction. Source: T. Tango, Statistics in Medicine 17
    (1998), 891-908.

    Of ``n`` pairs, in ``better`` only the first succeeded, in ``worse`` only the second. The three
    need not be whole numbers.
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


def differences(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> list[Outcome]:
    """``ours - theirs`` for each episode; ``None`` if one side is masked."""
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


def _design_effect(templates: Sequence[Sequence[float]], mean: float) -> float:
    """The variance of the mean by that of independent values; at least 1, and at most what it is
    where all values of a template are equal."""
    count, n = len(templates), sum(map(len, templates))
    squares = sum((value - mean) ** 2 for values in templates for value in values)
    if count < 2 or squares == 0.0:
        return 1.0
    sums = sum(sum(value - mean for value in values) ** 2 for values in templates)
    effect = (sums * count / (count - 1)) / (squares * n / (n - 1))
    return min(max(1.0, effect), sum(len(values) ** 2 for values in templates) / n)
