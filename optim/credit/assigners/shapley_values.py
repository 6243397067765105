"""Shapley values of any game: what each player adds, on average over all orders of arrival.

Exact over all coalitions for few players; for more, from random orders, each taken together with
its reverse (antithetic pairs: what is early in one is late in the other, so that their mean varies
less). Both give values that sum to what all are worth together minus what nobody is worth.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Sequence
from itertools import combinations
from typing import TypeVar

import msgspec

from swarm_ui.errors import ConfigError

Coalition = frozenset[str]
Worth = Callable[[Sequence[Coalition]], Awaitable[Sequence[float | None]]]
"""What each of these coalitions is worth; ``None``: it could not be found out."""

T = TypeVar("T")
MAX_EXACT = 6


class ShapleyValues(msgspec.Struct, frozen=True, kw_only=True):
    """What each player adds."""

    values: dict[str, float]
    errors: dict[str, float] | None = None
    """Standard errors; ``None`` if the values are exact."""
    total: float
    """Worth of all players together minus that of nobody: the sum of the values."""


async def shapley(
    players: Sequence[str],
    worth: Worth,
    rng: random.Random,
    *,
    exact_up_to: int = MAX_EXACT,
    pairs: int = 16,
) -> ShapleyValues | None:
    """Shapley values of all players.

    Args:
        players: by name, each once.
        worth: asked for many coalitions at a time; may be asked for one twice.
        rng: draws the orders, if there are more players than ``exact_up_to``.
        exact_up_to: so many players are done exactly, with all ``2 ** n`` coalitions.
        pairs: of orders, at least 2 (one pair says nothing about its error).

    Returns:
        ``None`` if a coalition's worth could not be found out (of sampled orders, if fewer than
        two pairs are left).
    """
    if len(set(players)) != len(players):
        raise ConfigError(f"shapley: a player is named twice: {', '.join(players)}")
    if pairs < 2:
        raise ConfigError(f"shapley: pairs must be at least 2, got {pairs}")
    if len(players) <= exact_up_to:
        return await _exact(players, worth)
    return await _sampled(players, worth, rng, pairs)


async def _exact(players: Sequence[str], worth: Worth) -> ShapleyValues | None:
    n = len(players)
    coalitions = [frozenset(c) for size in range(n + 1) for c in combinations(players, size)]
    found = dict(zip(coalitions, await worth(coalitions), strict=True))
    known = {c: v for c, v in found.items() if v is not None}
    if len(known) < len(coalitions):
        return None
    values = {
        player: math.fsum(
            (known[c | {player}] - known[c]) / (n * math.comb(n - 1, len(c)))
            for c in coalitions
            if player not in c
        )
        for player in players
    }
    return ShapleyValues(values=values, total=known[coalitions[-1]] - known[coalitions[0]])


async def _sampled(
    players: Sequence[str], worth: Worth, rng: random.Random, pairs: int
) -> ShapleyValues | None:
    orders: list[tuple[str, ...]] = []
    for _ in range(pairs):
        order = rng.sample(list(players), len(players))
        orders += [tuple(order), tuple(reversed(order))]
    coalitions = _unique([frozenset(o[:k]) for o in orders for k in range(len(players) + 1)])
    found = dict(zip(coalitions, await worth(coalitions), strict=True))
    added = [_marginals(order, found) for order in orders]
    means = [
        {p: (one[p] + other[p]) / 2 for p in players}
        for one, other in zip(added[::2], added[1::2], strict=True)
        if one is not None and other is not None
    ]
    everybody, nobody = found[frozenset(players)], found[frozenset()]
    if len(means) < 2 or everybody is None or nobody is None:
        return None
    m = len(means)
    values = {p: math.fsum(mean[p] for mean in means) / m for p in players}
    errors = {
        p: math.sqrt(math.fsum((mean[p] - values[p]) ** 2 for mean in means) / (m - 1) / m)
        for p in players
    }
    return ShapleyValues(values=values, errors=errors, total=everybody - nobody)


def _marginals(
    order: Sequence[str], found: dict[Coalition, float | None]
) -> dict[str, float] | None:
    """What each player adds when they come in this order."""
    worths = [found[frozenset(order[:k])] for k in range(len(order) + 1)]
    known = [w for w in worths if w is not None]
    if len(known) < len(worths):
        return None
    return {p: known[k + 1] - known[k] for k, p in enumerate(order)}


def _unique(items: Sequence[T]) -> list[T]:
    return list(dict.fromkeys(items))
