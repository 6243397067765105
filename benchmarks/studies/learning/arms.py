"""The arms on which the learning benchmark tests a team, beside those of the demo."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import Arm, agent_names, base_arms
from swarm_ui.experiment.training.stage2 import TrainedTeam, fixed_graph, unseen_graphs
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.node import derive

OWN_GRAPH = "trained-team-own"
"""The arm of a team on the one DAG that it was trained on."""


def graph_arms(team: Arm, settings: Settings, trained: TrainedTeam, count: int) -> list[Arm]:
    """The trained team on ``count`` DAGs that it never saw in training.

    A team with learned edges is tested on the learned graph instead, and a team of one fixed graph
    on that graph too.

    Args:
        team: the team on ``trained.edges``.
        settings: the settings of the run.
        trained: the result of its training.
        count: number of unseen DAGs.
    """
    if settings.edges == "learned":
        return [team]
    own = fixed_graph(settings)
    played = {
        frozenset((a, b) for a, b in graph)
        for metrics in trained.history
        for graph in metrics["graphs"]
    }
    unseen = unseen_graphs(settings, played or {frozenset(own)}, count)
    arms = _numbered(dataclasses.replace(team, label="trained team, unseen DAG"), unseen)
    if settings.edges == "fixed":
        label = "trained team, own DAG"
        arms.append(dataclasses.replace(team, name=OWN_GRAPH, label=label, edges=own))
    return arms


def base_graph_arms(settings: Settings, count: int) -> list[Arm]:
    """Four base agents on ``count`` different DAGs; the first one is the demo's."""
    team = next((arm for arm in base_arms(settings) if arm.name == "base-team"), None)
    if team is None or not count:
        return []
    draws = random.Random(derive(settings.seed, "base team"))
    found: dict[frozenset[Edge], tuple[Edge, ...]] = {}
    for _ in range(1000):
        if len(found) == count:
            break
        edges = random_dag(agent_names(settings.agents), settings.density, draws)
        found.setdefault(frozenset(edges), edges)
    return _numbered(team, list(found.values()))


def copies_vote(count: int) -> Arm:
    """One trained agent that is asked ``count`` times, each time with a shuffled view. Vote and
    number of calls are those of a team."""
    return Arm(
        name="trained-vote", label=f"one trained agent, {count} calls, vote", agents=count,
        views="shuffle", vote="probability", trained=True, adapters=("agent_0",) * count,
    )  # fmt: skip


def _numbered(team: Arm, graphs: Sequence[Sequence[Edge]]) -> list[Arm]:
    """One arm for each graph: ``NAME``, ``NAME-2``, ``NAME-3``…"""
    return [
        dataclasses.replace(
            team, name=team.name if k == 0 else f"{team.name}-{k + 1}", edges=tuple(edges)
        )
        for k, edges in enumerate(graphs)
    ]
