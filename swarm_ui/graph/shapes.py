"""Ready-made shapes of graphs, as edges between names.

Each function converts names to edges. Pass one to a team, such as
``CollabGraph.collaborative(edges=shapes.debate)``, or pass ``partial(shapes.tree, branching=3)`` or
a function of your own. The same shapes with nodes are ``CollabGraph.chain``, ``.star`` and so on.
Messages flow towards the node that answers: the last one of a chain, a debate and the layers; the
hub of a star; the root of a tree. For a random graph see
:func:`swarm_ui.graph.topology.random_dag`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypedDict, TypeVar

from swarm_ui.agent_view import AgentView
from swarm_ui.errors import GraphError
from swarm_ui.graph.check import check_unique
from swarm_ui.graph.topology import Edge, forward_edges, shuffled
from swarm_ui.node import Node, Scope, Ties, Until

T = TypeVar("T")
Shape = Callable[[Sequence[str]], Iterable[Edge]]
"""Edges between names."""

Nodes = Iterable[Node] | Mapping[str, Node]
"""Nodes under their own names, or under those a mapping gives."""


class ShapeOptions(TypedDict, total=False):
    """The keyword arguments of every shape of :class:`~swarm_ui.graph.graph.CollabGraph`."""

    vote: Node | None
    """Receives from all nodes and answers, such as ``MajorityVote()``; default: none."""
    rounds: int
    """How often each agent is called; default: 1."""
    until: Until | None
    """Given the newest message of each agent, whether the rounds end early; default: they do
    not."""
    name: str
    """Name of the graph; default: the name of the shape."""


Views = Literal["same", "shuffle", "window", "pane"]
VoteRule = Literal["majority", "probability"]


class TeamOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`~swarm_ui.graph.graph.CollabGraph.collaborative`."""

    edges: Iterable[Edge] | Shape | None
    """Pairs of names, or a shape such as :func:`swarm_ui.graph.shapes.debate`; ``None``: a random
    graph drawn with ``seed`` and ``density``."""
    density: float
    """Probability of an edge of the random graph; default: 0.5."""
    seed: int
    """Seed of the random graph; default: 0."""
    adapters: Sequence[str | None] | None
    """One LoRA adapter name (or ``None``) for each agent."""
    temperature: float | Sequence[float | None] | None
    """The sampling temperature: one for all agents, or one for each. ``None``: that of the
    endpoint, and 0 for a model in this process."""
    views: Views | Sequence[AgentView]
    """With ``"shuffle"`` each agent except the first sees the elements in a different order.
    ``"window"`` shows each agent a part of the screen, the first the top. Or one view for each
    agent, such as ``windows(4, copies=2)`` of :mod:`swarm_ui.agent_view`. ``"pane"`` shows each
    agent one pane of a divided screen. An agent that sees a part may abstain."""
    vote: VoteRule | Node
    """``"probability"`` needs a model that can score replies. A vote of your own is a node with an
    attribute ``scope``."""
    vote_scope: Scope
    """Whether a majority vote counts the last round's proposals or those of all rounds."""
    ties: Ties
    """Tie rule of a majority vote. ``"top"``: the action nearest to the top of the screen."""
    max_tokens: int | None
    """Maximum number of new tokens of each call; ``None``: that of the endpoint, and 256 for a
    model in this process."""
    timeout: float | None
    """Seconds for each call; ``None``: no limit."""


def chain(names: Sequence[str]) -> tuple[Edge, ...]:
    """Each name receives from the one before."""
    return tuple(pairwise(_distinct("chain", names)))


def debate(names: Sequence[str]) -> tuple[Edge, ...]:
    """Each name receives from all names before it in the given order."""
    names = _distinct("debate", names)
    return tuple((sender, names[k]) for k in range(len(names)) for sender in names[:k])


def star(names: Sequence[str]) -> tuple[Edge, ...]:
    """The first is the hub and receives from all others.

    For the opposite direction use ``hub >> [a, b] >> vote``.
    """
    names = _distinct("star", names)
    if len(names) < 2:
        raise GraphError(f"a star needs a hub and at least one other, got only '{names[0]}'")
    return tuple((spoke, names[0]) for spoke in names[1:])


def tree(names: Sequence[str], branching: int = 2) -> tuple[Edge, ...]:
    """The first is the root; each receives from up to ``branching`` children, level by level.

    With ``branching=2`` the second and third report to the first, the next four to those two.
    """
    names = _distinct("tree", names)
    if branching < 1:
        raise GraphError(f"tree: branching must be at least 1, got {branching}")
    return tuple((names[k], names[(k - 1) // branching]) for k in range(1, len(names)))


def layered(layers: Iterable[Sequence[str]]) -> tuple[Edge, ...]:
    """Each name receives from the whole previous layer: ``[["a"], ["b", "c"], ["d"]]``."""
    levels = rows(layers)
    _distinct("layered graph", [name for level in levels for name in level])
    return tuple((s, listener) for low, high in pairwise(levels) for listener in high for s in low)


def converging(names: Sequence[str], density: float, rng: random.Random) -> tuple[Edge, ...]:
    """A random DAG in which every path ends at the last name of a random order.

    The last one also receives from every name without successors, so it has more edges than
    ``density`` says.
    """
    order = shuffled(_distinct("random graph", names), rng)
    edges = forward_edges(order, density, rng)
    heard = {sender for sender, _ in edges}
    return edges + tuple((name, order[-1]) for name in order[:-1] if name not in heard)


def rows(layers: Iterable[Iterable[T]]) -> list[list[T]]:
    """The layers as lists, after checking that each is a list with at least one entry."""
    found: list[list[T]] = []
    for k, layer in enumerate(layers):
        row = [] if isinstance(layer, str) or callable(layer) else list(layer)
        if not row:
            raise GraphError(f"layer {k} must be a list of at least one, got {layer!r}")
        found.append(row)
    return found


def _distinct(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        raise GraphError(f"a {what} needs at least one name")
    check_unique(names := list(names))
    return names
