"""Sums and maxima over all orders of n nodes, by dynamic programming over the 2^n sets of nodes.

A set is an integer whose bit i says that node i has been placed. A set is a sufficient state:
the next node depends on the set of placed nodes, not on their order.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

MAX_EXACT = 12
"""Maximum number of nodes for exact sums over orders (4096 sets)."""


@lru_cache(maxsize=MAX_EXACT + 1)
def _members(n: int) -> Tensor:
    """Mask of the nodes in each set, shape ``[2^n, n]``."""
    sets = torch.arange(2**n)[:, None]
    return ((sets >> torch.arange(n)) & 1).bool()


@lru_cache(maxsize=MAX_EXACT + 1)
def _layers(n: int) -> tuple[Tensor, ...]:
    """Sets by size, smallest first; element k has shape ``[binomial(n, k)]``."""
    size = _members(n).sum(1)
    return tuple((size == k).nonzero()[:, 0] for k in range(n + 1))


def _choice(scores: Tensor) -> Tensor:
    """Log-probability that node i is placed next after set S, shape ``[2^n, n]``."""
    inside = _members(len(scores))
    # The full set has no node left; its row is never read, but must not make NaN gradients.
    left = torch.where(inside, -torch.inf, scores)[:-1].logsumexp(1)
    left = torch.cat([left, left.new_zeros(1)])
    return torch.where(inside, -torch.inf, scores - left[:, None])


def _arrivals(layer: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """For each set of a layer, its members, and the sets without each member, ``[sets, size]``."""
    size = int(_members(n)[layer[0]].sum())
    last = _members(n)[layer].nonzero()[:, 1].view(-1, size)
    return last, layer[:, None] - (1 << last)


def edge_set_log_prob(scores: Tensor, terms: Tensor, present: Tensor) -> Tensor:
    """Log-probability of edge sets, summed over all orders, ``[B]``; ``-inf`` for a cycle.

    Args:
        scores: Plackett-Luce scores, ``[n]``.
        terms: Bernoulli log-probability of edge (i, j) being present or absent, given that i
            precedes j; 0 if there is no candidate; ``[B, n, n]``.
        present: whether edge (i, j) is in the set, ``[B, n, n]`` bool.
    """
    n, batch = len(scores), len(terms)
    inside = _members(n).to(scores.dtype)
    # Node i may come after S only if it sends nothing to a node already in S.
    blocked = (inside @ present.mT.to(scores.dtype)) > 0
    step = torch.where(blocked, -torch.inf, _choice(scores) + inside @ terms)
    values = scores.new_full((batch, 2**n), -torch.inf)
    values = torch.cat([scores.new_zeros(batch, 1), values[:, 1:]], 1)
    for layer in _layers(n)[1:]:
        last, before = _arrivals(layer, n)
        options = values[:, before] + step[:, before, last]
        values = values.index_copy(1, layer, _logsumexp(options))
    return values[:, -1]


def best_order(scores: Tensor, terms: Tensor) -> list[int]:
    """The order with the largest sum of its log-probability and the ``terms`` of forward pairs."""
    n = len(scores)
    step = _choice(scores) + _members(n).to(scores.dtype) @ terms
    values = scores.new_full((2**n,), -torch.inf)
    values[0] = 0.0
    came_last = torch.zeros(2**n, dtype=torch.long)
    for layer in _layers(n)[1:]:
        last, before = _arrivals(layer, n)
        options = values[before] + step[before, last]
        # Of equal options the greatest node comes last, so that ties keep the nodes sorted.
        flipped = options.flip(1).argmax(1)
        best = options.shape[1] - 1 - flipped
        row = torch.arange(len(layer))
        values[layer] = options[row, best]
        came_last[layer] = last[row, best]
    order: list[int] = []
    at = 2**n - 1
    while at:
        node = int(came_last[at])
        order.append(node)
        at -= 1 << node
    return order[::-1]


def _logsumexp(values: Tensor) -> Tensor:
    """Like ``logsumexp(-1)``, without NaN gradients for rows that are all ``-inf``."""
    empty = torch.isneginf(values).all(-1)
    safe = torch.where(empty[..., None], 0.0, values).logsumexp(-1)
    return torch.where(empty, -torch.inf, safe)
