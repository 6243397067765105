"""Checks of the parts of a graph: names, nodes, edges, conditions, votes and the output."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import iscoroutinefunction
from types import MappingProxyType

from swarm_ui.errors import GraphError
from swarm_ui.graph.topology import Edge, descendants
from swarm_ui.node import Condition, Node, Until, parts_of, scope_of


def closes(node: Node) -> bool:
    """Whether a node runs once, after the last round."""
    return scope_of(node) is not None


def named(nodes: Iterable[Node] | Mapping[str, Node]) -> dict[str, Node]:
    """Nodes by name, in the order given."""
    if parts_of(nodes):
        raise GraphError("nodes: expected a list of nodes, got a graph; write [graph] to nest it")
    if isinstance(nodes, Mapping):
        pairs = list(nodes.items())
    else:
        pairs = [(_id(node), node) for node in nodes]
    check_unique([name for name, _ in pairs])
    if not pairs:
        raise GraphError("a graph needs at least one node")
    for name, node in pairs:
        check_name(name)
        check_speaks(f"'{name}'", node)
    return dict(pairs)


def _id(node: Node) -> str:
    if not isinstance(node, type) and hasattr(node, "id"):
        return node.id
    check_speaks(repr(node), node)
    raise GraphError(
        f"{node!r} has no id, so it is not a node; @function_node makes one of a function, and a "
        "mapping {name: node} gives names"
    )


def check_speaks(what: str, node: Node) -> None:
    """Check that a node has a name and can be called."""
    if isinstance(node, type):
        raise GraphError(f"{what} is not a node but a class: write {node.__name__}(...)")
    if not callable(node):
        raise GraphError(f"{what} is not a node: a {type(node).__name__} cannot be called")


def check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise GraphError(
            "a name must be a non-empty string without spaces at its beginning or end, "
            f"got {name!r}"
        )
    if ":" in name or "/" in name:
        raise GraphError(f"{name!r}: ':' and '/' are reserved for message ids and nested names")
    if not name.isprintable() and any(unicodedata.category(c) in _UNFIT for c in name):
        raise GraphError(f"{name!r}: names must not contain line breaks or control characters")


_UNFIT = {"Cc", "Cs", "Zl", "Zp"}


def check_rounds(rounds: int) -> None:
    if not isinstance(rounds, int) or rounds < 1:
        raise GraphError(f"rounds must be a whole number of at least 1, got {rounds!r}")


def check_unique(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise GraphError(
                f"two nodes are called '{name}'; rename one of them, "
                "or give names by a mapping {name: node}"
            )
        seen.add(name)


def checked_edges(members: Mapping[str, Node], edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """The edges as a tuple of pairs, after checking that names exist and no edge is repeated."""
    pairs: dict[Edge, None] = {}
    if isinstance(edges, str | Mapping):
        raise GraphError(
            "edges: expected a list of pairs of names, as in [('ada', 'grace')], got "
            f"a {type(edges).__name__}"
        )
    for edge in edges:
        if not isinstance(edge, tuple | list) or len(edge) != 2:
            raise GraphError(f"an edge is a pair (sender, listener) of names, got {edge!r}")
        sender, listener = edge
        for end in (sender, listener):
            if not isinstance(end, str):
                name = getattr(end, "id", None)
                hint = f"; write '{name}'" if isinstance(name, str) else ""
                raise GraphError(
                    "an edge is a pair (sender, listener) of names, not of nodes: got "
                    f"an object of type {type(end).__name__}{hint}"
                )
            if end not in members:
                where = f"edge {sender} -> {listener}: node"
                raise GraphError(unknown(where, end, members))
        if (sender, listener) in pairs:
            raise GraphError(f"edge {sender} -> {listener} is given twice")
        pairs[sender, listener] = None
    return tuple(pairs)


def check_heard(members: Mapping[str, Node], edges: Iterable[Edge]) -> None:
    """Raise if a closing node has no edge into it."""
    listeners = {listener for _, listener in edges}
    for name, node in members.items():
        if closes(node) and name not in listeners:
            raise GraphError(f"'{name}' would have no incoming edge; remove that node instead")


def unknown(what: str, name: object, members: Mapping[str, Node]) -> str:
    """The error text for a name that is not in a graph; it suggests the closest existing name."""
    known = ", ".join(list(members)[:8]) + (", ..." if len(members) > 8 else "")
    return f"{what} '{name}' is not in the graph{_hint(str(name), members)}; it has {known}"


def _hint(name: str, members: Mapping[str, Node]) -> str:
    inside = list(_inside(members))
    if name in inside:
        around = name.rpartition("/")[0]
        return (
            f" but inside '{around}', a graph of its own: change that one and put it back "
            "with with_node()"
        )
    paths = [path for path in inside if path.rpartition("/")[2] == name]
    close = paths or get_close_matches(name, [*members, *inside], n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _inside(members: Mapping[str, Node]) -> Iterator[str]:
    """Full names of all nodes in nested graphs, such as ``team/agent_0``."""
    for name, node in members.items():
        parts = parts_of(node)
        yield from (f"{name}/{label}" for label in parts)
        yield from (f"{name}/{path}" for path in _inside(parts))


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


def check_conditions(
    edges: Iterable[Edge], when: Mapping[Edge, Condition]
) -> Mapping[Edge, Condition]:
    """The conditions, after checking that each belongs to an edge and is callable."""
    there = frozenset(edges)
    for edge, condition in when.items():
        sender, listener = edge
        if edge not in there:
            raise GraphError(no_edge(edge, "put a condition on", there))
        if not callable(condition):
            raise GraphError(
                f"edge {sender} -> {listener}: a condition is a function from a message to a "
                f"bool, got a {type(condition).__name__}"
            )
    return MappingProxyType(dict(when))


def check_delays(edges: Iterable[Edge], delays: Mapping[Edge, int]) -> Mapping[Edge, int]:
    """The delays of at least 1, in edge order. Each must belong to an edge between two nodes."""
    there = tuple(edges)
    known = frozenset(there)
    for edge, delay in delays.items():
        if edge not in known:
            raise GraphError(no_edge(edge, "delay", known))
        sender, listener = edge
        if not isinstance(delay, int) or isinstance(delay, bool) or delay < 0:
            raise GraphError(
                f"edge {sender} -> {listener}: delay must be a whole number of rounds, at least 0, "
                f"got {delay!r}"
            )
        if delay and sender == listener:
            raise GraphError(
                f"edge {sender} -> {listener}: a node receives its own message of the last round "
                "anyway; remove this edge"
            )
    return MappingProxyType({edge: delays[edge] for edge in there if delays.get(edge)})


def check_delivered(delays: Mapping[Edge, int], rounds: int, closing: Iterable[str]) -> None:
    """Raise if a delayed edge could never deliver a message."""
    after = frozenset(closing)
    for (sender, listener), delay in delays.items():
        for name in (sender, listener):
            if name in after:
                raise GraphError(
                    f"edge {sender} -> {listener} with delay={delay}: '{name}' is called once, "
                    "after the last round, so only edges between agents can have a delay"
                )
        if delay >= rounds:
            raise GraphError(
                f"edge {sender} -> {listener} with delay={delay} never delivers a message in "
                f"{_rounds(rounds)}, it needs at least {delay + 1}: set rounds={delay + 1} or "
                f"more, as in graph.with_rounds({delay + 1}), before the edge is added"
            )


def _rounds(rounds: int) -> str:
    return f"{rounds} round{'s' * (rounds > 1)}"


def check_until(until: Until | None) -> Until | None:
    """The predicate, after checking that it can be called and is not a coroutine function."""
    if until is not None and not callable(until):
        raise GraphError(
            "until: expected a function from the newest messages to a bool, "
            f"got a {type(until).__name__}"
        )
    if iscoroutinefunction(until):
        raise GraphError(
            f"until: '{function_name(until)}' is a coroutine function, whose result is always "
            "true; use a plain function"
        )
    return until


def no_edge(edge: Edge, purpose: str, there: Iterable[Edge]) -> str:
    """The error text for a missing edge; it names the opposite edge if there is one."""
    sender, listener = edge
    other = f"; there is {listener} -> {sender}" if (listener, sender) in set(there) else ""
    return f"there is no edge {sender} -> {listener} to {purpose}{other}"


def function_name(function: object) -> str:
    """The name of a function; for other callables that of their class."""
    return str(getattr(function, "__name__", type(function).__name__))
