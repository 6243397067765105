"""The settings of the paper's team as one record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from swarm_ui.agent_view import AgentView
from swarm_ui.graph.shapes import Shape
from swarm_ui.graph.topology import Edge
from swarm_ui.node import Scope, Ties

Views = Literal["same", "shuffle", "window", "pane"]
VoteRule = Literal["majority", "probability"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamSpec:
    """Role-free agents ``agent_0 ...`` on a directed acyclic graph, then a ``vote``."""

    agents: int = 4
    """The paper uses 4 agents and 3 rounds."""
    rounds: int = 3
    edges: Iterable[Edge] | Shape | None = None
    """Pairs of names, or a shape such as :func:`swarm_ui.graph.shapes.debate`; ``None``: a random
    graph drawn with ``seed`` and ``density``."""
    density: float = 0.5
    seed: int = 0
    adapters: Sequence[str | None] | None = None
    """One LoRA adapter name (or ``None``) for each agent."""
    temperatures: float | Sequence[float | None] | None = None
    """The sampling temperature: one for all agents, or one for each. ``None``: that of the
    endpoint, and 0 for a model in this process."""
    views: Views | Sequence[AgentView] = "same"
    """With ``"shuffle"`` each agent except the first sees the elements in a different order.
    ``"window"`` shows each agent a part of the screen, the first the top. Or one view for each
    agent, such as ``windows(4, copies=2)`` of :mod:`swarm_ui.agent_view`. ``"pane"`` shows each
    agent one pane of a divided screen. An agent that sees a part may abstain."""
    vote: VoteRule = "majority"
    """``"probability"`` needs a model that can score replies."""
    vote_scope: Scope = "last"
    """Whether a majority vote counts the last round's proposals or those of all rounds."""
    ties: Ties = "seed"
    """Tie rule of a majority vote. ``"top"``: the action nearest to the top of the screen."""
    max_tokens: int | None = None
    """Maximum number of new tokens of each call; ``None``: that of the endpoint, and 256 for a
    model in this process."""
    timeout: float | None = None
    """Seconds for each call; ``None``: no limit."""


class TeamOptions(TypedDict, total=False):
    """The fields of :class:`TeamSpec`, except ``agents`` and ``rounds``, as keyword arguments."""

    edges: Iterable[Edge] | Shape | None
    density: float
    seed: int
    adapters: Sequence[str | None] | None
    temperatures: float | Sequence[float | None] | None
    views: Views | Sequence[AgentView]
    vote: VoteRule
    vote_scope: Scope
    ties: Ties
    max_tokens: int | None
    timeout: float | None
