"""Counting proposals: rules that depend on what was proposed, never on who stands where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import blake2b
from typing import TypeVar

import msgspec

from swarm_ui.action import Action, ActionKey

K = TypeVar("K", bound=Hashable)

_POINTING = frozenset({"click", "double_tap", "long_press", "input_text", "select"})


def candidates(proposals: Sequence[Action]) -> dict[ActionKey, Action]:
    """The distinct acts, each with the wording most used for it (ties: the first by text)."""
    wordings: dict[ActionKey, Counter[Action]] = {}
    for action in proposals:
        wordings.setdefault(action.key, Counter())[action] += 1
    chosen = {
        key: min(counts, key=lambda action: (-counts[action], action.json()))
        for key, counts in wordings.items()
    }
    return dict(sorted(chosen.items(), key=lambda item: item[1].json()))


def best(weights: Mapping[K, float], seed: int) -> K:
    """The heaviest; among equals the one that the seed favours, whatever their order is.

    The favour is a hash of the seed and the candidate, so neither the graph, nor the order of the
    nodes, nor who proposed it first plays a part.
    """
    top = max(weights.values())
    tied = [key for key, weight in weights.items() if weight == top]
    return tied[0] if len(tied) == 1 else min(tied, key=lambda key: _favour(seed, key))


def _favour(seed: int, key: Hashable) -> bytes:
    text = msgspec.json.encode((seed, key))
    return blake2b(text, digest_size=8).digest()


def nearest_top(
    acts: Mapping[ActionKey, Action], weights: Mapping[ActionKey, float], seed: int
) -> ActionKey:
    """The heaviest; among equals the act on the first element of the screen, acts without one
    last; then as :func:`best`."""
    top = max(weights.values())
    tied = [key for key, weight in weights.items() if weight == top]
    places = {key: acts[key].index for key in tied}
    first = min((place for place in places.values() if place is not None), default=None)
    return best({key: 1.0 for key in tied if places[key] == first}, seed)


def exact(proposals: Sequence[Action], seed: int) -> ActionKey:
    """The act proposed most often."""
    return best(Counter(action.key for action in proposals), seed)


def hierarchical(proposals: Sequence[Action], seed: int) -> ActionKey:
    """The rule of the paper's released code: most common action type, among those the most
    common element, among those the most common text; then the act most often proposed."""
    left = list(proposals)
    levels: tuple[Callable[[Action], str | int | None], ...] = (
        lambda action: action.action_type,
        lambda action: action.index if action.action_type in _POINTING else None,
        lambda action: action.key[4] if action.action_type == "input_text" else None,
    )
    for level in levels:
        winner = best(Counter(level(action) for action in left), seed)
        left = [action for action in left if level(action) == winner]
    return exact(left, seed)
