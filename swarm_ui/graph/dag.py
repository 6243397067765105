"""The structure of a graph: named nodes, ordered edges and an output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Self

from swarm_ui.deprecation import renamed_property
from swarm_ui.errors import GraphError
from swarm_ui.graph.topology import Edge, descendants, predecessors, topological
from swarm_ui.graph.validation import (
    GraphNode,
    Otherwise,
    check_conditions,
    check_fallbacks,
    check_heard,
    check_name,
    check_unique,
    checked_edges,
    closes,
    electorate,
    named,
    no_edge,
    only_sink,
    unknown,
)
from swarm_ui.node import Condition, Node


class Dag(GraphNode):
    """Nodes and ordered edges, immutable; every operation returns a new one of the same class.

    :class:`~swarm_ui.graph.graph.CollabGraph` adds the operations.
    """

    id: str
    name: str
    nodes: Mapping[str, Node]
    """Nodes by name, in the order given."""
    edges: tuple[Edge, ...]
    """All (sender, listener) pairs, in order; those into closing nodes too."""
    when: Mapping[Edge, Condition]
    """Conditions of those edges that have one."""
    fallbacks: Mapping[str, Node]
    """Nodes that answer in place of a node that failed, by its name."""
    output: str
    rounds: int
    predecessors: Mapping[str, tuple[str, ...]]
    """The senders of the messages that each node receives, in edge order."""

    def __init__(
        self,
        nodes: Iterable[Node] | Mapping[str, Node],
        edges: Iterable[Edge] = (),
        output: str | None = None,
        rounds: int = 1,
        name: str = "team",
        *,
        when: Mapping[Edge, Condition] = MappingProxyType({}),
        fallbacks: Mapping[str, Node] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            nodes: the nodes, each under its own ``id``; or a mapping that names them.
            edges: (sender, listener) pairs. A closing node without edges receives from all agents.
            output: the node whose message is the answer; ``None``: the only node without a
                listener.
            rounds: how often each agent is called, at least 1.
            name: the graph's own name, used when it is a node of another graph.
            when: conditions of some edges: which of the sender's messages they carry. A node that
                has incoming edges and receives no message is skipped, and so are its successors.
            fallbacks: for some nodes, a node that answers in their place when they fail.

        Raises:
            GraphError: a name is unfit, unknown or used twice, or the edges form a cycle.
        """
        members = named(nodes)
        if rounds < 1:
            raise GraphError(f"rounds must be at least 1, got {rounds}")
        check_name(name)
        self.id = self.name = name
        self.nodes = MappingProxyType(members)
        self.edges = electorate(members, checked_edges(members, edges))
        self.when = check_conditions(self.edges, when)
        self.fallbacks = check_fallbacks(members, fallbacks)
        self.rounds = rounds
        self.predecessors = MappingProxyType(predecessors(members, self.edges))
        topological(self.predecessors)
        self.output = only_sink(members, self.edges) if output is None else output
        if self.output not in members:
            raise GraphError(unknown("output", self.output, members))

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(f"a graph is immutable: '{name}' cannot be set; make another one")
        super().__setattr__(name, value)

    heard = renamed_property("heard", "predecessors")

    @cached_property
    def closing(self) -> tuple[str, ...]:
        """Nodes that are called once, after the last round: votes and their successors."""
        after = descendants((n for n, node in self.nodes.items() if closes(node)), self.edges)
        return tuple(name for name in self.nodes if name in after)

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """Nodes that are called in every round."""
        after = frozenset(self.closing)
        return tuple(name for name in self.nodes if name not in after)

    @cached_property
    def talk(self) -> tuple[Edge, ...]:
        """Edges among agents, which carry messages in every round. These edges can be learned."""
        after = frozenset(self.closing)
        return tuple(edge for edge in self.edges if edge[1] not in after)

    # -- other graphs from this one -----------------------------------------------------------

    def with_edges(self, edges: Iterable[Edge]) -> Self:
        """The graph with other edges among the agents. Edges into votes stay."""
        after = frozenset(self.closing)
        new = tuple(edges)
        spoken_to = {listener for _, listener in new}
        kept = [e for e in self.edges if e[1] in after and e[1] not in spoken_to]
        return self._with(edges=[*new, *kept])

    def with_edge(self, sender: str, listener: str, *, when: Condition | None = None) -> Self:
        """The graph with one more edge, last in the listener's order.

        ``when``: condition on the messages that it carries; ``None``: all.
        """
        edge = (sender, listener)
        if edge in self.edges:
            raise GraphError(
                f"there is an edge {sender} -> {listener} already; "
                f"with_route('{sender}', {{'{listener}': condition}}) gives it a condition"
            )
        new = {} if when is None else {edge: when}
        return self._with(edges=[*self.edges, edge], when={**self.when, **new})

    def with_route(
        self, sender: str, routes: Mapping[str, Condition], *, otherwise: str | None = None
    ) -> Self:
        """Send each message of a node to the listeners whose condition it fulfils.

        Args:
            sender: whose messages.
            routes: listeners and their conditions; an existing edge gets the condition.
            otherwise: the listener of messages that fit no condition; ``None``: there is none.

        Examples:
            ``graph.with_route("router", {"coder": is_code}, otherwise="writer")``
        """
        ways: dict[str, Condition] = dict(routes)
        if not ways:
            raise GraphError(f"no routes from '{sender}': give listeners with their conditions")
        if otherwise is not None:
            if otherwise in routes:
                raise GraphError(f"'{otherwise}' has a condition and cannot be 'otherwise' too")
            ways[otherwise] = Otherwise(tuple(routes.values()))
        conditions = {(sender, listener): condition for listener, condition in ways.items()}
        new = [edge for edge in conditions if edge not in self.edges]
        return self._with(edges=[*self.edges, *new], when={**self.when, **conditions})

    def with_fallback(self, name: str, node: Node) -> Self:
        """``node`` answers in place of ``name`` when that one fails; the failure is recorded."""
        return self._with(fallbacks={**self.fallbacks, name: node})

    def without_edge(self, sender: str, listener: str) -> Self:
        return self.without_edges([(sender, listener)])

    def without_edges(self, edges: Iterable[Edge]) -> Self:
        """The graph without some edges, which may lead into votes.

        Raises:
            GraphError: there is no such edge, or a vote would have no incoming edge left.
        """
        gone = dict.fromkeys(edges)
        there = frozenset(self.edges)
        for edge in gone:
            if edge not in there:
                raise GraphError(no_edge(edge, "remove", there))
        left = [e for e in self.edges if e not in gone]
        check_heard(self.nodes, left)
        return self._with(edges=left)

    def with_node(
        self,
        node: Node,
        *,
        name: str | None = None,
        hears: Iterable[str] = (),
        heard_by: Iterable[str] = (),
    ) -> Self:
        """The graph with one more node (which may be a graph), or with a node replaced."""
        label = node.id if name is None else name
        new = [(sender, label) for sender in hears] + [(label, other) for other in heard_by]
        return self._with(nodes={**self.nodes, label: node}, edges=[*self.edges, *new])

    def without_node(self, name: str) -> Self:
        """The graph without one node, its edges and its vote."""
        if name not in self.nodes:
            raise GraphError(unknown("node", name, self.nodes))
        if name == self.output:
            raise GraphError(f"'{name}' is the output; make another node the output first")
        nodes = {label: node for label, node in self.nodes.items() if label != name}
        edges = [edge for edge in self.edges if name not in edge]
        check_heard(nodes, edges)
        return self._with(nodes=nodes, edges=edges)

    def with_rounds(self, rounds: int) -> Self:
        return self._with(rounds=rounds)

    def with_output(self, output: str) -> Self:
        return self._with(output=output)

    def named(self, name: str) -> Self:
        """The same graph under another name, for use as a node of another graph."""
        return self._with(name=name)

    def rename(self, names: Mapping[str, str]) -> Self:
        """Other names for some nodes."""

        def pair(edge: Edge) -> Edge:
            return names.get(edge[0], edge[0]), names.get(edge[1], edge[1])

        for old in names:
            if old not in self.nodes:
                raise GraphError(unknown("node", old, self.nodes))
        new = [names.get(name, name) for name in self.nodes]
        check_unique(new)
        return self._with(
            nodes=dict(zip(new, self.nodes.values(), strict=True)),
            edges=[pair(edge) for edge in self.edges],
            output=names.get(self.output, self.output),
            when={pair(edge): condition for edge, condition in self.when.items()},
            fallbacks={names.get(n, n): node for n, node in self.fallbacks.items()},
        )

    def _with(
        self,
        *,
        nodes: Mapping[str, Node] | None = None,
        edges: Iterable[Edge] | None = None,
        output: str | None = None,
        rounds: int | None = None,
        name: str | None = None,
        when: Mapping[Edge, Condition] | None = None,
        fallbacks: Mapping[str, Node] | None = None,
    ) -> Self:
        """A copy with changes. Conditions and fallbacks are removed with their edge or node."""
        members = self.nodes if nodes is None else nodes
        pairs = self.edges if edges is None else tuple(edges)
        kept = self.when if when is None else when
        instead = self.fallbacks if fallbacks is None else fallbacks
        left = frozenset(pairs)
        return type(self)(
            members,
            pairs,
            output=self.output if output is None else output,
            rounds=self.rounds if rounds is None else rounds,
            name=self.name if name is None else name,
            when={e: c for e, c in kept.items() if when is not None or e in left},
            fallbacks={n: f for n, f in instead.items() if fallbacks is not None or n in members},
        )
