"""Finding the agents that drag a team down, from credit alone, and taking their voice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.optim.edges.audit import AgentAudit, find_broken
from swarm_ui.trace.records import Episode

G = TypeVar("G", bound=Dag)


class Repair(NamedTuple, Generic[G]):
    """A team without the agents that were found broken, and why."""

    graph: G
    cut: tuple[str, ...]
    """Names of those cut; none: the graph is as it was."""
    audits: tuple[AgentAudit, ...]
    """The evidence about every agent, the worst first."""


def repair(
    graph: G,
    episodes: Iterable[Episode],
    *,
    margin: float = 0.15,
    failures: float = 0.5,
    edges: bool = True,
    vote: bool = True,
) -> Repair[G]:
    """Finds broken agents in graded episodes of a team and cuts them off.

    Args:
        graph: the team that played, or the same team over other edges.
        episodes: with credit.
        margin, failures: see :func:`~swarm_ui.optim.edges.audit.find_broken`.
        edges, vote: see :func:`silenced`.

    Raises:
        ConfigError: all who vote were found broken: then there is no team left to save.
    """
    audits = find_broken(episodes, margin=margin, failures=failures)
    cut = tuple(sorted(a.agent for a in audits if a.broken and a.agent in graph.agents))
    if cut and set(cut) == set(graph.agents):
        raise ConfigError(f"repair: all agents are broken: {', '.join(cut)}; nobody is left")
    return Repair(silenced(graph, cut, edges=edges, vote=vote), cut, audits)


def silenced(graph: G, agents: Iterable[str], *, edges: bool = True, vote: bool = True) -> G:
    """The team in which some agents are no longer heard.

    Args:
        graph: the team.
        agents: who loses the voice.
        edges: no other agent hears them. With ``vote`` they leave the team, so that their calls
            are not paid for; else they still listen.
        vote: no vote (nor another closing node) hears them.

    Raises:
        GraphError: one is not there, is the output, or a vote would be left with nobody to hear.
    """
    names = tuple(dict.fromkeys(agents))
    if edges and vote:
        for name in names:
            graph = graph.without_node(name)
        return graph
    closing = frozenset(graph.closing)
    gone = [
        (sender, listener)
        for sender, listener in graph.edges
        if sender in names and (vote if listener in closing else edges)
    ]
    return graph.without_edges(gone)
