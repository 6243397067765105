"""GPTSwarm agents and swarms as graphs with one node per operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import networkx as nx

from swarm_ui.errors import GraphError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.model import ChatModel
from swarm_ui.nodes.gptswarm.nodes import GPTSwarmNode, MakeTask, check_is, task_of

Entry = Literal["only", "joined"]


def import_graph(
    agent: Any,
    *,
    output: str | None = None,
    entry: Entry = "only",
    task: MakeTask = task_of,
    model: ChatModel | None = None,
) -> CollabGraph:
    """A GPTSwarm agent as a graph with one node per operation.

    Nodes are named after their class, ``"CoTStep.0"`` and so on if there are several. Operations
    that do not lead to an output are left out, since GPTSwarm never runs them.

    Args:
        agent: a ``swarm.graph.graph.Graph``.
        output: which node answers, if the agent has several output nodes.
        entry: whether an input node of the agent reads its messages too (``"joined"``), or only the
            task, as in GPTSwarm.
        task, model: the same as in :class:`~swarm_ui.nodes.gptswarm.nodes.GPTSwarmNode`.

    Raises:
        GraphError: the agent has several output nodes and ``output`` is not given, or it has
            cycles.
    """
    check_is(agent, "Graph")
    names = names_of(agent.nodes.values())
    outputs = [names[id(node)] for node in agent.output_nodes]
    if output is None and len(outputs) != 1:
        raise GraphError(
            f"{type(agent).__name__} has {len(outputs)} output nodes "
            f"({', '.join(outputs) or 'none'}); set 'output' to the one that answers"
        )
    answers = outputs[0] if output is None else output
    nodes = _wrapped(agent.nodes.values(), names, agent.input_nodes, answers, entry, task, model)
    edges = edges_among(agent.nodes.values(), names)
    return _useful(CollabGraph(nodes, edges, output=answers, name=type(agent).__name__))


def names_of(operations: Iterable[Any], prefix: str = "") -> dict[int, str]:
    """A name for each operation by its ``id()``: its class, and a number if there are several."""
    listed = list(operations)
    kinds = [type(operation).__name__ for operation in listed]
    numbers = [f".{kinds[:k].count(kind)}" for k, kind in enumerate(kinds)]
    return {
        id(operation): f"{prefix}{kind}" + (number if kinds.count(kind) > 1 else "")
        for operation, kind, number in zip(listed, kinds, numbers, strict=True)
    }


def edges_among(operations: Iterable[Any], names: Mapping[int, str]) -> list[Edge]:
    """Edges between operations, in the order in which each listener reads them.

    They are read from ``successors``. If a ``Swarm`` connects nothing inside an agent, it clears
    the ``successors`` and keeps the ``predecessors``, for which GPTSwarm would wait for ever.
    """
    listed, edges = list(operations), list[Edge]()
    for listener in listed:
        speaking = {id(node) for node in listed if any(s is listener for s in node.successors)}
        ordered = dict.fromkeys([*map(id, listener.predecessors), *map(id, listed)])
        edges += [(names[k], names[id(listener)]) for k in ordered if k in speaking]
    return edges


def _wrapped(
    operations: Iterable[Any],
    names: Mapping[int, str],
    entries: Sequence[Any],
    output: str,
    entry: Entry,
    task: MakeTask,
    model: ChatModel | None,
) -> dict[str, GPTSwarmNode]:
    """Nodes by name; the output node sends text, the others send records to each other."""
    starts = {id(node) for node in entries}
    return {
        names[id(node)]: GPTSwarmNode(
            node,
            names[id(node)],
            given=entry if id(node) in starts else "never",
            sends="text" if names[id(node)] == output else "records",
            task=task,
            model=model,
        )
        for node in operations
    }


def _useful(graph: CollabGraph) -> CollabGraph:
    """The graph without the nodes that do not lead to its output."""
    joined = nx.DiGraph(graph.edges)
    joined.add_nodes_from(graph.nodes)
    for name in set(joined) - nx.ancestors(joined, graph.output) - {graph.output}:
        graph = graph.without_node(name)
    return graph


@dataclass(frozen=True, slots=True)
class ImportedSwarm:
    """The result of :func:`import_swarm`."""

    graph: CollabGraph
    """All operations with their fixed edges; the final decision is the output."""
    potential: Mapping[Edge, float]
    """Edges that can be sampled with their probabilities, in the order of the swarm."""

    def with_edges(self, edges: Iterable[Edge], *, only_useful: bool = False) -> CollabGraph:
        """The graph with its fixed edges, and some potential ones in the given order.

        Potential edges are sampled without regard to the fixed ones, so they may close a cycle. As
        in GPTSwarm's ``realize()``, such an edge is skipped if it closes a cycle with fixed edges
        or with added edges that are earlier in the list. A gradient through the log-probability of
        the *sample* stays unbiased, because the reward is that of the graph after this step.

        Args:
            edges: (sender, listener) of potential edges; listeners read them in this order.
            only_useful: leave out operations that do not lead to the decision. GPTSwarm never runs
                them, so this saves calls; but then the graph does not show all sampled edges.

        Raises:
            GraphError: an edge is not a potential edge, or is given twice.
        """
        joined = nx.DiGraph(self.graph.edges)
        joined.add_nodes_from(self.graph.nodes)
        given, taken = list(edges), list[Edge]()
        for sender, listener in given:
            if (sender, listener) not in self.potential:
                raise GraphError(f"{sender} -> {listener} is not a potential edge of the swarm")
            if given.count((sender, listener)) > 1:
                raise GraphError(f"edge {sender} -> {listener} is given twice")
            if not nx.has_path(joined, listener, sender):
                joined.add_edge(sender, listener)
                taken.append((sender, listener))
        team = self.graph.with_edges([*self.graph.edges, *taken])
        return _useful(team) if only_useful else team


def import_swarm(
    swarm: Any,
    *,
    entry: Entry = "only",
    task: MakeTask = task_of,
    model: ChatModel | None = None,
) -> ImportedSwarm:
    """Import a GPTSwarm ``Swarm``: its operations, its fixed edges and its potential edges.

    Operations are named ``"0.IO.DirectAnswer"``, ``"1.COT.CoTStep.2"`` (number and kind of the
    agent, operation, and its number if there are several). ``"FinalDecision"`` is the output. An
    input node of an agent gets the task and no messages, so edges into a single-node agent such as
    ``IO`` have no effect (``entry="joined"`` changes that).

    Two things differ. First, an operation without inputs has an empty reply and does not stop the
    swarm. Second, GPTSwarm's probability of an edge depends on its position in the list of
    connections, because an edge that would close a cycle is skipped.
    ``EdgeDistribution.from_probabilities(potential)`` uses the same number as the probability
    *given that the sender comes first*, which depends on names only. So the marginals differ
    from GPTSwarm's if both directions are possible.

    Args:
        swarm: a ``swarm.graph.swarm.Swarm``.
        entry, task, model: the same as in :func:`import_graph`.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: the object is not a swarm.
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
    nodes = _wrapped(ordered, names, whole.input_nodes, decision, entry, task, model)
    graph = CollabGraph(nodes, edges_among(ordered, names), output=decision, name="swarm")
    by_id = {key: names[id(node)] for key, node in whole.nodes.items()}
    pairs = swarm.connection_dist.potential_connections
    chances = swarm.connection_dist.edge_logits.detach().double().sigmoid().tolist()
    potential = {(by_id[a], by_id[b]): p for (a, b), p in zip(pairs, chances, strict=True)}
    return ImportedSwarm(graph, MappingProxyType(potential))
