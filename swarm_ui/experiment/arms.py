"""What is compared: one agent, votes and teams, before and after learning."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from swarm_ui.experiment.settings import Settings
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.model import ChatModel
from swarm_ui.node import derive
from swarm_ui.rollout.policy import GraphPolicy, LoopEscapePolicy, Policy

_REPLY_TOKENS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One policy, as plain data, so that it can be sent to another process."""

    name: str
    label: str
    agents: int = 1
    rounds: int = 1
    edges: tuple[Edge, ...] = ()
    temperature: float = 0.0
    views: Literal["same", "shuffle"] = "same"
    vote: Literal["majority", "probability"] = "majority"
    guard: bool = False
    """Look through a shuffled view where a screen comes back."""
    trained: bool = False
    """Each agent speaks through the adapter of its own name."""

    def policy(self, model: ChatModel) -> Policy:
        """The arm in the flesh."""
        if self.guard:
            return LoopEscapePolicy.greedy(model, adapter=self._adapters()[0])
        return GraphPolicy(self.graph(model), name=self.label)

    def graph(self, model: ChatModel) -> CollabGraph:
        """The arm's graph (without a loop guard)."""
        if self.agents == 1:
            return CollabGraph.solo(
                model,
                adapter=self._adapters()[0],
                temperature=self.temperature,
                view=self.views,
                max_tokens=_REPLY_TOKENS,
            )
        return CollabGraph.collaborative(
            self.agents,
            self.rounds,
            model=model,
            edges=self.edges,
            adapters=self._adapters(),
            temperatures=self.temperature,
            views=self.views,
            vote=self.vote,
            max_tokens=_REPLY_TOKENS,
        )

    def _adapters(self) -> list[str | None]:
        return [f"agent_{k}" if self.trained else None for k in range(self.agents)]


BASE = "base-greedy"
TRAINED = "trained-greedy"
ORDER = (
    BASE, "base-guard", "base-shuffled", "base-clones", "base-vote", "base-team",
    TRAINED, "trained-vote", "trained-team",
)  # fmt: skip
"""Of the rows of tables."""


def base_arms(settings: Settings) -> list[Arm]:
    """The base agent, the controls that cost no training, and the untrained team."""
    n = settings.agents
    arms = [
        Arm(name=BASE, label="base, greedy"),
        Arm(name="base-guard", label="base, greedy with loop guard", guard=True),
        Arm(name="base-shuffled", label="base, one shuffled call", views="shuffle"),
        Arm(
            name="base-clones",
            label=f"base ×{n}, vote of clones",
            agents=n,
            temperature=settings.temperature,
        ),
        _vote("base-vote", f"base ×{n}, views + probability vote", n),
    ]
    if settings.quick:
        return [arms[0], arms[-1]]
    names = [f"agent_{k}" for k in range(n)]
    edges = random_dag(names, settings.density, random.Random(derive(settings.seed, "base team")))
    label = f"base team, DAG, {settings.rounds} rounds"
    return [*arms, _team("base-team", label, settings, edges)]


def trained_arms(settings: Settings, edges: Sequence[Edge], drawn: str) -> list[Arm]:
    """The trained agents alone, voting, and as a team on the given edges.

    Args:
        drawn: what the edges are, for the label.
    """
    label = f"trained team, {drawn}, {settings.rounds} rounds"
    team = _team("trained-team", label, settings, edges)
    vote = _vote("trained-vote", "trained team, no edges", settings.agents)
    arms = [Arm(name=TRAINED, label="trained, greedy (agent_0)"), vote, team]
    return [dataclasses.replace(arm, trained=True) for arm in arms]


def rollout_arm(settings: Settings, edges: Sequence[Edge]) -> Arm:
    """The team as it acts in training."""
    return Arm(
        name="training-team",
        label="training team",
        agents=settings.agents,
        rounds=settings.rounds,
        edges=tuple(edges),
        temperature=settings.temperature,
        views="shuffle",
        trained=True,
    )


def _team(name: str, label: str, settings: Settings, edges: Sequence[Edge]) -> Arm:
    return Arm(
        name=name,
        label=label,
        agents=settings.agents,
        rounds=settings.rounds,
        edges=tuple(edges),
        views="shuffle",
        vote="probability",
    )


def _vote(name: str, label: str, agents: int) -> Arm:
    return Arm(name=name, label=label, agents=agents, views="shuffle", vote="probability")
