"""Rank statistics: does a score put the right ones above the wrong ones, do two scores agree."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from swarm_ui.stats import Interval


def ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share their mean rank."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for place in order[at:end]:
            found[place] = (at + 1 + end) / 2
        at = end
    return found


def auc(scores: Sequence[float], right: Sequence[bool]) -> float | None:
    """Chance that a right one is scored above a wrong one; ties count half.

    ``None`` if all are right, or none.
    """
    good = sum(right)
    bad = len(right) - good
    if not good or not bad:
        return None
    total = math.fsum(rank for rank, ok in zip(ranks(scores), right, strict=True) if ok)
    return (total - good * (good + 1) / 2) / (good * bad)


def pearson(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Correlation; ``None`` if one of them does not vary."""
    if len(a) < 2:
        return None
    x, y = math.fsum(a) / len(a), math.fsum(b) / len(b)
    both = math.fsum((i - x) * (j - y) for i, j in zip(a, b, strict=True))
    spread = math.fsum((i - x) ** 2 for i in a) * math.fsum((j - y) ** 2 for j in b)
    return both / math.sqrt(spread) if spread > 1e-18 else None


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation; ``None`` if one of them does not vary."""
    return pearson(ranks(a), ranks(b))


def by_bootstrap(
    figure: Callable[[Sequence[int]], float | None],
    clusters: int,
    *,
    resamples: int = 200,
    seed: int = 0,
) -> Interval | None:
    """A figure with its 95 % percentile interval from drawing whole clusters anew.

    Messages of one episode hang together, so that episodes are drawn and not messages.

    Args:
        figure: of the clusters with these numbers, some of them more than once.
        clusters: how many there are.
    """
    whole = figure(range(clusters))
    if whole is None:
        return None
    rng = random.Random(seed)
    draws = (figure(rng.choices(range(clusters), k=clusters)) for _ in range(resamples))
    drawn = sorted(value for value in draws if value is not None)
    if not drawn:
        return Interval(mean=whole, low=-math.inf, high=math.inf, n=clusters)
    low, high = drawn[int(0.025 * len(drawn))], drawn[min(len(drawn) - 1, int(0.975 * len(drawn)))]
    return Interval(mean=whole, low=low, high=high, n=clusters)


def auc_by_bootstrap(
    scores: Sequence[float], right: Sequence[bool], clusters: Sequence[int]
) -> Interval | None:
    """:func:`auc` with its interval; ``clusters`` says which one each row belongs to."""
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
