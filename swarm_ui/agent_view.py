"""An agent's own view of the screen: the same elements in another order, or only some of them.

If an agent sees only one pane of a divided screen, messages may refer to an element that it does
not see: that gets a number after those of the shown ones, and can be proposed by that number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation


class View:
    """A permutation (or subset) of a screen's elements."""

    def __init__(self, screen: Observation, order: Sequence[int] | None = None) -> None:
        """``order[k]`` is the screen index of the element shown at position ``k``; ``None``: all
        elements are shown, in the screen's order."""
        size = len(screen.elements)
        self.order = tuple(range(size) if order is None else order)
        """Screen index of each shown element."""
        shown = frozenset(self.order)
        hidden = [i for i in range(size) if i not in shown] if len(shown) < size else []
        self.partial = bool(hidden)
        """Whether a part of the screen is hidden. An agent with such a view may abstain."""
        self._places = dict(enumerate((*self.order, *hidden)))
        self._numbers = {index: number for number, index in self._places.items()}
        self.observation = screen
        if self.order != tuple(range(size)):
            self.observation = msgspec.structs.replace(
                screen,
                elements=tuple(
                    msgspec.structs.replace(screen.elements[index], index=position)
                    for position, index in enumerate(self.order)
                ),
            )

    def to_screen(self, action: Action) -> Action | None:
        """Convert a proposal to the screen's indices, also those of hidden elements; ``None`` if
        there is no such element."""
        return _reindexed(action, self._places)

    def from_screen(self, action: Action) -> Action | None:
        """Convert an action to this view's indices; ``None`` if its element is not shown."""
        found = self.from_screen_with_hidden(action)
        shown = len(self.order)
        return None if found is None or any(i >= shown for i in found.targets) else found

    def from_screen_with_hidden(self, action: Action) -> Action | None:
        """Like :meth:`from_screen`, with indices for the hidden elements too, which are numbered
        after the shown elements, in screen order."""
        return _reindexed(action, self._numbers)


class Pane(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a divided screen, by its name or by its number."""

    name: str | None = None
    """The name in :attr:`Element.pane`."""
    part: int | None = None
    """Number of the pane, from 0, in the order in which the panes first occur on the screen."""

    def __post_init__(self) -> None:
        if (self.name is None) == (self.part is None) or (self.part or 0) < 0:
            raise ConfigError(
                f"pane: expected either a name or a part >= 0, got {self.name!r} and {self.part}"
            )

    def order(self, screen: Observation) -> list[int]:
        """Screen indices of the elements in this pane, in screen order; empty if the screen has no
        such pane."""
        wanted = self.name
        if self.part is not None:
            names = list(dict.fromkeys(element.pane for element in screen.elements))
            wanted = names[self.part] if self.part < len(names) else None
        return [element.index for element in screen.elements if element.pane == wanted]


AgentView = Literal["same", "shuffle"] | Pane


def panes(parts: int) -> tuple[Pane, ...]:
    """The first panes of a divided screen, one for each agent of a team."""
    return tuple(Pane(part=k) for k in range(parts))


def _reindexed(action: Action, places: Mapping[int, int]) -> Action | None:
    """The action with new indices of its elements (a drag has two); ``None`` if one is unknown."""
    moved = [None if i is None else places.get(i, -1) for i in (action.index, action.to_index)]
    if -1 in moved:
        return None
    if moved == [action.index, action.to_index]:
        return action
    return msgspec.structs.replace(action, index=moved[0], to_index=moved[1])
