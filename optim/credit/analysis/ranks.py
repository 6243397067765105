"""Rank statistics of scores: AUC and rank correlation, with bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from swarm_ui.stats import Interval, percentile_interval

Floats = NDArray[np.float64]


def ranks(values: Sequence[float]) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    ordered = np.sort(values)
    return (ordered.searchsorted(values, "left") + ordered.searchsorted(values, "right") + 1) / 2


def auc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Probability that a right item has a higher score than a wrong one; ties count half.

    ``None`` if all are right, or none.
    """
    ok = np.asarray(right, bool)
    good, bad = int(ok.sum()), int((~ok).sum())
    if not good or not bad:
        return None
    return float(ranks(scores)[ok].sum() - good * (good + 1) / 2) / (good * bad)


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; ``None`` if one of them does not vary."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def by_bootstrap(figure: Callable[[Sequence[int]], float | None], clusters: int) -> Interval | None:
    """A figure with its 95 % percentile interval from 200 resamples of whole clusters.

    Messages of one episode are not independent, so episodes are resampled and not messages.

    Args:
        figure: computes the figure from the numbers of the drawn clusters; ``None``: undefined.
        clusters: number of clusters.
    """
    whole = figure(range(clusters))
    if whole is None:
        return None
    rng = random.Random(0)
    draws = (figure(rng.choices(range(clusters), k=clusters)) for _ in range(200))
    drawn = [value for value in draws if value is not None] or [-math.inf, math.inf]
    return percentile_interval(whole, drawn, clusters)


def ratio_by_bootstrap(parts: Sequence[tuple[float, int]]) -> Interval | None:
    """A sum over the number of its terms, with its interval; ``parts`` has both for each
    cluster."""

    def ratio(chosen: Sequence[int]) -> float | None:
        terms = sum(parts[k][1] for k in chosen)
        return math.fsum(parts[k][0] for k in chosen) / terms if terms else None

    return by_bootstrap(ratio, len(parts))


def auc_by_bootstrap(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[int]
) -> Interval | None:
    """:func:`auc` with its interval; ``clusters`` names the cluster of each row."""
    values, place = np.unique(np.asarray(scores, float), return_inverse=True)
    names, number = np.unique(np.asarray(clusters, int), return_inverse=True)
    tallies = np.zeros((2, len(names), len(values)))
    np.add.at(tallies, (np.asarray(right, int), number, place), 1.0)

    def figure(chosen: Sequence[int]) -> float | None:
        bad, good = tallies[:, list(chosen)].sum(1)
        pairs = good.sum() * bad.sum()
        return float((good * (bad.cumsum() - bad / 2)).sum() / pairs) if pairs else None

    return by_bootstrap(figure, len(names))
