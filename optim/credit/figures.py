"""How well scores separate right from wrong: AUC and calibration, with bootstrap intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from swarm_ui.stats import Interval, percentile_interval, wilson

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


def inside_auc(rows: Sequence[tuple[int, object, bool, float]]) -> Interval | None:
    """Probability that, of a right and a wrong item at the same place, the right one has the higher
    score. ``rows``: cluster, place, right, score. ``None``: no place has both."""
    places: dict[object, tuple[int, list[float], list[float]]] = {}
    for cluster, place, right, score in rows:
        places.setdefault(place, (cluster, [], []))[1 + right].append(score)  # type: ignore[union-attr]
    won: dict[int, tuple[float, int]] = {}
    for cluster, wrong, good in places.values():
        if wrong and good:
            wins = sum((a > b) + 0.5 * (a == b) for a in good for b in wrong)
            sums, count = won.get(cluster, (0.0, 0))
            won[cluster] = (sums + wins, count + len(good) * len(wrong))
    return ratio_by_bootstrap(list(won.values()))


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """The messages with scores in one interval."""

    low: float
    high: float
    score: float
    """Mean score of the messages in the bin."""
    right: Interval
    """Share of right messages, according to the reference."""


def reliability(scores: Sequence[float], right: Sequence[bool], bins: int = 10) -> tuple[Bin, ...]:
    """The share of right messages in each of ``bins`` score intervals of equal width; empty
    intervals are left out.

    ``scores`` are in [0, 1].
    """
    members: dict[int, list[tuple[float, bool]]] = {}
    for pair in zip(scores, right, strict=True):
        members.setdefault(min(bins - 1, int(pair[0] * bins)), []).append(pair)
    found = []
    for number, inside in sorted(members.items()):
        share = wilson([label for _, label in inside])
        assert share is not None
        mean = math.fsum(score for score, _ in inside) / len(inside)
        low, high = number / bins, (number + 1) / bins
        found.append(Bin(low=low, high=high, score=mean, right=share))
    return tuple(found)


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: the mean distance between the score and the share of right
    messages in a bin, weighted by the size of the bin. ``None`` without bins."""
    total = sum(cell.right.n for cell in bins)
    if not total:
        return None
    return math.fsum(abs(cell.score - cell.right.mean) * cell.right.n for cell in bins) / total
