"""An agent's own view of the screen: the same elements in another order, or only some of them.

Agents that see the same elements in different orders make different mistakes, which is what makes
their vote better than any one of them; a view also maps proposals back to the screen's indices.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.observation import Element, Observation


class View:
    """A permutation (or subset) of a screen's elements."""

    __slots__ = ("_back", "_forth", "_places", "observation")

    def __init__(self, screen: Observation, order: Sequence[int]) -> None:
        """``order[k]`` is the screen index of the element shown at position ``k``."""
        self._back: tuple[int, ...] = tuple(order)
        self._places = dict(enumerate(self._back))
        self._forth = {index: position for position, index in self._places.items()}
        if self._back == tuple(range(len(screen.elements))):
            self.observation = screen
        else:
            self.observation = msgspec.structs.replace(
                screen, elements=tuple(_shown(screen, i, k) for k, i in enumerate(self._back))
            )

    @property
    def order(self) -> tuple[int, ...]:
        """Screen index of each shown element."""
        return self._back

    def to_screen(self, action: Action) -> Action | None:
        """A proposal in this view's indices, in the screen's; ``None`` if it points nowhere."""
        return _reindexed(action, self._places)

    def from_screen(self, action: Action) -> Action | None:
        """An action in the screen's indices, in this view's; ``None`` if not shown here."""
        return _reindexed(action, self._forth)


def identity(screen: Observation) -> View:
    """The screen as it is."""
    return View(screen, range(len(screen.elements)))


def shuffled(screen: Observation, rng: random.Random) -> View:
    """All elements in a random order."""
    order = list(range(len(screen.elements)))
    rng.shuffle(order)
    return View(screen, order)


def _shown(screen: Observation, index: int, position: int) -> Element:
    return msgspec.structs.replace(screen.elements[index], index=position)


def _reindexed(action: Action, places: Mapping[int, int]) -> Action | None:
    """The action with both of its elements (a drag has two) renamed; ``None`` if one is unknown."""
    index, to_index = action.index, action.to_index
    if index is not None and (index := places.get(index)) is None:
        return None
    if to_index is not None and (to_index := places.get(to_index)) is None:
        return None
    if index == action.index and to_index == action.to_index:
        return action
    return msgspec.structs.replace(action, index=index, to_index=to_index)
