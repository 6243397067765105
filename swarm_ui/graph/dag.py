"""The structure of a graph: named nodes, ordered edges and an output; and its composition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from types import EllipsisType, MappingProxyType
from typing import Any, Self

from swarm_ui.errors import GraphError
from swarm_ui.graph.check import (
    ambiguous,
    check_name,
    check_there,
    checked_edges,
    function_name,
    named,
    unknown,
)
from swarm_ui.node import Condition, Node, Until, parts_of, scope_of
from swarm_ui.topology import Edge, Shape, descendants, predecessors, topological


class Dag:
    """Nodes and ordered edges, immutable; every operation returns a new one of the same class.

    The edges without a delay are acyclic. An edge with a delay may close a cycle: unrolled over
    the rounds, the calls are acyclic again. :class:`~swarm_ui.collab_graph.CollabGraph` adds the
    runs.
    """

    id: str
    name: str
    nodes: Mapping[str, Node]
    rounds: int
    until: Until | None
    edges: tuple[Edge, ...]
    """All of them, in order; delayed ones and those into closing nodes too."""
    delays: Mapping[Edge, int]
    """Only of the edges that have one."""
    when: Mapping[Edge, Condition]
    immediate: tuple[Edge, ...]
    """The edges without a delay: messages travel over them within a round."""
    closing: tuple[str, ...]
    """Nodes that are called once, after the last round: votes and their successors."""
    agents: tuple[str, ...]
    """Nodes that are called in every round."""
    communication_edges: tuple[Edge, ...]
    """Edges among agents, delayed ones too, over which messages travel in every round. They can be
    learned."""
    predecessors: Mapping[str, tuple[str, ...]]
    """The senders of the messages that each node receives, in edge order."""
    sources: tuple[str, ...]
    """Nodes that receive from no other node within a round."""
    output: str
    ends: tuple[str, ...]
    """Whose messages ``>>`` delivers to the next part: the output, or all parts of a list."""

    def __init__(
        self,
        nodes: Iterable[Node] | Mapping[str, Node],
        edges: Iterable[Edge] | Shape = (),
        output: str | None = None,
        rounds: int = 1,
        name: str = "team",
        *,
        when: Mapping[Edge, Condition] = MappingProxyType({}),
        delays: Mapping[Edge, int] = MappingProxyType({}),
        until: Until | None = None,
    ) -> None:
        """
        Args:
            nodes: the nodes, each under its own ``id``; or a mapping that names them.
            edges: (sender, listener) pairs; or a shape of :mod:`swarm_ui.graph.shapes` among the
                nodes that do not close. A closing node without edges receives from all agents.
            output: the node whose message is the answer; ``None``: the only node without a
                listener in the same round.
            rounds: how often each agent is called, at least 1.
            name: the graph's own name, used when it is a node of another graph.
            when: conditions of some edges: which of the sender's messages they carry. A node that
                has incoming edges and receives no message is skipped, and so are its successors.
            delays: for some edges between agents, how many rounds later a message is delivered;
                0, the default: in the same round.
            until: a function that gets the newest message of each agent and returns whether the
                rounds end. ``rounds`` is then their maximum number, and a round begins when the one
                before is complete.

        Raises ``GraphError`` for a cycle without a delay, an unknown node, or what could never run.
        """
        members = named(nodes)
        check_name(name)
        if not isinstance(rounds, int) or rounds < 1:
            raise GraphError(f"rounds must be a whole number of at least 1, got {rounds!r}")
        if iscoroutinefunction(until):  # its result would always be true
            told = f"until: '{function_name(until)}' is a coroutine function; use a plain function"
            raise GraphError(told)
        self.id = self.name = name
        self.nodes, self.rounds, self.until = MappingProxyType(members), rounds, until
        self._connect(edges, delays)
        check_there(self.edges, when, "put a condition on")
        self.when = MappingProxyType(dict(when))
        if output is not None and output not in members:
            raise GraphError(unknown("output", output, members))
        speaking = {sender for sender, _ in self.immediate}
        self.ends = (output,) if output else tuple(n for n in members if n not in speaking)
        if len(self.ends) > 1:
            raise ambiguous(self.ends)
        self.output = self.ends[0]

    def _connect(self, edges: Iterable[Edge] | Shape, delays: Mapping[Edge, int]) -> None:
        """Set the edges, and what follows from them."""
        names = list(self.nodes)
        votes = [name for name in names if scope_of(self.nodes[name]) is not None]
        if callable(edges):
            edges = edges([name for name in names if name not in votes])
        pairs = checked_edges(self.nodes, edges)
        after = descendants(votes, [edge for edge in pairs if not delays.get(edge)])
        self.closing = tuple(name for name in names if name in after)
        self.agents = tuple(name for name in names if name not in after)
        heard = {listener for _, listener in pairs}
        silent = [vote for vote in votes if vote not in heard]
        self.edges = pairs + tuple((agent, vote) for vote in silent for agent in self.agents)
        self.communication_edges = tuple(edge for edge in pairs if edge[1] not in after)
        check_there(self.edges, delays, "delay")
        self.delays = MappingProxyType({e: delays[e] for e in self.edges if delays.get(e)})
        self._check_delays()
        self.immediate = tuple(edge for edge in self.edges if edge not in self.delays)
        self.predecessors = MappingProxyType(predecessors(names, self.edges))
        within = predecessors(names, self.immediate)
        topological(within)
        self.sources = tuple(name for name in names if not within[name])

    def _check_delays(self) -> None:
        for (sender, listener), delay in self.delays.items():
            once, why = {sender, listener}.intersection(self.closing), ""
            if sender == listener:
                why = "a node receives its own message of the last round without an edge"
            elif once:
                why = (
                    f"'{min(once)}' is called once, after the last round, so only edges between "
                    "agents can have a delay"
                )
            elif not 0 < delay < self.rounds:
                why = (
                    f"expected at least 1 round, and less than rounds={self.rounds}, or nothing is "
                    "ever delivered; call graph.with_rounds() first"
                )
            if why:
                raise GraphError(f"edge {sender} -> {listener} with delay={delay}: {why}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(
                f"a graph is immutable: '{name}' cannot be set; make another graph, as with "
                "graph.with_rounds(3), graph.with_edge(...) or graph.with_node(...)"
            )
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # A mapping proxy cannot be pickled or copied.
        return partial(type(self), **self._options()), (dict(self.nodes), self.edges)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[str]:
        """The names of the nodes, in the order given."""
        return iter(self.nodes)

    def __getitem__(self, name: str) -> Node:
        """The node with that name. Raises ``GraphError`` if there is none."""
        if name not in self.nodes:
            raise GraphError(unknown("node", name, self.nodes))
        return self.nodes[name]

    # -- other graphs from this one -----------------------------------------------------------

    def with_edges(
        self, edges: Iterable[Edge], *, delays: Mapping[Edge, int] | None = None
    ) -> Self:
        """The graph with other edges among its agents; edges into votes stay.

        ``delays``: delays of some of the edges, others are ignored; ``None``: edges that are in
        this graph keep theirs.
        """
        new = [(sender, listener) for sender, listener in edges]
        gone = {listener for _, listener in new}.union(self.agents)
        pairs = [*new, *(edge for edge in self.edges if edge[1] not in gone)]
        if delays is None:
            return self._with(edges=pairs)
        return self._with(edges=pairs, delays={e: delays[e] for e in new if e in delays})

    def with_edge(
        self, sender: str, listener: str, *, when: Condition | None = None, delay: int = 0
    ) -> Self:
        """The graph with one more edge, which is the last in the listener's order.

        Args:
            when: which of the sender's messages travel over it; ``None``: all.
            delay: how many rounds later a message is delivered. With 1 or more, the edge may close
                a cycle, as feedback does: ``graph.with_edge("critic", "writer", delay=1)``.

        Raises ``GraphError`` if the edge is there, closes a cycle without a delay, or could never
        deliver a message.
        """
        edge = (sender, listener)
        if edge in self.edges:
            raise GraphError(
                f"there is an edge {sender} -> {listener} already; remove it first with "
                f"without_edge('{sender}', '{listener}')"
            )
        conditions = {**self.when} if when is None else {**self.when, edge: when}
        delays = {**self.delays, edge: delay}
        return self._with(edges=[*self.edges, edge], when=conditions, delays=delays)

    def without_edge(self, sender: str, listener: str) -> Self:
        """The graph without one edge. Raises ``GraphError`` if there is no such edge, or a vote
        would have none left."""
        check_there(self.edges, [(sender, listener)], "remove")
        return self._without([(sender, listener)], self.nodes)

    def with_node(self, node: Node, *, name: str | None = None, hears: Iterable[str] = ()) -> Self:
        """The graph with one more node (which may be a graph), or with a node replaced."""
        label = node.id if name is None else name
        heard = [(sender, label) for sender in hears]
        return self._with(nodes={**self.nodes, label: node}, edges=[*self.edges, *heard])

    def without_node(self, name: str) -> Self:
        """The graph without one node and its edges; so it no longer takes part in votes."""
        self[name]  # raises if there is no such node
        if name == self.output:
            raise GraphError(f"'{name}' is the output; make another node the output first")
        nodes = {label: node for label, node in self.nodes.items() if label != name}
        return self._without([edge for edge in self.edges if name in edge], nodes)

    def _without(self, gone: Sequence[Edge], nodes: Mapping[str, Node]) -> Self:
        left = [edge for edge in self.edges if edge not in gone]
        heard = {listener for _, listener in left}
        for label, node in nodes.items():
            if scope_of(node) is not None and label not in heard:
                raise GraphError(f"'{label}' would have no incoming edge; remove that node instead")
        return self._with(nodes=nodes, edges=left)

    def with_rounds(self, rounds: int, *, until: Until | EllipsisType | None = ...) -> Self:
        """The graph with another number of rounds, at most so many with ``until``.

        By default, the present function ``until`` stays; ``None``: all rounds are made.
        """
        return self._with(
            rounds=rounds, until=self.until if isinstance(until, EllipsisType) else until
        )

    def named(self, name: str) -> Self:
        """The same graph under another name, for use as a node of another graph."""
        return self._with(name=name)

    def _options(self) -> dict[str, Any]:
        """The arguments that made this graph, except nodes and edges."""
        plain = {name: getattr(self, name) for name in ("output", "rounds", "name", "until")}
        return {**plain, "when": dict(self.when), "delays": dict(self.delays)}

    def _with(
        self,
        *,
        nodes: Mapping[str, Node] | None = None,
        edges: Iterable[Edge] | None = None,
        **changes: Any,
    ) -> Self:
        """A copy with some parts replaced. Conditions and delays stay with their edge."""
        pairs = self.edges if edges is None else tuple(edges)
        left, options = frozenset(pairs), self._options()
        for name in ("when", "delays"):
            options[name] = {edge: kept for edge, kept in options[name].items() if edge in left}
        return type(self)(nodes or self.nodes, pairs, **(options | changes))

    def __rshift__(self, other: Dag | Node | Sequence[Dag | Node]) -> Self:
        """Join two graphs: the first nodes of the other receive this one's output. A list fans
        out: ``graph >> [a, b] >> c`` gives ``c`` both messages."""
        parts: Sequence[Any] = other if isinstance(other, list | tuple) else [other]
        if not parts:
            raise GraphError("'>> []' is an empty list; put at least one node in it")
        whole, ends = self, list[str]()
        for part in parts:
            new = part
            if not isinstance(new, Dag):
                new = type(self)([part], rounds=self.rounds)
                new = new.named(new.output)
            _check_fits(whole, new)
            joints = [(end, name) for name in new.sources for end in self.ends]
            whole = whole._with(
                nodes={**whole.nodes, **new.nodes},
                edges=[*whole.edges, *joints, *new.edges],
                output=new.output,
                when={**whole.when, **new.when},
                delays={**whole.delays, **new.delays},
                until=whole.until or new.until,
            )
            ends += new.ends
        whole.__dict__["ends"] = tuple(ends)  # nobody else has it yet
        return whole

    def to_json(self) -> str:
        """The structure as JSON, a fingerprint of the graph: names, classes of nodes and edges.

        Functions (conditions, ``until``) are written by name; weights and settings are not.
        """
        return json.dumps(_structure(self), ensure_ascii=False, separators=(",", ":"))


def _check_fits(graph: Dag, new: Dag) -> None:
    """Raise if two graphs cannot be joined to one."""
    twice = next((name for name in new.nodes if name in graph.nodes), None)
    why, nest = "", "Nest one as a node of the other with with_node()"
    if twice is not None:
        why = (
            f": two nodes are called '{twice}'. Name one by a mapping {{name: node}}, or nest a "
            "graph in the other with with_node()"
        )
    elif new.rounds != graph.rounds or (graph.rounds > 1 and graph.closing and len(new) > 1):
        why = (
            f" ({graph.rounds} and {new.rounds} rounds): both need equal rounds, and a graph with "
            f"a vote cannot repeat its rounds. {nest}"
        )
    elif graph.until is not None and new.until not in (None, graph.until):
        why = f": the two graphs have different 'until' functions. {nest}"
    if why:
        raise GraphError(f"cannot compose '{graph.name}' with '{new.name}'{why}")


def _structure(graph: Dag) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": graph.name,
        "nodes": [_entry(name, node) for name, node in graph.nodes.items()],
        "edges": graph.edges,
        "output": graph.output,
        "rounds": graph.rounds,
        "when": [[*e, function_name(graph.when[e])] for e in graph.edges if e in graph.when],
        "delays": [[*edge, delay] for edge, delay in graph.delays.items()],
        "until": "" if graph.until is None else function_name(graph.until),
    }
    return {key: value for key, value in found.items() if value not in ([], "")}


def _entry(name: str, node: Node) -> dict[str, Any]:
    found: dict[str, Any] = {"id": name, "kind": type(node).__name__}
    inner, parts = inner_graph(node), parts_of(node)
    if inner is not None:
        found["inside"] = _structure(inner)
    elif parts:
        found["inside"] = [_entry(*part) for part in parts.items()]
    return found


def inner_graph(node: object) -> Dag | None:
    """The graph that a node runs, such as itself; ``None`` for a node that runs none."""
    found = node if isinstance(node, Dag) else getattr(node, "graph", None)
    return found if isinstance(found, Dag) else None
