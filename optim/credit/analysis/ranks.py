"""Rank statistics of scores: AUC and rank correlation, with bootstrap intervals."""

from __future__ import annotations

import math
import random
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from swarm_ui.stats import Interval, percentile_interval


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share their mean rank."""
    ordered = sorted(values)
    return [(bisect_left(ordered, v) + bisect_right(ordered, v) + 1) / 2 for v in values]


def auc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Probability that a right item has a higher score than a wrong one; ties count half.

    ``None`` if all are right, or none.
    """
    good = sum(right)
    bad = len(right) - good
    if not good or not bad:
        return None
    total = math.fsum(rank for rank, ok in zip(ranks(scores), right, strict=True) if ok)
    return (total - good * (good + 1) / 2) / (good * bad)


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; ``None`` if one of them does not vary."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return statistics.correlation(ranks(a), ranks(b))


def by_bootstrap(
    figure: Callable[[Sequence[int]], float | None],
    clusters: int,
    *,
    resamples: int = 200,
    seed: int = 0,
) -> Interval | None:
    """A figure with its 95 % percentile interval from resampling whole clusters.

    Messages of one episode are not independent, so episodes are resampled and not messages.

    Args:
        figure: computes the figure from clusters, given by number; a number may be repeated.
        clusters: number of clusters.
    """
    whole = figure(range(clusters))
    if whole is None:
        return None
    rng = random.Random(seed)
    draws = (figure(rng.choices(range(clusters), k=clusters)) for _ in range(resamples))
    drawn = [value for value in draws if value is not None] or [-math.inf, math.inf]
    return percentile_interval(whole, drawn, clusters)


def auc_by_bootstrap(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[int]
) -> Interval | None:
    """:func:`auc` with its interval; ``clusters`` names the cluster of each row."""
    place = {score: k for k, score in enumerate(sorted(set(scores)))}
    number = {cluster: k for k, cluster in enumerate(dict.fromkeys(clusters))}
    tallies: list[dict[int, list[int]]] = [{} for _ in number]
    for score, ok, cluster in zip(scores, right, clusters, strict=True):
        tallies[number[cluster]].setdefault(place[score], [0, 0])[not ok] += 1

    def figure(chosen: Sequence[int]) -> float | None:
        good, bad = [0] * len(place), [0] * len(place)
        for cluster in chosen:
            for k, (g, b) in tallies[cluster].items():
                good[k] += g
                bad[k] += b
        pairs = sum(good) * sum(bad)
        won, below = 0.0, 0
        for g, b in zip(good, bad, strict=True):
            won += g * (below + b / 2)
            below += b
        return won / pairs if pairs else None

    return by_bootstrap(figure, len(number))
