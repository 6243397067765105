"""The paper's team, ready-made: role-free agents on a DAG, then a vote."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph import CollabGraph, Views, VoteRule
from swarm_ui.model import ChatModel, ScoringModel
from swarm_ui.node import Node, Scope
from swarm_ui.nodes.agent import AgentNode, AgentView
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote
from swarm_ui.shapes import Shape
from swarm_ui.topology import Edge, random_dag


def collaborative(
    agents: int,
    rounds: int,
    model: ChatModel,
    edges: Iterable[Edge] | Shape | None,
    density: float,
    seed: int,
    adapters: Sequence[str | None] | None,
    temperatures: float | Sequence[float],
    views: Views,
    vote: VoteRule,
    vote_scope: Scope,
    max_tokens: int,
    timeout: float | None,
) -> CollabGraph:
    """See :meth:`swarm_ui.graph.CollabGraph.collaborative`."""
    if agents < 1:
        raise GraphError(f"a team needs at least one agent, got {agents}")
    spoken = [None] * agents if adapters is None else list(adapters)
    warmth = [temperatures] * agents if isinstance(temperatures, int | float) else temperatures
    for what, given in (("adapters", spoken), ("temperatures", warmth)):
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
            view="shuffle" if views == "shuffle" and k > 0 else "same",
            max_tokens=max_tokens,
            timeout=timeout,
        )
        for k, name in enumerate(names)
    ]
    nodes.append(_vote(vote, vote_scope, model))
    return CollabGraph(nodes, edges, output="vote", rounds=rounds)


def _vote(vote: VoteRule, scope: Scope, model: ChatModel) -> Node:
    if vote == "majority":
        return MajorityVote("vote", scope)
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
    """See :meth:`swarm_ui.graph.CollabGraph.solo`."""
    agent = AgentNode("agent_0", model, adapter, temperature, view, max_tokens, timeout)
    return CollabGraph([agent], name="solo")
