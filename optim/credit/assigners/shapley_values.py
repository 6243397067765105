"""Shapley values of any game: what each player adds, on average over all permutations.

They are exact, over all coalitions, for few players. For more players they are estimated from
random permutations, each with its reverse (antithetic pairs, which reduce the variance). In both
cases the values sum to the worth of all players minus the worth of the empty coalition.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Sequence
from itertools import combinations
from statistics import fmean, stdev

import msgspec

from swarm_ui.errors import ConfigError

Coalition = frozenset[str]
Worth = Callable[[Sequence[Coalition]], Awaitable[Sequence[float | None]]]
"""Gives the worth of each coalition; ``None``: it is unknown."""

MAX_EXACT = 6


class ShapleyValues(msgspec.Struct, frozen=True, kw_only=True):
    """The Shapley value of each player."""

    values: dict[str, float]
    errors: dict[str, float] | None = None
    """Standard errors; ``None`` if the values are exact."""
    total: float
    """The sum of the values: the worth of all players minus that of the empty coalition."""


async def shapley(
    players: Sequence[str],
    worth: Worth,
    rng: random.Random,
    *,
    exact_up_to: int = MAX_EXACT,
    pairs: int = 16,
) -> ShapleyValues | None:
    """Shapley values of all players; ``None`` if too few worths are known.

    Args:
        players: by name, each once.
        worth: called with many coalitions at a time.
        rng: draws the permutations, if there are more players than ``exact_up_to``.
        exact_up_to: the largest number of players for an exact result from all ``2 ** n``
            coalitions, which must all be known.
        pairs: of permutations; at least 2, because one pair has no standard error. At least two
            must be known.
    """
    if len(set(players)) != len(players):
        raise ConfigError(f"shapley: two players have the same name: {', '.join(players)}")
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
    prefixes = [frozenset(order[:k]) for order in orders for k in range(len(players) + 1)]
    coalitions = list(dict.fromkeys(prefixes))
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
    values = {p: fmean(mean[p] for mean in means) for p in players}
    errors = {p: stdev(mean[p] for mean in means) / math.sqrt(len(means)) for p in players}
    return ShapleyValues(values=values, errors=errors, total=everybody - nobody)


def _marginals(
    order: Sequence[str], found: dict[Coalition, float | None]
) -> dict[str, float] | None:
    """What each player adds to those before it in this permutation."""
    worths = [found[frozenset(order[:k])] for k in range(len(order) + 1)]
    known = [w for w in worths if w is not None]
    if len(known) < len(worths):
        return None
    return {p: known[k + 1] - known[k] for k, p in enumerate(order)}
