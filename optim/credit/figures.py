"""How well scores separate right from wrong: AUC and calibration, with bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

from swarm_ui.stats import Interval, percentile_interval


def auc_by_bootstrap(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[int]
) -> Interval | None:
    """Probability that a right item has a higher score than a wrong one, with its interval.

    Ties count half. ``clusters`` names the cluster of each item. ``None`` if all are right, or
    none.
    """
    values, place = np.unique(np.asarray(scores, float), return_inverse=True)
    names, number = np.unique(np.asarray(clusters, int), return_inverse=True)
    tallies = np.zeros((2, len(names), len(values)))
    np.add.at(tallies, (np.asarray(right, int), number, place), 1.0)

    def figure(chosen: Sequence[int]) -> float | None:
        bad, good = tallies[:, list(chosen)].sum(1)
        pairs = good.sum() * bad.sum()
        return float((good * (bad.cumsum() - bad / 2)).sum() / pairs) if pairs else None

    return _by_bootstrap(figure, len(names))


def inside_auc(rows: Sequence[tuple[int, object, bool, float]]) -> Interval | None:
    """Probability that, of a right and a wrong item at the same place, the right one has the higher
    score. ``rows``: cluster, place, right, score. ``None``: no place has both."""
    places: dict[object, tuple[int, list[float], list[float]]] = {}
    for cluster, place, right, score in rows:
        places.setdefault(place, (cluster, [], []))[1 + right].append(score)  # type: ignore[union-attr]
    won: dict[int, tuple[float, int]] = {}
    for cluster, wrong, good in places.values():
        wins = sum((a > b) + 0.5 * (a == b) for a in good for b in wrong)
        sums, count = won.get(cluster, (0.0, 0))
        won[cluster] = (sums + wins, count + len(good) * len(wrong))
    parts = [part for part in won.values() if part[1]]

    def figure(chosen: Sequence[int]) -> float | None:
        pairs = sum(parts[k][1] for k in chosen)
        return math.fsum(parts[k][0] for k in chosen) / pairs if pairs else None

    return _by_bootstrap(figure, len(parts))


def calibration_error(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Expected calibration error: the mean distance between score and share of right items in 10
    bins of equal width on [0, 1], weighted by the size of the bins. ``None`` without items."""
    if not scores:
        return None
    values = np.asarray(scores, float)
    place = np.minimum((values * 10).astype(int), 9)
    gaps = np.bincount(place, values - np.asarray(right, float))
    return float(np.abs(gaps).sum() / len(values))


def _by_bootstrap(
    figure: Callable[[Sequence[int]], float | None], clusters: int
) -> Interval | None:
    """A figure with its 95 % percentile interval from 200 resamples of whole clusters, because the
    messages of one episode are not independent."""
    whole = figure(range(clusters))
    if whole is None:
        return None
    rng = random.Random(0)
    draws = (figure(rng.choices(range(clusters), k=clusters)) for _ in range(200))
    drawn = [value for value in draws if value is not None] or [-math.inf, math.inf]
    return percentile_interval(whole, drawn, clusters)
