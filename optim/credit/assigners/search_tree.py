"""Values propagated from outcomes over a tree of attempts, after MALT (arXiv 2412.01928)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from swarm_ui.action import ActionKey
from swarm_ui.optim.credit.assigners.batch import BatchCredit, Start, proposals, start_of
from swarm_ui.trace.records import Episode

_Node = tuple[Start, tuple[ActionKey | None, ...]]
"""A start and the actions executed since then."""


class SearchTreeCredit(BatchCredit):
    """The value of the tree node that an action leads to, after MALT (arXiv 2412.01928).

    All attempts at one start form a tree. A node is the sequence of executed actions so far, and
    the leaves are the outcomes. The value of a node is the mean value of its children, one for each
    attempt that goes there, which is the success rate of the attempts through the node. A message
    gets the value of the node that its action leads to, as the signed number ``2 v - 1``: an action
    is right if most attempts that took it after the same actions succeeded. It is unscored if no
    attempt took it.

    What differs from the paper: MALT samples a fixed number of outputs at every agent of a chain
    and plays all combinations. Here the agents of a decision act on one state, and the tree
    branches where repeated attempts differ, so there are no further calls. MALT counts a value of
    one half as wrong; here it is neither. MALT trains on preferences and defines no advantage: the
    policy gradient compares the values of a group. If each start is played only once, the credit
    of the executed actions is the outcome.
    """

    name = "search tree values (MALT)"

    def _assess(self, episodes: Sequence[Episode]) -> list[list[Mapping[str, float]]]:
        sums: dict[_Node, tuple[float, int]] = {}
        for episode in episodes:
            for node in self._path(episode):
                total, count = sums.get(node, (0.0, 0))
                sums[node] = (total + float(bool(episode.success)), count + 1)
        values = {node: total / count for node, (total, count) in sums.items()}
        found: list[list[Mapping[str, float]]] = []
        for episode in episodes:
            start, done = start_of(episode), tuple[ActionKey | None, ...]()
            found.append([])
            for record, (_, path) in zip(episode.steps, self._path(episode), strict=True):
                reached = {id: (start, (*done, key)) for id, key in proposals(record).items()}
                found[-1].append(
                    {id: 2 * values[n] - 1 for id, n in reached.items() if n in values}
                )
                done = path
        return found

    def _path(self, episode: Episode) -> list[_Node]:
        """The nodes after each step."""
        start = start_of(episode)
        keys = [None if r.executed is None else r.executed.key for r in episode.steps]
        return [(start, tuple(keys[: k + 1])) for k in range(len(keys))]
