"""Teams as a configuration describes them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from swarm_ui.agent_view import AgentView
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.benchmark import Benchmark
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.experiment.config import FilledTeam
from swarm_ui.graph import shapes
from swarm_ui.model import ChatModel
from swarm_ui.node import Node
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.rollout import GraphPolicy, Policy
from swarm_ui.topology import Edge, predecessors, random_dag, topological

LEARNED_EDGES = Path("edges/distribution.safetensors")
"""Path of the edge distribution in the folder of a training run."""
SHAPES: dict[str, Callable[[Sequence[str]], tuple[Edge, ...]]] = {
    "none": lambda names: (),
    "chain": shapes.chain,
    "debate": shapes.debate,
    "star": shapes.star,
    "tree": shapes.tree,
}
Adapters = Sequence[str | None]
"""The adapter of each agent; empty: none has one."""


def graph_of(
    team: FilledTeam, model: ChatModel, adapters: Adapters = (), edges: Sequence[Edge] | None = None
) -> CollabGraph:
    """The team's graph. ``edges`` are used instead of the configured ones."""
    names = tuple(adapters) or (None,) * team.agents
    if team.agents == 1:
        return CollabGraph.solo(
            model,
            adapter=names[0],
            temperature=(team.temperatures or (team.temperature,))[0],
            view="shuffle" if team.views == "shuffle" else "same",
            max_tokens=team.max_tokens,
        )
    return CollabGraph.collaborative(
        team.agents,
        team.rounds,
        model=model,
        edges=configured_edges(team) if edges is None else tuple(edges),
        adapters=names,
        temperature=team.temperatures or team.temperature,
        views=team.views,
        vote=team.vote,
        max_tokens=team.max_tokens,
    )


def _agent(
    model: ChatModel, team: FilledTeam, adapter: str | None, name: str, view: AgentView
) -> Node:
    heat = team.temperatures[0] if team.temperatures else team.temperature
    return AgentNode(name, model, adapter, heat, view, team.max_tokens)


def policy_in(
    env: Benchmark,
    team: FilledTeam,
    model: ChatModel,
    adapters: Adapters = (),
    edges: Sequence[Edge] | None = None,
) -> Policy:
    """The policy of a team in an environment, where each task may determine the agents."""
    # All use one model and one adapter; it can be sent to workers, if the model can.
    make = partial(_agent, model, team, next(iter(adapters), None))
    own = env.team(make, f"{model.name}, one agent for each name")
    if own is not None:
        return own
    who = f"{model.name}, trained" if any(name is not None for name in adapters) else model.name
    shape = "learned" if edges_file(team.edges) is not None else team.edges
    edged = "no edges" if shape == "none" else f"{shape} edges"
    size = f"{team.agents} agents x {team.rounds}, {edged}, {team.vote} vote"
    label = f"{who}, one agent" if team.agents == 1 else f"{who}, {size}"
    return GraphPolicy(graph_of(team, model, adapters, edges), name=label)


def agent_names(count: int) -> list[str]:
    """The names of the agents of a team."""
    return [f"agent_{k}" for k in range(count)]


def team_size(team: FilledTeam) -> str:
    """A description of the size of a team."""
    if team.agents == 1:
        return "one agent"
    return f"{team.agents} agents, {team.rounds} round{'s' if team.rounds > 1 else ''}"


def configured_edges(team: FilledTeam) -> tuple[Edge, ...]:
    """The edges of a configuration: a shape, ``random``, pairs as ``agent_0>agent_1``, or the
    folder of a run that learned them, or a file of ``EdgeDistribution.save``. Raises
    ``ConfigError``."""
    names = agent_names(team.agents)
    if team.edges == "random":
        return random_dag(names, team.density, random.Random(team.seed))
    if team.edges in SHAPES:
        return tuple(SHAPES[team.edges](names)) if team.agents > 1 else ()
    if (learned := edges_file(team.edges)) is not None:
        return _learned_edges(learned, names) if team.agents > 1 else ()
    edges = parse_edges(team.edges, names)
    try:
        topological(predecessors(names, edges))
    except GraphError as error:
        raise ConfigError(str(error)) from error
    return edges


def edges_file(text: str) -> Path | None:
    """The file of learned edges that a setting names, by itself or by the folder of its run."""
    if os.path.isfile(inside := os.path.join(text, LEARNED_EDGES)):  # any text may stand here
        return Path(inside)
    return Path(text) if text.endswith(LEARNED_EDGES.suffix) and os.path.isfile(text) else None


def _learned_edges(file: Path, names: Sequence[str]) -> tuple[Edge, ...]:
    """The most probable graph of a file with learned edges."""
    from swarm_ui.optim.edges.distribution import EdgeDistribution

    distribution = EdgeDistribution.load(file)
    if set(distribution.names) != set(names):
        raise ConfigError(f"'{file}' has the edges of {', '.join(distribution.names)}; expected "
                          f"the edges of the team, {', '.join(names)}")  # fmt: skip
    return tuple(distribution.mode().edges)


def parse_edges(text: str, names: Sequence[str]) -> tuple[Edge, ...]:
    """Edges written as ``a>b,b>c``. Raises ``ConfigError`` if the text or a name is wrong."""
    found: list[Edge] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        sender, _, listener = (word.strip() for word in part.partition(">"))
        if part.endswith(LEARNED_EDGES.suffix):
            raise ConfigError(f"there is no file '{part}'")
        if not sender or not listener:
            raise ConfigError(
                f"'{part}' is not SENDER>LISTENER; expected random, {', '.join(SHAPES)}, a run or "
                f"a file of learned edges, or pairs of {', '.join(names)}"
            )
        if missing := [name for name in (sender, listener) if name not in names]:
            raise ConfigError(f"the edge '{part}': there is no {' and no '.join(missing)}; the "
                              f"team has {', '.join(names)}")  # fmt: skip
        if (sender, listener) in found:
            raise ConfigError(f"the edge '{part}' is given twice; give each edge once")
        found.append((sender, listener))
    return tuple(found)
