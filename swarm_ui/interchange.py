"""Graphs in other forms: networkx, JSON, Mermaid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.errors import GraphError
from swarm_ui.topology import Edge

if TYPE_CHECKING:
    import networkx

    from swarm_ui.graph import CollabGraph
    from swarm_ui.node import Node


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node of a written structure."""

    id: str
    kind: str
    """Class of the node."""
    inside: Structure | None = None
    """What a nested graph is made of."""


class Structure(msgspec.Struct, frozen=True, kw_only=True):
    """A graph without its models and weights."""

    version: int = 1
    name: str
    nodes: tuple[NodeEntry, ...]
    edges: tuple[Edge, ...]
    output: str
    rounds: int = 1


def structure(graph: CollabGraph) -> Structure:
    """What a graph is made of, nested graphs inside."""
    return Structure(
        name=graph.name,
        nodes=tuple(_entry(name, node) for name, node in graph.nodes.items()),
        edges=graph.edges,
        output=graph.output,
        rounds=graph.rounds,
    )


def _entry(name: str, node: Node) -> NodeEntry:
    from swarm_ui.graph import CollabGraph

    inside = structure(node) if isinstance(node, CollabGraph) else None
    return NodeEntry(id=name, kind=type(node).__name__, inside=inside)


def to_json(graph: CollabGraph) -> str:
    return msgspec.json.encode(structure(graph)).decode()


def from_json(text: str) -> Structure:
    try:
        found = msgspec.json.decode(text, type=Structure)
    except msgspec.DecodeError as error:
        raise GraphError(f"not the structure of a graph: {error}") from error
    if found.version != 1:
        raise GraphError(f"a graph structure of version {found.version}; this release reads 1")
    return found


def to_networkx(graph: CollabGraph) -> networkx.DiGraph[str]:
    import networkx

    digraph: networkx.DiGraph[str] = networkx.DiGraph(
        name=graph.name, output=graph.output, rounds=graph.rounds
    )
    for name, node in graph.nodes.items():
        digraph.add_node(name, node=node)
    for place, (sender, listener) in enumerate(graph.edges):
        digraph.add_edge(sender, listener, place=place)
    return digraph


def from_networkx(
    digraph: networkx.DiGraph[Any], nodes: Mapping[str, Node] | None
) -> tuple[dict[str, Node], list[Edge]]:
    """Nodes and edges of a digraph; edges in the order of their ``place``, else as listed."""
    members: dict[str, Node] = {}
    for label, data in digraph.nodes(data=True):
        name = str(label)
        node = data.get("node") if nodes is None else nodes.get(name)
        if node is None:
            raise GraphError(
                f"no node given for '{name}': set its 'node' attribute or pass nodes={{...}}"
            )
        members[name] = node
    edges = [(str(a), str(b), data.get("place", 0)) for a, b, data in digraph.edges(data=True)]
    edges.sort(key=lambda edge: edge[2])
    return members, [(sender, listener) for sender, listener, _ in edges]


def to_mermaid(graph: CollabGraph) -> str:
    number = {name: f"n{k}" for k, name in enumerate(graph.nodes)}
    closing = frozenset(graph.closing)
    lines = ["flowchart LR"]
    for name in graph.nodes:
        label = name.replace('"', "#quot;")
        box = f'(["{label}"])' if name in closing else f'["{label}"]'
        lines.append(f"    {number[name]}{box}")
    lines += [f"    {number[sender]} --> {number[listener]}" for sender, listener in graph.edges]
    lines.append(f"    style {number[graph.output]} stroke-width:3px")
    return "\n".join(lines) + "\n"
