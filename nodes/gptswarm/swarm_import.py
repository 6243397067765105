"""A GPTSwarm ``Swarm`` as a graph of operations and the edges that may be learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from swarm_ui.errors import GraphError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, descendants
from swarm_ui.model import ChatModel
from swarm_ui.nodes.gptswarm.agent_graph import Entry, edges_among, names_of, wrapped
from swarm_ui.nodes.gptswarm.payloads import MakeTask, task_of
from swarm_ui.nodes.gptswarm.private_copies import check_is


@dataclass(frozen=True, slots=True)
class ImportedSwarm:
    """What :func:`import_swarm` found."""

    graph: CollabGraph
    """All operations with their fixed edges; the final decision answers."""
    potential: Mapping[Edge, float]
    """Edges that may be drawn: probability of each, in the swarm's order."""

    def with_edges(self, edges: Iterable[Edge], *, only_useful: bool = False) -> CollabGraph:
        """The graph with its fixed edges, then some potential ones in the order given.

        An edge that would close a cycle with those before it is left out, as GPTSwarm's
        ``realize()`` does: a draw over potential edges knows nothing of the fixed ones. The edges
        of the new graph tell which were taken. A gradient through the log-probability of the
        *draw* stays right, for what a draw becomes is part of what it is rewarded for.

        Args:
            edges: (sender, listener), each of them potential; the order in which they are heard.
            only_useful: leave out operations that do not lead to the decision. GPTSwarm never runs
                those, which saves calls; but then the graph does not show all edges drawn.

        Raises:
            GraphError: an edge is not a potential one, or is given twice.
        """
        reach = _Reach(self.graph.nodes, self.graph.edges)
        taken: list[Edge] = []
        given: set[Edge] = set()
        for edge in edges:
            if edge not in self.potential:
                raise GraphError(
                    f"edge {edge[0]} -> {edge[1]} is not a potential edge of the swarm"
                )
            if edge in given:
                raise GraphError(f"edge {edge[0]} -> {edge[1]} is given twice")
            given.add(edge)
            if reach.add(*edge):
                taken.append(edge)
        team = self.graph.with_edges([*self.graph.edges, *taken])
        if only_useful:
            useful = descendants([team.output], [(b, a) for a, b in team.edges])
            for name in [name for name in team.nodes if name not in useful]:
                team = team.without_node(name)
        return team


def import_swarm(
    swarm: Any,
    *,
    entry: Entry = "only",
    task: MakeTask = task_of,
    model: ChatModel | None = None,
) -> ImportedSwarm:
    """A GPTSwarm ``Swarm``: its operations under human names, its edges, and those it may learn.

    Operations are called ``"0.IO.DirectAnswer"``, ``"1.COT.CoTStep.2"`` (agent's number and kind,
    operation, its number where there are several), and ``"FinalDecision"``, which answers.

    Kept: prompts and inputs; the order in which an operation reads what it hears; that an input
    node of an agent gets the task and nothing of what it hears, so that edges into a single-node
    agent such as ``IO`` carry nothing (``entry="joined"`` mends that).

    Mended: an operation that nothing leads into says nothing instead of stopping the swarm.
    GPTSwarm's probability of an edge depends on its place in the list of connections, because an
    edge that would close a cycle is skipped; ``EdgeDistribution.from_probabilities(potential)``
    reads the same number as the probability *given that the sender comes first*, which depends on
    names only. So where both directions are possible, marginals differ from GPTSwarm's on purpose.

    Args:
        swarm: a ``swarm.graph.swarm.Swarm``.
        entry: see above.
        task, model: as for :class:`~swarm_ui.nodes.gptswarm.operation.GPTSwarmNode`.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: not a swarm.
        GraphError: its connections name operations that are not there.
    """
    check_is(swarm, "Swarm")
    whole = swarm.composite_graph
    names: dict[int, str] = {}
    for number, agent in enumerate(swarm.used_agents):
        names |= names_of(agent.nodes.values(), f"{number}.{type(agent).__name__}.")
    agents = [node for node in whole.nodes.values() if id(node) in names]
    others = [node for node in whole.nodes.values() if id(node) not in names]
    names |= names_of(others)
    decision, ordered = names[id(whole.decision_method)], agents + others
    graph = CollabGraph(
        wrapped(ordered, names, whole.input_nodes, decision, entry, task, model),
        edges_among(ordered, names),
        output=decision,
        name="swarm",
    )
    by_id = {key: names[id(node)] for key, node in whole.nodes.items()}
    return ImportedSwarm(graph, MappingProxyType(_potential(swarm.connection_dist, by_id)))


def _potential(distribution: Any, names: Mapping[str, str]) -> dict[Edge, float]:
    chances = distribution.edge_logits.detach().double().sigmoid().tolist()
    found: dict[Edge, float] = {}
    for (sender, listener), chance in zip(distribution.potential_connections, chances, strict=True):
        for end in (sender, listener):
            if end not in names:
                raise GraphError(f"the swarm may connect '{end}', which is none of its operations")
        found[names[sender], names[listener]] = chance
    return found


class _Reach:
    """Who can be reached from whom, as bit sets; grows edge by edge."""

    def __init__(self, names: Iterable[str], edges: Iterable[Edge]) -> None:
        self._place = {name: k for k, name in enumerate(names)}
        self._from = [1 << k for k in range(len(self._place))]
        for edge in edges:
            self.add(*edge)

    def add(self, sender: str, listener: str) -> bool:
        """Add an edge, unless it closes a cycle; whether it was added."""
        start, end = self._place[sender], self._place[listener]
        beyond = self._from[end]
        if beyond >> start & 1:
            return False
        self._from = [seen | beyond if seen >> start & 1 else seen for seen in self._from]
        return True
