"""Conversion of graphs to and from JSON and networkx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from swarm_ui.errors import UNREADABLE, GraphError, brief
from swarm_ui.graph.conditions import ConditionNames, Key, Otherwise, RouteBy, Value
from swarm_ui.graph.dag import Dag
from swarm_ui.graph.mapped_graph import MappedGraph, inner_graph
from swarm_ui.graph.topology import Edge
from swarm_ui.node import Condition, Node, Until

if TYPE_CHECKING:
    import networkx


W = TypeVar("W", bound=Dag)
Function = Condition | Key | Until
"""Objects that a structure refers to by name only."""

Functions = Mapping[str, Function] | Mapping[Edge, Function] | Mapping[str | Edge, Function]
"""Functions, keyed by name or by edge."""

# -- what is written ------------------------------------------------------------------------------


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node of a structure, or the fallback with that name."""

    id: str
    kind: str
    """Class of the node."""
    inside: Structure | None = None
    """Structure of a nested graph."""
    over: str = ""
    """Name of the function that returns the items, for a graph that is run for every item."""


class ConditionEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The condition of an edge."""

    edge: Edge
    name: str
    """Name of the function; see :class:`ConditionNames`."""
    none_of: tuple[str, ...] = ()
    """Names of other conditions; this one is true where all of them are false."""
    route: RouteEntry | None = None
    """The function gives a value by which messages are routed; ``None``: it gives a bool."""


class RouteEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The values of a routing function for which a message is sent over an edge."""

    value: Value | None = None
    """The value of this route; ``None``: any value that is not in ``known``."""
    known: tuple[Value, ...]
    complete: bool = False


class DelayEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge that delivers a message in a later round."""

    edge: Edge
    rounds: int


class Structure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A graph without its models, weights and functions."""

    version: int
    """2 if the graph has delays, ``until``, routes by value, or nodes that run a graph for every
    item; these need a release that reads version 2. Otherwise 1."""
    name: str
    nodes: tuple[NodeEntry, ...]
    edges: tuple[Edge, ...]
    output: str
    rounds: int = 1
    when: tuple[ConditionEntry, ...] = ()
    fallbacks: tuple[NodeEntry, ...] = ()
    delays: tuple[DelayEntry, ...] = ()
    until: str = ""
    """Name of the predicate that ends the rounds early."""


def structure(graph: Dag, names: ConditionNames | None = None) -> Structure:
    """The structure of a graph, nested graphs included."""
    names = names or ConditionNames()

    def entry(name: str, node: Node) -> NodeEntry:
        inner = inner_graph(node)
        inside = None if inner is None else structure(inner, names)
        over = names.function(node.over) if isinstance(node, MappedGraph) else ""
        return NodeEntry(id=name, kind=type(node).__name__, inside=inside, over=over)

    def condition(edge: Edge, found: Condition) -> ConditionEntry:
        if isinstance(found, RouteBy):
            route = RouteEntry(value=found.value, known=found.known, complete=found.complete)
            return ConditionEntry(edge=edge, name=names.function(found.by), route=route)
        others = found.conditions if isinstance(found, Otherwise) else ()
        name = names.of(found)
        return ConditionEntry(edge=edge, name=name, none_of=tuple([names.of(o) for o in others]))

    nodes = [entry(name, node) for name, node in graph.nodes.items()]
    when = [condition(edge, graph.when[edge]) for edge in graph.edges if edge in graph.when]
    fallbacks = [entry(n, graph.fallbacks[n]) for n in graph.nodes if n in graph.fallbacks]
    return Structure(
        version=2 if _is_new(graph) else 1,
        name=graph.name,
        nodes=tuple(nodes),
        edges=graph.edges,
        output=graph.output,
        rounds=graph.rounds,
        when=tuple(when),
        fallbacks=tuple(fallbacks),
        delays=tuple([DelayEntry(edge=edge, rounds=d) for edge, d in graph.delays.items()]),
        until="" if graph.until is None else names.function(graph.until),
    )


def _is_new(graph: Dag) -> bool:
    """Whether a graph, or a graph inside it, needs version 2 of the structure format."""
    by_value = any(isinstance(condition, RouteBy) for condition in graph.when.values())
    mapped = any(isinstance(node, MappedGraph) for node in graph.nodes.values())
    inside = filter(None, map(inner_graph, graph.nodes.values()))
    new = bool(graph.delays) or graph.until is not None or by_value or mapped
    return new or any(map(_is_new, inside))


def to_json(graph: Dag) -> str:
    return msgspec.json.encode(structure(graph)).decode()


# -- what is read ---------------------------------------------------------------------------------


class _Version(msgspec.Struct):
    version: int


def from_json(
    graph: type[W],
    text: str,
    nodes: Mapping[str, Node],
    when: Functions,
    fallbacks: Mapping[str, Node],
) -> W:
    """Read a graph from JSON; see :meth:`swarm_ui.graph.graph.CollabGraph.from_json`."""
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version not in (1, 2):
            raise GraphError(
                f"from_json: a graph structure of version {version}; this release reads 1 and 2. "
                "Use the version of swarm-ui that wrote it"
            )
        found = msgspec.json.decode(text, type=Structure)
    except UNREADABLE as error:
        raise GraphError(f"from_json: not the structure of a graph: {brief(error)}") from error
    missing = list(_missing(found.nodes, nodes, ""))
    if missing:
        raise GraphError(f"no node given for: {', '.join(missing)}; pass them in nodes={{...}}")
    reader = _Reader(graph, nodes, when, fallbacks)
    reader.check(found)
    read: W = reader.graph(found)
    return read


def _missing(entries: Iterable[NodeEntry], given: Mapping[str, Node], path: str) -> Iterator[str]:
    for entry in entries:
        full = path + entry.id
        if full in given:
            continue
        if (
            entry.inside is not None
            and not entry.over
            and any(name.startswith(full + "/") for name in given)
        ):
            yield from _missing(entry.inside.nodes, given, full + "/")
        else:
            yield full


def _nested(found: Structure, path: str = "") -> Iterator[tuple[str, Structure]]:
    """A structure and all nested ones, each with its prefix, such as ``"team/"``."""
    yield path, found
    for entry in found.nodes:
        if entry.inside is not None:
            yield from _nested(entry.inside, f"{path}{entry.id}/")


class _Reader:
    """Makes graphs from structures. ``path``: the prefix of a nested graph, such as ``"team/"``."""

    def __init__(
        self,
        kind: type[Any],
        nodes: Mapping[str, Node],
        when: Functions,
        fallbacks: Mapping[str, Node],
    ) -> None:
        self._kind, self._nodes, self._fallbacks = kind, nodes, fallbacks
        self._named: dict[str, Any] = {
            key: found for key, found in when.items() if isinstance(key, str)
        }
        self._placed: dict[Edge, Any] = {
            key: found for key, found in when.items() if not isinstance(key, str)
        }

    def check(self, found: Structure) -> None:
        """Raise if a condition or a fallback is given for an edge or a node without one."""
        parts = list(_nested(found))
        edges = {(path + e.edge[0], path + e.edge[1]) for path, s in parts for e in s.when}
        names = {path + entry.id for path, s in parts for entry in s.fallbacks}
        for edge in self._placed:
            if edge not in edges:
                raise GraphError(
                    f"the structure has no condition for an edge {' -> '.join(edge)}; "
                    "leave this edge out of 'when'"
                )
        for name in self._fallbacks:
            if name not in names:
                raise GraphError(
                    f"the structure has no fallback for '{name}'; leave it out of 'fallbacks'"
                )

    def graph(self, found: Structure, path: str = "") -> Any:
        nodes = {entry.id: self._node(entry, path + entry.id) for entry in found.nodes}
        fallbacks = {entry.id: self._fallback(entry, path + entry.id) for entry in found.fallbacks}
        when, until = self._conditions(found.when, path), self._until(found, path)
        try:
            return self._kind(
                nodes, found.edges, found.output, found.rounds, found.name,
                when=when, fallbacks=fallbacks, until=until,
                delays={entry.edge: entry.rounds for entry in found.delays},
            )  # fmt: skip
        except GraphError as error:
            raise GraphError(f"inside '{path[:-1]}': {error}" if path else str(error)) from error

    def _until(self, found: Structure, path: str) -> Until | None:
        if not found.until:
            return None
        if found.until not in self._named:
            which = f"'{path[:-1]}'" if path else "the graph"
            raise GraphError(
                f"'{found.until}' ends the rounds of {which}: "
                f"give the function as when={{'{found.until}': ...}}"
            )
        until: Until = self._named[found.until]
        return until

    def _node(self, entry: NodeEntry, full: str) -> Node:
        if full in self._nodes or entry.inside is None:
            return self._nodes[full]
        found: Node = self.graph(entry.inside, full + "/")
        return found

    def _fallback(self, entry: NodeEntry, full: str) -> Node:
        if full not in self._fallbacks:
            raise GraphError(
                f"node '{full}' has a fallback, which the JSON names but does not contain (class "
                f"{entry.kind}): pass it as fallbacks={{'{full}': ...}}"
            )
        return self._fallbacks[full]

    def _conditions(self, entries: Sequence[ConditionEntry], path: str) -> dict[Edge, Condition]:
        places = {e.edge: (path + e.edge[0], path + e.edge[1]) for e in entries}
        given = {edge: self._placed[at] for edge, at in places.items() if at in self._placed}
        functions = {edge: f.by if isinstance(f, RouteBy) else f for edge, f in given.items()}
        known = {e.name: functions[e.edge] for e in entries[::-1] if e.edge in given}
        known |= self._named
        found: dict[Edge, Condition] = {}
        for entry in entries:
            own = given.get(entry.edge)
            if own is not None:
                whole = entry.route is None or isinstance(own, RouteBy)
                found[entry.edge] = own if whole else _condition(entry, {entry.name: own})
                continue
            for name in entry.none_of or (entry.name,):
                if name not in known:
                    raise GraphError(
                        f"edge {' -> '.join(places[entry.edge])} has the condition '{name}': "
                        f"give the function as when={{'{name}': ...}}"
                    )
            found[entry.edge] = _condition(entry, known)
        return found


def _condition(entry: ConditionEntry, known: Mapping[str, Any]) -> Condition:
    """The condition of an entry, from the functions by name."""
    if entry.route is not None:
        route = entry.route
        return RouteBy(known[entry.name], route.value, route.known, route.complete)
    others = tuple([known[name] for name in entry.none_of])
    found: Condition = Otherwise(others) if others else known[entry.name]
    return found


# -- networkx -------------------------------------------------------------------------------------


def to_networkx(graph: Dag) -> networkx.DiGraph[str]:
    import networkx

    digraph: networkx.DiGraph[str] = networkx.DiGraph(
        name=graph.name, output=graph.output, rounds=graph.rounds
    )
    for name, node in graph.nodes.items():
        digraph.add_node(name, node=node)
        if name in graph.fallbacks:
            digraph.nodes[name]["fallback"] = graph.fallbacks[name]
    for place, edge in enumerate(graph.edges):
        digraph.add_edge(*edge, place=place)
        if edge in graph.when:
            digraph.edges[edge]["when"] = graph.when[edge]
        if edge in graph.delays:
            digraph.edges[edge]["delay"] = graph.delays[edge]
    if graph.until is not None:
        digraph.graph["until"] = graph.until
    return digraph


def from_networkx(
    graph: type[W],
    digraph: networkx.DiGraph[Any],
    nodes: Mapping[str, Node],
    output: str | None,
    rounds: int | None,
    name: str | None,
) -> W:
    """Convert a ``networkx.DiGraph`` to a graph; see
    :meth:`swarm_ui.graph.graph.CollabGraph.from_networkx`."""
    if not digraph.is_directed():
        raise GraphError(
            "the edges of an undirected graph do not say which node is the sender; use a "
            "directed graph"
        )
    members, fallbacks = _members(digraph, nodes)
    edges: list[tuple[float, Edge]] = []
    when: dict[Edge, Condition] = {}
    delays: dict[Edge, int] = {}
    for sender, listener, data in digraph.edges(data=True):
        place, edge = data.get("place"), (str(sender), str(listener))
        edges.append((place if isinstance(place, int) else inf, edge))
        if data.get("when") is not None:
            when[edge] = data["when"]
        if data.get("delay") is not None:
            delays[edge] = data["delay"]
    edges.sort(key=lambda edge: edge[0])
    # Only to_networkx() writes all three; in other graphs they have other meanings.
    ours = {"name", "output", "rounds"} <= digraph.graph.keys()
    said: Mapping[str, Any] = digraph.graph if ours else {}
    return graph(
        members,
        [edge for _, edge in edges],
        output=said.get("output") if output is None else output,
        rounds=said.get("rounds", 1) if rounds is None else rounds,
        name=said.get("name", "team") if name is None else name,
        when=when,
        fallbacks=fallbacks,
        delays=delays,
        until=said.get("until"),
    )


def _members(
    digraph: networkx.DiGraph[Any], nodes: Mapping[str, Node]
) -> tuple[dict[str, Node], dict[str, Node]]:
    """Nodes and fallbacks by the labels' text."""
    labels: dict[str, Any] = {}
    members: dict[str, Node] = {}
    fallbacks: dict[str, Node] = {}
    for label, data in digraph.nodes(data=True):
        name = str(label)
        if name in labels:
            raise GraphError(
                f"labels {labels[name]!r} and {label!r} would both be called '{name}'; "
                "relabel one of them"
            )
        labels[name] = label
        node = nodes.get(name, data.get("node"))
        if node is None:
            raise GraphError(
                f"no node given for '{name}': set its 'node' attribute or pass nodes={{...}}"
            )
        members[name] = node
        if data.get("fallback") is not None:
            fallbacks[name] = data["fallback"]
    return members, fallbacks
