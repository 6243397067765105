"""Voting rules over proposed actions. None of them depends on the order of the proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from swarm_ui.action import Action, ActionKey
from swarm_ui.voting import TieRule, by_seed, winner

_POINTING = frozenset({"click", "double_tap", "long_press", "input_text", "select"})


def candidates(proposals: Sequence[Action]) -> dict[ActionKey, Action]:
    """The distinct actions, each in its most frequent wording (ties: the alphabetically first)."""
    wordings: dict[ActionKey, Counter[Action]] = {}
    for action in proposals:
        wordings.setdefault(action.key, Counter())[action] += 1
    chosen = {
        key: min(counts, key=lambda action: (-counts[action], action.json()))
        for key, counts in wordings.items()
    }
    return dict(sorted(chosen.items(), key=lambda item: item[1].json()))


def top_of_screen(acts: Mapping[ActionKey, Action], seed: int) -> TieRule[ActionKey]:
    """Tie rule: the action on the first element of the screen; those without an element come last.
    Remaining ties are broken by the seed."""

    def pick(tied: Sequence[ActionKey]) -> ActionKey:
        places = {key: acts[key].index for key in tied}
        top = min((place for place in places.values() if place is not None), default=None)
        return by_seed(seed)([key for key in tied if places[key] == top])

    return pick


def exact(proposals: Sequence[Action], seed: int) -> ActionKey:
    """The act proposed most often."""
    return winner(Counter(action.key for action in proposals), by_seed(seed))


def hierarchical(proposals: Sequence[Action], seed: int) -> ActionKey:
    """The rule of the paper's released code: the most common action type, among those the most
    common element, among those the most common text, and then the most common act."""
    left = list(proposals)
    levels: tuple[Callable[[Action], str | int | None], ...] = (
        lambda action: action.action_type,
        lambda action: action.index if action.action_type in _POINTING else None,
        lambda action: action.key[4] if action.action_type == "input_text" else None,
    )
    for level in levels:
        most = winner(Counter(level(action) for action in left), by_seed(seed))
        left = [action for action in left if level(action) == most]
    return exact(left, seed)
