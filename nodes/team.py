"""Builds the paper's team: role-free agents on a DAG, then a vote."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from swarm_ui.agent_view import AgentView, panes
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.shapes import TeamOptions, Views
from swarm_ui.model import ChatModel, ScoringModel, check_model
from swarm_ui.node import Node
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.nodes.vote import MajorityVote, ProbabilityVote
from swarm_ui.topology import random_dag

G = TypeVar("G", bound=Dag)


def collaborative(
    kind: type[G],
    agents: int,
    rounds: int,
    model: ChatModel,
    lora: int | None,
    options: TeamOptions,
) -> G:
    """Make the paper's team; see :meth:`swarm_ui.collab_graph.CollabGraph.collaborative`. ``kind``
    is the graph's class."""
    if unknown := options.keys() - TeamOptions.__annotations__:
        raise TypeError(f"collaborative() got an unexpected keyword argument '{min(unknown)}'")
    check_model("collaborative", model)
    if agents < 1:
        raise GraphError(f"a team needs at least one agent, got {agents}")
    names = [f"agent_{k}" for k in range(agents)]
    adapters, heats = options.get("adapters"), options.get("temperature")
    if lora is not None:
        add = _adding(model, names, adapters)
        adapters = names
    if heats is None or isinstance(heats, int | float):
        heats = [heats] * agents
    views = _views(options.get("views", "same"), agents)
    adapters = [None] * agents if adapters is None else list(adapters)
    for what, given in (("adapters", adapters), ("temperatures", heats), ("views", views)):
        if len(given) != agents:
            raise GraphError(f"{agents} agents need {agents} {what}, got {len(given)}")
    edges = options.get("edges")
    if edges is None:
        draw = random.Random(options.get("seed", 0))
        edges = random_dag(names, options.get("density", 0.5), draw)
    elif callable(edges):
        edges = edges(names)
    most, timeout = options.get("max_tokens"), options.get("timeout")
    nodes: list[Node] = [
        AgentNode(name, model, adapter, None if heat is None else float(heat), view, most, timeout)
        for name, adapter, heat, view in zip(names, adapters, heats, views, strict=True)
    ]
    vote = _vote(options, model)
    graph = kind([*nodes, vote], edges, output=vote.id, rounds=rounds)
    if lora is not None:  # last, so that an error in the team changes nothing
        for name in names:
            add(name, rank=lora)
    return graph


def _adding(
    model: ChatModel, names: Sequence[str], adapters: Sequence[str | None] | None
) -> Callable[..., Any]:
    """The method of a model that adds an adapter. Raises ``ConfigError`` if new ones cannot be
    added under these names."""
    add: Callable[..., Any] | None = getattr(model, "add_adapter", None)
    if add is None:
        raise ConfigError(
            f"lora: '{model.name}' does not run in this process, so nothing can train its "
            "adapters; use LocalModel or CausalModel"
        )
    if adapters is not None:
        raise ConfigError("give lora, which adds adapters, or adapters, which the model has")
    if old := [name for name in names if name in getattr(model, "adapters", ())]:
        raise ConfigError(
            f"lora: '{model.name}' has adapters named {', '.join(old)} already; use them with "
            f"adapters={names}, or load the model again"
        )
    return add


def _views(views: Views | Sequence[AgentView], agents: int) -> Sequence[AgentView]:
    if not isinstance(views, str):
        return views
    if views not in ("same", "shuffle", "pane"):
        raise ConfigError(f"views must be 'same', 'shuffle', 'pane' or a list, got {views!r}")
    others: AgentView = "shuffle" if views == "shuffle" else "same"
    return panes(agents) if views == "pane" else ["same", *[others] * (agents - 1)]


def _vote(options: TeamOptions, model: ChatModel) -> Node:
    vote, scope = options.get("vote", "majority"), options.get("vote_scope", "last")
    if vote == "majority":
        return MajorityVote("vote", scope)
    if scope != "last":
        raise ConfigError("vote_scope is an option of vote='majority'; leave it out")
    if not isinstance(vote, str):
        return vote
    if vote != "probability" or not isinstance(model, ScoringModel):
        raise ConfigError(
            f"vote={vote!r} with the model '{model.name}': expected 'majority', a node with a "
            "scope, or, for a model with score(), 'probability'"
        )
    return ProbabilityVote("vote")
