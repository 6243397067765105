"""GPTSwarm agents and swarms as graphs with one node per operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import networkx as nx

from swarm_ui.errors import GraphError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge, descendants
from swarm_ui.model import ChatModel
from swarm_ui.nodes.gptswarm.nodes import GPTSwarmNode, MakeTask, check_is, task_of

Entry = Literal["only", "joined"]


def import_graph(
    agent: Any,
    *,
    name: str | None = None,
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
        name: the name of the new graph; ``None``: the agent's class.
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
    edges = edges_among(agent.nodes.values(), names)
    useful = descendants([answers], [(listener, sender) for sender, listener in edges])
    operations = [node for node in agent.nodes.values() if names[id(node)] in useful]
    return CollabGraph(
        wrapped(operations, names, agent.input_nodes, answers, entry, task, model),
        [edge for edge in edges if useful.issuperset(edge)],
        output=answers,
        name=name or type(agent).__name__,
    )


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
    edges: list[Edge] = []
    listed = list(operations)
    for listener in listed:
        speaking = [node for node in listed if any(other is listener for other in node.successors)]
        ordered = [node for node in listener.predecessors if any(node is s for s in speaking)]
        ordered += [node for node in speaking if not any(node is s for s in ordered)]
        edges.extend((names[id(sender)], names[id(listener)]) for sender in ordered)
    return edges


def wrapped(
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
        or with added edges that are earlier in the list. The edges of the new graph show which ones
        were added. A gradient through the log-probability
        of the *sample* stays unbiased, because the reward is that of the graph after this step.

        Args:
            edges: (sender, listener) of potential edges; listeners read them in this order.
            only_useful: leave out operations that do not lead to the decision. GPTSwarm never runs
                them, so this saves calls; but then the graph does not show all sampled edges.

        Raises:
            GraphError: an edge is not a potential edge, or is given twice.
        """
        joined = nx.DiGraph(self.graph.edges)
        joined.add_nodes_from(self.graph.nodes)
        taken, given = [], list(edges)
        for number, edge in enumerate(given):
            sender, listener = edge
            if edge not in self.potential:
                raise GraphError(
                    f"edge {sender} -> {listener} is not a potential edge of the swarm"
                )
            if edge in given[:number]:
                raise GraphError(f"edge {sender} -> {listener} is given twice")
            if not nx.has_path(joined, listener, sender):
                joined.add_edge(sender, listener)
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
    """Import a GPTSwarm ``Swarm``: its operations, its fixed edges and its potential edges.

    Operations are named ``"0.IO.DirectAnswer"``, ``"1.COT.CoTStep.2"`` (number and kind of the
    agent, operation, and its number if there are several). ``"FinalDecision"`` is the output.

    The prompts and inputs are unchanged, and so is the order in which an operation reads its
    inputs. An input node of an agent gets the task and no messages, so edges into a single-node
    agent such as ``IO`` have no effect (``entry="joined"`` changes that).

    Two things differ. First, an operation without inputs has an empty reply and does not stop the
    swarm. Second, GPTSwarm's probability of an edge depends on its position in the list of
    connections, because an edge that would close a cycle is skipped.
    ``EdgeDistribution.from_probabilities(potential)`` uses the same number as the probability
    *given that the sender comes first*, which depends on names only. So the marginals differ
    from GPTSwarm's if both directions are possible.

    Args:
        swarm: a ``swarm.graph.swarm.Swarm``.
        entry: see above.
        task, model: the same as in :class:`~swarm_ui.nodes.gptswarm.nodes.GPTSwarmNode`.

    Raises:
        MissingExtra: GPTSwarm is not installed.
        ConfigError: the object is not a swarm.
        GraphError: its connections name operations that it does not have.
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
    edges = distribution.potential_connections
    for end in (end for edge in edges for end in edge):
        if end not in names:
            raise GraphError(f"the swarm may connect '{end}', which is not one of its operations")
    pairs = zip(edges, chances, strict=True)
    return {(names[sender], names[listener]): chance for (sender, listener), chance in pairs}
