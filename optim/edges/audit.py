"""Who drags a team down, and what each edge is worth, with intervals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import msgspec

from swarm_ui.engine.limits import Limits
from swarm_ui.engine.replay import replay
from swarm_ui.errors import ConfigError, GraphError
from swarm_ui.graph.dag import Dag
from swarm_ui.stats import Interval, over_seeds
from swarm_ui.trace.records import EdgeName, Episode, Trace


class AgentAudit(msgspec.Struct, frozen=True, kw_only=True):
    """How one agent compares with the others."""

    agent: str
    gap: Interval | None
    """Its credit minus the median credit of the others in the same steps; mean over episodes.
    ``None``: it was never scored beside another."""
    failed: float
    """Share of its calls that failed."""
    broken: bool


def find_broken(
    episodes: Iterable[Episode], *, margin: float = 0.15, failures: float = 0.5
) -> tuple[AgentAudit, ...]:
    """Finds agents that are broken or work against the team, from credit alone.

    An agent is compared with the median of its colleagues at the same steps, so that hard steps
    count against nobody and a few broken ones do not hide each other. Episodes are what the
    interval counts, because steps of one episode are alike.

    Args:
        episodes: with credit; masked ones (``success`` is ``None``) are left out.
        margin: an agent is broken if its whole interval lies below minus this. 0 would cut whoever
            is surely the least bit worse.
        failures: it is broken too if more than this share of its calls failed.

    Returns:
        all agents, the worst first.
    """
    gaps: dict[str, list[float]] = {}
    calls: dict[str, list[bool]] = {}
    for episode in episodes:
        if episode.success is None:
            continue
        of_episode: dict[str, list[float]] = {}
        for step in episode.steps:
            for agent in step.trace.agents:
                calls.setdefault(agent, [])
            for call in step.trace.calls:
                if call.node in calls:
                    calls[call.node].append(call.error is not None or call.rescued is not None)
            for agent, gap in _gaps(step.trace.agents, step.credit or ()).items():
                of_episode.setdefault(agent, []).append(gap)
        for agent, values in of_episode.items():
            gaps.setdefault(agent, []).append(fmean(values))
    audits = []
    for agent, made in calls.items():
        gap_ = over_seeds(gaps.get(agent, []))
        failed = sum(made) / len(made) if made else 0.0
        broken = failed > failures or (gap_ is not None and gap_.high < -margin)
        audits.append(AgentAudit(agent=agent, gap=gap_, failed=failed, broken=broken))
    return tuple(sorted(audits, key=lambda a: (a.gap.mean if a.gap else 0.0, a.agent)))


def without_agents(edges: Iterable[EdgeName], agents: Iterable[str]) -> tuple[EdgeName, ...]:
    """The edges over which none of these agents speaks. They may still listen."""
    cut = set(agents)
    return tuple(edge for edge in edges if edge[0] not in cut)


class EdgeWorth(msgspec.Struct, frozen=True, kw_only=True):
    """What an edge adds to the decisions it carried messages in."""

    edge: EdgeName
    worth: Interval
    """Utility with it minus without it; ``n`` is the number of traces it stood in."""
    calls: int
    """Calls made again to find out; the others came from the record."""


async def edge_worth(
    graph: Dag,
    traces: Sequence[Trace],
    utility: Callable[[Trace], float | None],
    *,
    edges: Iterable[EdgeName] | None = None,
    limits: Limits | None = None,
) -> tuple[EdgeWorth, ...]:
    """Ablation by replay: each decision once more without one edge, all else as it was.

    Only what hears the difference is asked again.

    Args:
        graph: the one that ran; its edges are put back to each trace's own.
        traces: decisions.
        utility: of a decision, such as whether its action was right; ``None`` leaves a pair out.
        edges: which to try; default: all in the traces.
        limits: as of any run.

    Returns:
        the edges, the most valuable first; those never measured are not in it.

    Raises:
        ConfigError: an edge is in no trace.
    """
    known = sorted({edge for trace in traces for edge in trace.edges})
    wanted = known if edges is None else list(dict.fromkeys(edges))
    strange = [edge for edge in wanted if edge not in set(known)]
    if strange:
        raise ConfigError(f"edge worth: {strange[0]} is an edge of none of the traces")
    found = []
    for edge in wanted:
        having = [trace for trace in traces if edge in trace.edges]
        without = await asyncio.gather(*[_ablated(graph, trace, edge, limits) for trace in having])
        differences = []
        for trace, other in zip(having, without, strict=True):
            before, after = utility(trace), utility(other)
            if before is not None and after is not None:
                differences.append(before - after)
        worth = over_seeds(differences)
        if worth is not None:
            again = sum(_asked(a, b) for a, b in zip(having, without, strict=True))
            found.append(EdgeWorth(edge=edge, worth=worth, calls=again))
    return tuple(sorted(found, key=lambda row: (-row.worth.mean, row.edge)))


async def _ablated(graph: Dag, trace: Trace, edge: EdgeName, limits: Limits | None) -> Trace:
    left = [other for other in trace.edges if other != edge]
    try:
        without = graph.with_edges(left)
    except GraphError as error:
        raise ConfigError(
            f"edge worth: run {trace.run} cannot do without {edge[0]} -> {edge[1]}: {error}"
        ) from error
    return await replay(without, trace, limits=limits)


def _asked(before: Trace, after: Trace) -> int:
    """Calls that heard something else than in the record."""
    heard = {call.message: call for call in before.calls}
    said = {m.id: m.content for m in before.messages}
    changed = {m.id for m in after.messages if said.get(m.id) != m.content}
    return sum(
        call.message not in heard
        or call.heard != heard[call.message].heard
        or any(id in changed for id in call.heard)
        for call in after.calls
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
