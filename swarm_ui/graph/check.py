"""Checks of the parts of a graph: names, nodes, edges, votes and the output."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import iscoroutinefunction

from swarm_ui.errors import GraphError
from swarm_ui.node import Node, Until, parts_of, scope_of
from swarm_ui.topology import Edge, descendants


def closes(node: Node) -> bool:
    """Whether a node runs once, after the last round."""
    return scope_of(node) is not None


def named(nodes: Iterable[Node] | Mapping[str, Node]) -> dict[str, Node]:
    """Nodes by name, in the order given."""
    if parts_of(nodes):
        raise GraphError("nodes: expected a list of nodes, got a graph; write [graph] to nest it")
    given = nodes.items() if isinstance(nodes, Mapping) else ((None, node) for node in nodes)
    members: dict[str, Node] = {}
    for label, node in given:
        name = getattr(node, "id", None) if label is None else label
        if isinstance(node, type) or not callable(node) or name is None:
            wrong = (
                ", because it has no id; @function_node makes one of a function, and a mapping "
                "{name: node} gives names"
            )
            if isinstance(node, type):
                wrong = f" but a class: write {node.__name__}(...)"
            elif not callable(node):
                wrong = f": a {type(node).__name__} cannot be called"
            raise GraphError(f"{label or node!r} is not a node{wrong}")
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


def check_heard(members: Mapping[str, Node], edges: Iterable[Edge]) -> None:
    """Raise if a closing node has no edge into it."""
    listeners = {listener for _, listener in edges}
    for name, node in members.items():
        if closes(node) and name not in listeners:
            raise GraphError(f"'{name}' would have no incoming edge; remove that node instead")


def unknown(what: str, name: str, members: Mapping[str, Node]) -> str:
    """The error text for a name that is not in a graph; it suggests the closest existing name."""
    inside = list(_inside(members))
    if name in inside:
        hint = " but inside a graph of its own: change that one and put it back with with_node()"
    else:
        paths = [path for path in inside if path.rpartition("/")[2] == name]
        close = paths or get_close_matches(name, [*members, *inside], n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
    known = ", ".join(list(members)[:8]) + (", ..." if len(members) > 8 else "")
    return f"{what} '{name}' is not in the graph{hint}; it has {known}"


def _inside(members: Mapping[str, Node]) -> Iterator[str]:
    """Full names of all nodes in nested graphs, such as ``team/agent_0``."""
    for name, node in members.items():
        parts = parts_of(node)
        yield from (f"{name}/{path}" for path in (*parts, *_inside(parts)))


def electorate(
    members: Mapping[str, Node], edges: tuple[Edge, ...], delays: Mapping[Edge, int]
) -> tuple[Edge, ...]:
    """The edges, with edges from all agents into closing nodes that have none."""
    listeners = {listener for _, listener in edges}
    silent = [n for n, node in members.items() if closes(node) and n not in listeners]
    if not silent:
        return edges
    at_once = [edge for edge in edges if not delays.get(edge)]
    after = descendants((n for n, node in members.items() if closes(node)), at_once)
    agents = [name for name in members if name not in after]
    return edges + tuple((agent, vote) for vote in silent for agent in agents)


def only_sink(members: Mapping[str, Node], edges: tuple[Edge, ...]) -> str:
    """The only node without successors."""
    speaking = {sender for sender, _ in edges}
    sinks = [name for name in members if name not in speaking]
    if len(sinks) > 1:
        told = ", ".join(sinks[:8]) + (f" and {len(sinks) - 8} more" if len(sinks) > 8 else "")
        raise GraphError(
            f"the output is ambiguous: no node receives the messages of {told}. Connect them to a "
            "vote or another node, or set 'output'"
        )
    return sinks[0]


def check_delays(edges: Sequence[Edge], delays: Mapping[Edge, int], rounds: int) -> None:
    """Raise for a delay that is not of an edge, or with which no message is ever delivered."""
    check_there(edges, delays, "delay")
    for (sender, listener), delay in delays.items():
        if delay < 0 or (delay and sender == listener) or delay >= rounds:
            raise GraphError(
                f"edge {sender} -> {listener} with delay={delay}: expected at least 0 rounds, and "
                f"less than rounds={rounds}, or nothing is ever delivered (graph.with_rounds() "
                "first); a node receives its own message of the last round without an edge"
            )


def check_until(until: Until | None) -> Until | None:
    """The function; raises for a coroutine function, whose result is always true."""
    if iscoroutinefunction(until):
        told = f"until: '{function_name(until)}' is a coroutine function; use a plain function"
        raise GraphError(told)
    return until


def check_there(edges: Iterable[Edge], wanted: Iterable[Edge], purpose: str) -> None:
    """Raise for an edge that is not among ``edges``; the error names the opposite edge, if any."""
    there = frozenset(edges)
    for sender, listener in wanted:
        if (sender, listener) not in there:
            other = f"; there is {listener} -> {sender}" if (listener, sender) in there else ""
            raise GraphError(f"there is no edge {sender} -> {listener} to {purpose}{other}")


def function_name(function: object) -> str:
    """The name of a function; for other callables that of their class."""
    return str(getattr(function, "__name__", type(function).__name__))
