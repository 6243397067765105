"""Find the agents that harm a team, using only credit, and cut their edges or votes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, median
from typing import Generic, NamedTuple, TypeVar

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.graph.dag import Dag
from swarm_ui.stats import Interval, over_seeds
from swarm_ui.trace.records import Episode

G = TypeVar("G", bound=Dag)


class AgentAudit(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of one agent with the others."""

    agent: str
    gap: Interval | None
    """Mean over episodes of the agent's credit minus the median credit of the others in the same
    steps. ``None``: it was never scored together with another agent."""
    failed: float
    """Share of its calls that failed."""
    broken: bool


class PrunedTeam(NamedTuple, Generic[G]):
    """A team without the agents that were found broken."""

    graph: G
    cut: tuple[str, ...]
    """Names of the agents that were cut; if there are none, the graph is unchanged."""
    audits: tuple[AgentAudit, ...]
    """The comparison of every agent with the others, the worst agent first."""


def find_broken(
    episodes: Iterable[Episode], *, margin: float = 0.15, failures: float = 0.5
) -> tuple[AgentAudit, ...]:
    """Find agents that are broken or work against the team, using only credit.

    An agent is compared with the median of the other agents at the same steps. So a hard step
    counts against no agent, and several broken agents do not hide each other. The intervals are
    over episodes, because the steps of one episode are not independent.

    Args:
        episodes: episodes with credit; masked ones (``success`` is ``None``) are left out.
        margin: an agent is broken if its whole interval lies below minus this.
        failures: an agent is also broken if more than this share of its calls failed.

    Returns:
        all agents, the worst first.
    """
    gaps: defaultdict[str, list[float]] = defaultdict(list)
    failed: dict[str, list[bool]] = {}
    for episode in episodes:
        of_episode: defaultdict[str, list[float]] = defaultdict(list)
        for step in episode.steps if episode.success is not None else ():
            for agent in step.trace.agents:
                failed.setdefault(agent, [])
            for call in step.trace.calls:
                if call.node in failed:
                    failed[call.node].append(call.error is not None)
            for agent, gap in _gaps(step.trace.agents, step.credit or ()).items():
                of_episode[agent].append(gap)
        for agent, values in of_episode.items():
            gaps[agent].append(fmean(values))
    audits = []
    for agent, calls in failed.items():
        interval = over_seeds(gaps[agent])
        share = sum(calls) / len(calls) if calls else 0.0
        broken = share > failures or (interval is not None and interval.high < -margin)
        audits.append(AgentAudit(agent=agent, gap=interval, failed=share, broken=broken))
    return tuple(sorted(audits, key=lambda a: (a.gap.mean if a.gap else 0.0, a.agent)))


def prune_agents(
    graph: G,
    episodes: Iterable[Episode],
    *,
    margin: float = 0.15,
    failures: float = 0.5,
    edges: bool = True,
    vote: bool = True,
) -> PrunedTeam[G]:
    """Find broken agents in graded episodes of a team, and remove them.

    See :func:`find_broken` and :func:`without_voice`; the edges of the graph may differ from those
    of the team that played. Raises ``ConfigError`` if all agents are broken, so that none would be
    left.
    """
    audits = find_broken(episodes, margin=margin, failures=failures)
    cut = tuple(sorted(a.agent for a in audits if a.broken and a.agent in graph.agents))
    if cut and set(cut) == set(graph.agents):
        raise ConfigError(
            f"prune_agents: all agents are broken ({', '.join(cut)}), so none would be left; raise "
            "'margin', or check the credit"
        )
    return PrunedTeam(without_voice(graph, cut, edges=edges, vote=vote), cut, audits)


def without_voice(graph: G, agents: Iterable[str], *, edges: bool = True, vote: bool = True) -> G:
    """The team without the messages of some agents.

    ``edges`` removes their edges to other agents; ``vote`` removes their edges to the vote and to
    every other closing node. With both, the agents leave the team; otherwise they still receive
    messages.

    Raises:
        GraphError: an agent is not in the graph or is its output, or a vote would be left without
            voters.
    """
    names = tuple(dict.fromkeys(agents))
    if edges and vote:
        for name in names:
            graph = graph.without_node(name)
        return graph
    closing = frozenset(graph.closing)
    return graph.without_edges(
        (sender, listener)
        for sender, listener in graph.edges
        if sender in names and (vote if listener in closing else edges)
    )


def _gaps(agents: Sequence[str], credit: Sequence[Sequence[float | None]]) -> dict[str, float]:
    """Each scored agent's mean credit minus the median of the others'."""
    means = {}
    for k, agent in enumerate(agents):
        values = [v for row in credit if (v := row[k]) is not None]
        if values:
            means[agent] = fmean(values)
    return {
        agent: mean - median(v for other, v in means.items() if other != agent)
        for agent, mean in means.items()
        if len(means) > 1
    }
