"""Policies, which turn a screen into a decision with its trace."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Observation
from swarm_ui.trace.records import Trace

Decide = Callable[[Observation, int, str], Coroutine[Any, Any, Trace]]
"""``(observation, seed, run) -> Trace``: one decision."""

Draw = Callable[[str, int], CollabGraph]
"""``(task, seed) -> graph``: the team for one episode."""


class Policy(Protocol):
    """Acts in episodes; one policy serves any number of them at the same time."""

    @property
    def name(self) -> str:
        """Name for tables, such as ``"base greedy"`` or ``"trained team"``."""
        ...

    def begin(self, *, task: str, seed: int) -> Decide:
        """Makes the decisions of one episode, and holds the state of the episode."""
        ...


def as_policy(given: Policy | CollabGraph) -> Policy:
    """The policy itself, or that of a graph. Raises ``ConfigError`` for anything else."""
    if isinstance(given, CollabGraph):
        return GraphPolicy(given)
    if not hasattr(given, "begin"):
        raise ConfigError(
            "expected a graph, or a policy with 'name' and 'begin', got an object of type "
            f"{type(given).__name__}"
        )
    return given


class GraphPolicy:
    """A team decides: the same graph in all episodes, or one drawn for each."""

    def __init__(self, graph: CollabGraph | Draw, *, name: str | None = None) -> None:
        """``graph``: a graph, or a function that draws one for an episode; ``name``: in tables; by
        default that of the graph."""
        self._graph = graph
        self.name = name or (graph.name if isinstance(graph, CollabGraph) else "drawn team")

    def begin(self, *, task: str, seed: int) -> Decide:
        source = self._graph
        graph = source if isinstance(source, CollabGraph) else source(task, seed)

        async def decide(observation: Observation, seed: int, run: str) -> Trace:
            return await graph.run(observation, seed=seed, run_id=run)

        return decide
