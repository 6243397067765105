"""Graphs in other forms: a fingerprint as JSON, networkx and Mermaid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag, inner_graph
from swarm_ui.node import Node, parts_of

if TYPE_CHECKING:
    import networkx


def structure(graph: Dag) -> dict[str, Any]:
    """Names, classes of nodes, edges, conditions, delays and rounds; functions by their names."""

    def entry(name: str, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {"id": name, "kind": type(node).__name__}
        inner, parts = inner_graph(node), parts_of(node)
        if inner is not None:
            found["inside"] = structure(inner)
        elif parts:
            found["inside"] = [entry(*part) for part in parts.items()]
        return found

    found: dict[str, Any] = {
        "name": graph.name,
        "nodes": [entry(name, node) for name, node in graph.nodes.items()],
        "edges": graph.edges,
        "output": graph.output,
        "rounds": graph.rounds,
        "when": [[*e, function_name(graph.when[e])] for e in graph.edges if e in graph.when],
        "delays": [[*edge, delay] for edge, delay in graph.delays.items()],
        "until": "" if graph.until is None else function_name(graph.until),
    }
    return {key: value for key, value in found.items() if value not in ([], "")}


def to_json(graph: Dag) -> str:
    """The structure as JSON, a fingerprint of the graph: names, classes of nodes and edges.

    Functions (conditions, ``until``) are written by name; weights and settings are not.
    """
    return json.dumps(structure(graph), ensure_ascii=False, separators=(",", ":"))


def to_networkx(graph: Dag) -> networkx.DiGraph[str]:
    """The graph as a ``networkx.DiGraph``.

    Nodes carry ``node``, edges ``place`` (their order) and perhaps ``when`` (the condition) and
    ``delay`` (in rounds), the graph ``name``, ``output``, ``rounds`` and perhaps ``until``.
    """
    import networkx

    digraph: networkx.DiGraph[str] = networkx.DiGraph(
        name=graph.name, output=graph.output, rounds=graph.rounds
    )
    for name, node in graph.nodes.items():
        digraph.add_node(name, node=node)
    for place, edge in enumerate(graph.edges):
        digraph.add_edge(*edge, place=place)
        for key, values in (("when", graph.when), ("delay", graph.delays)):
            if edge in values:
                digraph.edges[edge][key] = values[edge]
    if graph.until is not None:
        digraph.graph["until"] = graph.until
    return digraph


# -- Mermaid --------------------------------------------------------------------------------------

# In a quoted label Mermaid still reads Markdown, HTML, comments and entities of its own.
_QUOTED = {ord(c): f"#{ord(c)};" for c in '"#&<>`*\\|[](){}$%'}


def to_mermaid(graph: Dag) -> str:
    """A Mermaid flow chart: nested graphs framed, conditional and delayed edges dotted."""
    return "\n    ".join(["flowchart LR", *_mermaid(graph, "n")]) + "\n"


def _mermaid(graph: Dag, prefix: str) -> Iterator[str]:
    ids = {name: f"{prefix}{k}" for k, name in enumerate(graph.nodes)}
    closing = frozenset(graph.closing)
    for name, node in graph.nodes.items():
        id, label = ids[name], name.translate(_QUOTED)
        inner = inner_graph(node)
        if inner is not None:
            if not isinstance(node, Dag):
                label += ", for each item"
            yield f'subgraph {id}["{label}"]'
            yield "    direction LR"
            yield from ("    " + line for line in _mermaid(inner, f"{id}_"))
            yield "end"
        else:
            yield f'{id}(["{label}"])' if name in closing else f'{id}["{label}"]'
    for edge in graph.edges:
        notes = [function_name(graph.when[edge])] if edge in graph.when else []
        notes += [f"delay {graph.delays[edge]}"] if edge in graph.delays else []
        arrow = f'-.->|"{", ".join(notes).translate(_QUOTED)}"|' if notes else "-->"
        yield f"{ids[edge[0]]} {arrow} {ids[edge[1]]}"
    yield f"style {ids[graph.output]} stroke-width:3px"
