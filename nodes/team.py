"""Builds the paper's team: role-free agents on a DAG, then a vote."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from swarm_ui.agent_view import AgentView, panes
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.shapes import Views, VoteRule
from swarm_ui.graph.topology import Edge, Shape, random_dag
from swarm_ui.model import ChatModel, ScoringModel, check_model
from swarm_ui.node import Node, Scope
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote

G = TypeVar("G", bound=Dag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """What :class:`~swarm_ui.graph.shapes.TeamOptions` describes, with the defaults."""

    agents: int
    rounds: int
    edges: Iterable[Edge] | Shape | None = None
    density: float = 0.5
    seed: int = 0
    adapters: Sequence[str | None] | None = None
    temperature: float | Sequence[float | None] | None = None
    views: Views | Sequence[AgentView] = "same"
    vote: VoteRule | Node = "majority"
    vote_scope: Scope = "last"
    max_tokens: int | None = None
    timeout: float | None = None


def collaborative(kind: type[G], team: Team, model: ChatModel, lora: int | None = None) -> G:
    """Make the paper's team; see :meth:`swarm_ui.graph.graph.CollabGraph.collaborative`. ``kind``
    is the graph's class."""
    if lora is not None:
        return _with_new_adapters(kind, team, model, lora)
    agents, edges, adapters, warmth = team.agents, team.edges, team.adapters, team.temperature
    check_model("collaborative", model)
    if agents < 1:
        raise GraphError(f"a team needs at least one agent, got {agents}")
    adapter_names = [None] * agents if adapters is None else list(adapters)
    if warmth is None or isinstance(warmth, int | float):
        warmth = [warmth] * agents
    seen = _views(team.views, agents)
    for what, given in (("adapters", adapter_names), ("temperatures", warmth), ("views", seen)):
        if len(given) != agents:
            raise GraphError(f"{agents} agents need {agents} {what}, got {len(given)}")
    names = _names(agents)
    if edges is None:
        edges = random_dag(names, team.density, random.Random(team.seed))
    elif callable(edges):
        edges = edges(names)
    heats = [None if heat is None else float(heat) for heat in warmth]
    each = zip(names, adapter_names, heats, seen, strict=True)
    nodes: list[Node] = [
        AgentNode(name, model, adapter, heat, view, team.max_tokens, team.timeout)
        for name, adapter, heat, view in each
    ]
    vote = _vote(team, model)
    return kind([*nodes, vote], edges, output=vote.id, rounds=team.rounds)


def _with_new_adapters(kind: type[G], team: Team, model: ChatModel, rank: int) -> G:
    add, known = getattr(model, "add_adapter", None), getattr(model, "adapters", ())
    names = _names(team.agents)
    if add is None:
        raise ConfigError(
            f"lora: '{model.name}' does not run in this process, so nothing can train its "
            "adapters; use LocalModel or CausalModel"
        )
    if team.adapters is not None:
        raise ConfigError("give lora, which adds adapters, or adapters, which the model has")
    if old := [name for name in names if name in known]:
        raise ConfigError(
            f"lora: '{model.name}' has adapters named {', '.join(old)} already; use them with "
            f"adapters={names}, or load the model again"
        )
    made = collaborative(kind, replace(team, adapters=names), model)
    for name in names:  # last, so that an error in the team changes nothing
        add(name, rank=rank)
    return made


def _names(agents: int) -> list[str]:
    return [f"agent_{k}" for k in range(agents)]


def _views(views: Views | Sequence[AgentView], agents: int) -> Sequence[AgentView]:
    if views == "same":
        return ["same"] * agents
    if views == "shuffle":
        return ["same", *["shuffle"] * (agents - 1)]  # type: ignore[list-item]
    if views == "pane":
        return panes(agents)
    if isinstance(views, str):
        raise ConfigError(f"views must be 'same', 'shuffle', 'pane' or a list, got {views!r}")
    return views


def _vote(team: Team, model: ChatModel) -> Node:
    if team.vote == "majority":
        return MajorityVote("vote", team.vote_scope)
    if team.vote_scope != "last":
        raise ConfigError("vote_scope is an option of vote='majority'; leave it out")
    if not isinstance(team.vote, str):
        return team.vote
    if team.vote != "probability":
        raise ConfigError(
            f"vote must be 'majority', 'probability' or a node with a scope, got {team.vote!r}"
        )
    if not isinstance(model, ScoringModel):
        raise ConfigError(
            f"vote='probability' needs a model with score(); '{model.name}' has none. "
            "Use vote='majority'"
        )
    return ProbabilityVote("vote")
