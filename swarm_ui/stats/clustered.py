"""Intervals clustered by task template: a hierarchical bootstrap."""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate

import msgspec

from swarm_ui.stats.interval import Interval, Outcome, percentile_interval, wilson
from swarm_ui.stats.paired import (
    by_episode,
    constant_difference,
    differences,
    score_difference,
)

_KEPT = 512
"""Number of bootstraps whose result is kept."""


def clustered_mean(
    values: Sequence[Outcome], *, seed: int = 0, resamples: int = 2000
) -> Interval | None:
    """Mean outcome with a percentile interval from a hierarchical bootstrap.

    Each resample draws, with replacement, training runs, then templates, then the episodes of each
    template that was drawn. All drawn runs are evaluated on the same drawn episodes. With one run
    and one episode in each template, this is the plain bootstrap over episodes.

    The interval is about new templates. If all episodes are of one template, it is about new
    episodes of that template. Few runs say little about the variance between runs; see
    :func:`over_seeds`. If all outcomes are 1 or all are 0, every resample is the same, and the
    interval is Wilson's. Each template then counts as one observation, or, if all episodes are of
    one template, each episode, in however many runs it was played.

    Args:
        values: outcomes; masked ones are left out.
        seed: the seed of the resamples.
        resamples: number of resamples.

    Returns:
        ``None`` if nothing is left unmasked.
    """
    kept = {o.value for o in values if o.value is not None}
    if kept in ({0.0}, {1.0}):
        same = wilson([*kept] * _observations(values))
        n = sum(o.value is not None for o in values)
        return None if same is None else msgspec.structs.replace(same, n=n)
    return _clustered(values, seed, resamples)


def paired_difference(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> Interval | None:
    """Mean of ``ours - theirs`` on the same episodes: the interval of every table and report.

    It is that of :func:`~swarm_ui.stats.score_difference` for one training run and outcomes of 0
    and 1, and that of :func:`clustered_difference` for several runs or other scores.

    Raises:
        ConfigError: the two sides are not the same episodes.
    """
    both = [*ours, *theirs]
    one_run = len({o.run for o in both}) == 1
    if one_run and {o.value for o in both} <= {None, 0.0, 1.0}:
        return score_difference(ours, theirs)
    return clustered_difference(ours, theirs)


def clustered_difference(
    ours: Sequence[Outcome], theirs: Sequence[Outcome], *, seed: int = 0, resamples: int = 2000
) -> Interval | None:
    """Mean of ``ours - theirs``, paired by run, template and episode, with an interval.

    The interval is that of :func:`clustered_mean`. An episode that is masked on one side is left
    out of both. If all differences are equal, the interval is that of
    :func:`~swarm_ui.stats.score_difference`, with the observations of :func:`clustered_mean`.

    Raises:
        ConfigError: the two sides are not the same episodes.
    """
    deltas = differences(ours, theirs)
    values = [float(o.value) for o in deltas if o.value is not None]
    equal = constant_difference(values, _observations(deltas)) if values else None
    return equal or _clustered(deltas, seed, resamples)


def _observations(values: Sequence[Outcome]) -> int:
    """Number of outcomes that count as independent if all outcomes are equal.

    It is the number of templates, because a second episode of a template may say nothing new. If
    all episodes are of one template, it is the number of episodes. Runs do not count, because all
    of them play the same episodes.
    """
    kept = [key for key, outcome in by_episode(values).items() if outcome.value is not None]
    templates = {template for _, template, _, _ in kept}
    return len(templates) if len(templates) > 1 else len({key[1:] for key in kept})


def _clustered(values: Sequence[Outcome], seed: int, resamples: int) -> Interval | None:
    """The hierarchical bootstrap of :func:`clustered_mean`."""
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
        """Sum (real) and number (imaginary) of the outcomes of the drawn runs, by template and
        episode. Complex numbers, because both are then added at once."""
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
        low, high = _resampled_bounds(one_run, seed, resamples)
        return Interval(mean=mean, low=low, high=high, n=len(kept))
    rng, means = random.Random(seed), []
    for _ in range(resamples):
        drawn = tuple(sorted(rng.choices(runs, k=len(runs))))
        total = 0j
        for cluster in rng.choices(clusters(drawn), k=len(templates)):
            chosen = cluster if len(cluster) == 1 else rng.choices(cluster, k=len(cluster))
            total = sum(chosen, total)
        if total.imag:
            means.append(total.real / total.imag)
    return percentile_interval(mean, means, len(kept))


@lru_cache(maxsize=_KEPT)
def _resampled_bounds(
    clusters: tuple[tuple[float, ...], ...], seed: int, resamples: int
) -> tuple[float, float]:
    """The percentiles of :func:`_resampled_means`.

    The result is cached, because a run writes its table again after each arm, and a report shows
    the same interval in several places.
    """
    means = _resampled_means(clusters, random.Random(seed), resamples)
    found = percentile_interval(0.0, means, len(means))
    return found.low, found.high


def _resampled_means(
    clusters: Sequence[Sequence[float]], rng: random.Random, resamples: int
) -> list[float]:
    """Means of resamples of clusters and of the values of each drawn cluster.

    If a cluster has few different values, the sum of its draws is drawn from its exact
    distribution, which takes one random number instead of one for each value.
    """
    sums = [
        (values, *(_sum_distribution(values) if len(set(values)) <= 3 else ([], [])))
        for values in clusters
    ]
    means = []
    for _ in range(resamples):
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
    return means


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
