"""What a graph is made of, checked: names, edges, who votes and who answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from swarm_ui.errors import GraphError
from swarm_ui.node import Node
from swarm_ui.topology import Edge, descendants


def closes(node: Node) -> bool:
    """Whether a node speaks once, after the last round."""
    return hasattr(node, "scope")


def named(nodes: Iterable[Node] | Mapping[str, Node]) -> dict[str, Node]:
    """Nodes by name, in the order given."""
    pairs = (
        list(nodes.items()) if isinstance(nodes, Mapping) else [(node.id, node) for node in nodes]
    )
    check_unique([name for name, _ in pairs])
    if not pairs:
        raise GraphError("a graph needs at least one node")
    for name, node in pairs:
        check_name(name)
        if not callable(node):
            raise GraphError(f"'{name}' is not a node: a {type(node).__name__} cannot be called")
    return dict(pairs)


def check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise GraphError(f"a name must be a non-empty string without outer spaces, got {name!r}")
    if ":" in name or "/" in name:
        raise GraphError(f"{name!r}: ':' and '/' are kept for message ids and nested names")


def check_unique(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise GraphError(f"two nodes are called '{name}'; rename one of them")
        seen.add(name)


def checked_edges(members: Mapping[str, Node], edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """The edges as a tuple of pairs, once every name is known and no edge is there twice."""
    pairs: dict[Edge, None] = {}
    for sender, listener in edges:
        for end in (sender, listener):
            if end not in members:
                where = f"edge {sender} -> {listener}: node"
                raise GraphError(unknown(where, end, members))
        if (sender, listener) in pairs:
            raise GraphError(f"edge {sender} -> {listener} is given twice")
        pairs[sender, listener] = None
    return tuple(pairs)


def check_heard(members: Mapping[str, Node], edges: Iterable[Edge]) -> None:
    """Nobody who votes is left without anybody to hear."""
    listeners = {listener for _, listener in edges}
    for name, node in members.items():
        if closes(node) and name not in listeners:
            raise GraphError(f"'{name}' would hear nobody; remove that node instead")


def unknown(what: str, name: str, members: Mapping[str, Node]) -> str:
    known = ", ".join(list(members)[:8]) + (", ..." if len(members) > 8 else "")
    return f"{what} '{name}' is not in the graph; it has {known}"


def electorate(members: Mapping[str, Node], edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The edges, with those of all agents into closing nodes that name nobody."""
    listeners = {listener for _, listener in edges}
    silent = [n for n, node in members.items() if closes(node) and n not in listeners]
    if not silent:
        return edges
    after = descendants((n for n, node in members.items() if closes(node)), edges)
    agents = [name for name in members if name not in after]
    return edges + tuple((agent, vote) for vote in silent for agent in agents)


def only_sink(members: Mapping[str, Node], edges: tuple[Edge, ...]) -> str:
    """The one node nobody hears."""
    speaking = {sender for sender, _ in edges}
    sinks = [name for name in members if name not in speaking]
    if len(sinks) != 1:
        raise GraphError(f"say which node is the output: nobody hears {', '.join(sinks) or 'none'}")
    return sinks[0]
