"""The team that a configuration describes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from swarm_ui.cli.config import TeamSection
from swarm_ui.errors import ConfigError
from swarm_ui.graph import shapes
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.model import ChatModel
from swarm_ui.rollout.policy import GraphPolicy

LEARNED = Path("edges/distribution.safetensors")
"""In the folder of a training run: its edge distribution."""
SHAPES: dict[str, Callable[[Sequence[str]], tuple[Edge, ...]]] = {
    "none": lambda names: (),
    "chain": shapes.chain,
    "debate": shapes.debate,
    "star": shapes.star,
    "tree": shapes.tree,
}


def sized(team: TeamSection) -> str:
    """Its size in words."""
    if team.agents == 1:
        return "one agent"
    return f"{team.agents} agents, {team.rounds} round{'s' if team.rounds > 1 else ''}"


def edges_of(team: TeamSection) -> tuple[Edge, ...]:
    """Who hears whom: a shape, ``random``, pairs as ``agent_0>agent_1,agent_1>agent_2``, or the
    folder of a run that learned it.

    Raises:
        ConfigError: none of these.
    """
    names = [f"agent_{k}" for k in range(team.agents)]
    if team.agents == 1:
        return ()
    if team.edges == "random":
        return random_dag(names, team.density, random.Random(team.seed))
    if team.edges in SHAPES:
        return tuple(SHAPES[team.edges](names))
    if (Path(team.edges) / LEARNED).is_file():
        return _learned(Path(team.edges), names)
    return pairs(team.edges, names)


def _learned(run: Path, names: Sequence[str]) -> tuple[Edge, ...]:
    """The most probable graph of what a run learned."""
    from swarm_ui.optim.edges.files import read_edges

    distribution = read_edges(run / LEARNED)
    if set(distribution.names) != set(names):
        raise ConfigError(
            f"'{run}' learned the edges of {', '.join(distribution.names)}; the team has "
            f"{', '.join(names)}"
        )
    return tuple(distribution.mode().edges)


def pairs(text: str, names: Sequence[str]) -> tuple[Edge, ...]:
    """Edges as ``a>b,b>c``. Raises ``ConfigError`` if it is not that, or names others."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        sender, arrow, listener = (word.strip() for word in part.partition(">"))
        wrong = [name for name in (sender, listener) if name not in names]
        if not arrow or wrong:
            raise ConfigError(
                f"'{part}' is not SENDER>LISTENER; expected random, "
                f"{', '.join(SHAPES)}, the folder of a run that learned edges, or pairs of "
                f"{', '.join(names)}"
            )
        found.append((sender, listener))
    return tuple(found)


def graph_of(
    team: TeamSection,
    model: ChatModel,
    adapters: Sequence[str | None],
    edges: Sequence[Edge] | None = None,
) -> CollabGraph:
    """The graph. ``edges``: these instead of the configured ones."""
    if team.agents == 1:
        return CollabGraph.solo(
            model,
            adapter=adapters[0],
            temperature=team.temperature,
            view="same" if team.views == "window" else team.views,
            max_tokens=team.max_tokens,
        )
    return CollabGraph.collaborative(
        team.agents,
        team.rounds,
        model=model,
        edges=edges_of(team) if edges is None else edges,
        adapters=adapters,
        temperatures=team.temperature,
        views=team.views,
        vote=team.vote,
        max_tokens=team.max_tokens,
    )


def named(team: TeamSection, model: str, trained: bool) -> str:
    """What the policy is called in tables."""
    who = f"{model}, trained" if trained else model
    if team.agents == 1:
        return f"{who}, one agent"
    edges = "learned" if (Path(team.edges) / LEARNED).is_file() else team.edges
    return f"{who}, {team.agents} agents x {team.rounds}, {edges} edges, {team.vote} vote"


def policy_of(team: TeamSection, model: ChatModel, adapters: Sequence[str | None]) -> GraphPolicy:
    """What acts."""
    trained = any(name is not None for name in adapters)
    return GraphPolicy(graph_of(team, model, adapters), name=named(team, model.name, trained))
