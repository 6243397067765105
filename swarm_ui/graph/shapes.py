"""Ready-made shapes of graphs, as edges between names.

Pass one to a graph or to a team, such as ``CollabGraph([ada, grace, MajorityVote()],
shapes.debate)``; or ``partial(shapes.tree, branching=3)``, or a function of your own. Messages flow
towards the node that answers: the last one of a chain and a debate, the hub of a star, the root of
a tree. For a random graph see :func:`swarm_ui.topology.random_dag`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal, TypedDict

from swarm_ui.agent_view import AgentView
from swarm_ui.errors import GraphError
from swarm_ui.node import Node, Scope
from swarm_ui.topology import Edge, Shape

Views = Literal["same", "shuffle", "pane"]
VoteRule = Literal["majority", "probability"]


class TeamOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`~swarm_ui.collab_graph.CollabGraph.collaborative`."""

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
    ``"pane"`` shows each agent one pane of a divided screen, so that it may abstain. Or one view
    for each agent, such as ``Pane(name="mail")``."""
    vote: VoteRule | Node
    """``"probability"`` needs a model that can score replies. A vote of your own is a node with an
    attribute ``scope``."""
    vote_scope: Scope
    """Whether a majority vote counts the last round's proposals or those of all rounds."""
    max_tokens: int | None
    """Maximum number of new tokens of each call; ``None``: that of the endpoint, and 256 for a
    model in this process."""
    timeout: float | None
    """Seconds for each call; ``None``: no limit."""


def chain(names: Sequence[str]) -> tuple[Edge, ...]:
    """Each name receives from the one before."""
    return tuple(pairwise(names))


def debate(names: Sequence[str]) -> tuple[Edge, ...]:
    """Each name receives from all names before it in the given order."""
    return tuple((sender, names[k]) for k in range(len(names)) for sender in names[:k])


def star(names: Sequence[str]) -> tuple[Edge, ...]:
    """The first is the hub and receives from all others.

    For the opposite direction use ``hub >> [a, b] >> vote``.
    """
    if len(names) < 2:
        raise GraphError(f"a star needs a hub and at least one other, got {len(names)}")
    return tuple((spoke, names[0]) for spoke in names[1:])


def tree(names: Sequence[str], branching: int = 2) -> tuple[Edge, ...]:
    """The first is the root; each receives from up to ``branching`` children, level by level.

    With ``branching=2`` the second and third report to the first, the next four to those two.
    """
    if branching < 1:
        raise GraphError(f"tree: branching must be at least 1, got {branching}")
    return tuple((names[k], names[(k - 1) // branching]) for k in range(1, len(names)))
