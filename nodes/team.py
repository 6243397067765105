"""The paper's team, ready-made: role-free agents on a DAG, then a vote."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.graph import CollabGraph, Views, VoteRule
from swarm_ui.graph.shapes import Shape
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.model import ChatModel, ScoringModel
from swarm_ui.node import Node, Scope, Ties
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote
from swarm_ui.view import AgentView, windows


def collaborative(
    agents: int,
    rounds: int,
    model: ChatModel,
    edges: Iterable[Edge] | Shape | None,
    density: float,
    seed: int,
    adapters: Sequence[str | None] | None,
    temperatures: float | Sequence[float],
    views: Views | Sequence[AgentView],
    vote: VoteRule,
    vote_scope: Scope,
    ties: Ties,
    max_tokens: int,
    timeout: float | None,
) -> CollabGraph:
    """See :meth:`swarm_ui.graph.graph.CollabGraph.collaborative`."""
    if agents < 1:
        raise GraphError(f"a team needs at least one agent, got {agents}")
    spoken = [None] * agents if adapters is None else list(adapters)
    warmth = [temperatures] * agents if isinstance(temperatures, int | float) else temperatures
    seen = _views(views, agents)
    for what, given in (("adapters", spoken), ("temperatures", warmth), ("views", seen)):
        if len(given) != agents:
            raise GraphError(f"{agents} agents need {agents} {what}, got {len(given)}")
    names = [f"agent_{k}" for k in range(agents)]
    if edges is None:
        edges = random_dag(names, density, random.Random(seed))
    elif callable(edges):
        edges = edges(names)
    nodes: list[Node] = [
        AgentNode(
            name,
            model,
            adapter=spoken[k],
            temperature=float(warmth[k]),
            view=seen[k],
            max_tokens=max_tokens,
            timeout=timeout,
        )
        for k, name in enumerate(names)
    ]
    nodes.append(_vote(vote, vote_scope, ties, model))
    return CollabGraph(nodes, edges, output="vote", rounds=rounds)


def _views(views: Views | Sequence[AgentView], agents: int) -> Sequence[AgentView]:
    """The view of each agent."""
    if views == "same":
        return ["same"] * agents
    if views == "shuffle":
        return ["same", *["shuffle"] * (agents - 1)]  # type: ignore[list-item]
    if views == "window":
        return windows(agents)
    if isinstance(views, str):
        raise ConfigError(f"views must be 'same', 'shuffle', 'window' or a list, got {views!r}")
    return views


def _vote(vote: VoteRule, scope: Scope, ties: Ties, model: ChatModel) -> Node:
    if vote == "majority":
        return MajorityVote("vote", scope, ties=ties)
    if ties != "seed":
        raise ConfigError("ties='top' is of a majority vote; a probability vote has no use for it")
    if vote != "probability":
        raise ConfigError(f"vote must be 'majority' or 'probability', got {vote!r}")
    if scope != "last":
        raise ConfigError("a probability vote asks agents in their last round: vote_scope='last'")
    if not isinstance(model, ScoringModel):
        raise ConfigError(
            f"vote='probability' needs a model with score(); '{model.name}' has none. "
            "Use vote='majority'"
        )
    return ProbabilityVote("vote")


def solo(
    model: ChatModel,
    adapter: str | None,
    temperature: float,
    view: AgentView,
    max_tokens: int,
    timeout: float | None,
) -> CollabGraph:
    """See :meth:`swarm_ui.graph.graph.CollabGraph.solo`."""
    agent = AgentNode("agent_0", model, adapter, temperature, view, max_tokens, timeout)
    return CollabGraph([agent], name="solo")
