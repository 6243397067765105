"""Checks of the parts of a graph: names, nodes and edges."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from swarm_ui.errors import GraphError
from swarm_ui.node import Node, parts_of
from swarm_ui.topology import Edge


def named(nodes: Iterable[Node] | Mapping[str, Node]) -> dict[str, Node]:
    """Nodes by name, in the order given."""
    if parts_of(nodes):
        raise GraphError("nodes: expected a list of nodes, got a graph; write [graph] to nest it")
    given: Iterable[tuple[Any, Node]] = (
        nodes.items()
        if isinstance(nodes, Mapping)
        else [(getattr(n, "id", None), n) for n in nodes]
    )
    members: dict[str, Node] = {}
    for name, node in given:
        label = name if isinstance(nodes, Mapping) else node
        if isinstance(node, type):
            raise GraphError(f"{label!r} is not a node but a class: write {node.__name__}(...)")
        if not callable(node) or name is None:
            raise GraphError(
                f"{label!r} is not a node: it cannot be called, or has no id; @function_node makes "
                "a node of a function, and a mapping {name: node} gives names"
            )
        check_name(str(name), members)
        members[str(name)] = node
    if not members:
        raise GraphError("a graph needs at least one node")
    return members


def check_name(name: str, members: Container[str] = ()) -> None:
    """Raise unless a name can be one of a node beside those of ``members``."""
    if name in members:
        raise GraphError(
            f"two nodes are called '{name}'; rename one of them, or give names by a mapping "
            "{name: node}"
        )
    fits = name and name == name.strip() and name.isprintable()
    if not fits or ":" in name or "/" in name:
        raise GraphError(
            "a name must be printable, without spaces at its beginning or end, and without ':' and "
            f"'/', which are for message ids and nested names; got {name!r}"
        )


def checked_edges(members: Mapping[str, Node], edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """The edges as a tuple of pairs, after checking that names exist and no edge is repeated."""
    pairs: dict[Edge, None] = {}
    for edge in edges:
        pair = () if isinstance(edge, str) else tuple(edge)
        if len(pair) != 2 or not (type(pair[0]) is type(pair[1]) is str):
            raise GraphError(
                "edges are pairs (sender, listener) of names, as in [('ada', 'grace')], not of "
                f"nodes; got {edge!r}"
            )
        for end in pair:
            if end not in members:
                raise GraphError(unknown(f"edge {pair[0]} -> {pair[1]}: node", end, members))
        if pair in pairs:
            raise GraphError(f"edge {pair[0]} -> {pair[1]} is given twice")
        pairs[pair] = None
    return tuple(pairs)


def check_there(edges: Iterable[Edge], wanted: Iterable[Edge], purpose: str) -> None:
    """Raise for an edge that is not among ``edges``; the error names the opposite edge, if any."""
    there = frozenset(edges)
    for sender, listener in wanted:
        if (sender, listener) not in there:
            other = f"; there is {listener} -> {sender}" if (listener, sender) in there else ""
            raise GraphError(f"there is no edge {sender} -> {listener} to {purpose}{other}")


def listed(names: Iterable[str]) -> str:
    """The first of many names, as a text."""
    found = list(names)
    return ", ".join(found[:8]) + ", ..." * (len(found) > 8)


def unknown(what: str, name: str, members: Iterable[str]) -> str:
    """The error text for a name that is not in a graph; it suggests the closest existing name."""
    close = get_close_matches(name, members := list(members), n=1)
    hint = f" (did you mean '{close[0]}'?)" if close else ""
    return f"{what} '{name}' is not in the graph{hint}; it has {listed(members)}"


def ambiguous(ends: Iterable[str]) -> GraphError:
    """The error of a graph with several nodes that nobody listens to."""
    return GraphError(
        f"the output is ambiguous: no node receives the messages of {listed(ends)}. Append a vote "
        "or another node with >>, or set 'output'"
    )


def function_name(function: object) -> str:
    """The name of a function; for other callables that of their class."""
    return str(getattr(function, "__name__", type(function).__name__))
