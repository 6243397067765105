"""Selects the winner of a vote, with an explicit rule for ties."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar

import msgspec

K = TypeVar("K", bound=Hashable)
TieRule = Callable[[Sequence[K]], K]
"""Picks one of several candidates of equal weight, in the order of the weights."""


def winner(weights: Mapping[K, float], ties: TieRule[K]) -> K:
    """The candidate with the largest weight; ``ties`` chooses among equal ones."""
    top = max(weights.values())
    tied = [key for key, weight in weights.items() if weight == top]
    return tied[0] if len(tied) == 1 else ties(tied)


def first(tied: Sequence[K]) -> K:
    """Tie rule: choose the candidate that is first in the sequence."""
    return tied[0]


def by_seed(seed: int) -> Callable[[Sequence[K]], K]:
    """Tie rule: choose the candidate with the smallest hash of seed and candidate.

    The winner therefore does not depend on the graph, on the order of the nodes, or on who made a
    proposal first.
    """

    def rank(key: K) -> bytes:
        return blake2b(msgspec.json.encode((seed, key)), digest_size=8).digest()

    return lambda tied: min(tied, key=rank)
