"""Directed acyclic graphs by name: checking them and drawing random ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from swarm_ui.errors import GraphError

Edge = tuple[str, str]
Shape = Callable[[Sequence[str]], Iterable[Edge]]
"""Edges between names."""


def random_dag(names: Sequence[str], density: float, rng: random.Random) -> tuple[Edge, ...]:
    """A random DAG: a uniform random order, then each forward edge with probability ``density``.

    No place in ``names`` is favoured. Edges are listed listener by listener, in that order.
    """
    if not 0.0 <= density <= 1.0:
        raise GraphError(f"random graph: density must be in [0, 1], got {density}")
    order = list(names)
    rng.shuffle(order)
    return tuple(
        (sender, listener)
        for place, listener in enumerate(order)
        for sender in order[:place]
        if rng.random() < density
    )


def predecessors(names: Iterable[str], edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """The senders of each name, in edge order."""
    heard: dict[str, list[str]] = {name: [] for name in names}
    for sender, listener in edges:
        heard[listener].append(sender)
    return {name: tuple(senders) for name, senders in heard.items()}


def topological(heard: Mapping[str, Sequence[str]]) -> list[str]:
    """Names in topological order: each after its senders; ties in the given order. Raises
    ``GraphError``, which shows the cycle, if there is one."""
    sorter = TopologicalSorter(dict.fromkeys(heard, ()))  # in this order
    for name, senders in heard.items():
        sorter.add(name, *senders)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        cycle = list(error.args[1])
        if len(cycle) > 12:
            cycle[6:-5] = [f"({len(cycle) - 11} more)"]
        raise GraphError(
            f"the edges form a cycle: {' -> '.join(cycle)}. Messages within a round must flow "
            "one way; remove one of these edges, or deliver its messages in the next round "
            "with delay=1 (a node receives its own message of the last round anyway)"
        ) from None


def descendants(starts: Iterable[str], edges: Iterable[Edge]) -> set[str]:
    """The names given and all that can be reached from them."""
    listeners: dict[str, list[str]] = {}
    for sender, listener in edges:
        listeners.setdefault(sender, []).append(listener)
    found = set(starts)
    frontier = list(found)
    while frontier:
        for listener in listeners.get(frontier.pop(), ()):
            if listener not in found:
                found.add(listener)
                frontier.append(listener)
    return found
