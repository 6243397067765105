"""Graphs in other forms: a fingerprint as JSON, and networkx."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from swarm_ui.graph.check import function_name
from swarm_ui.graph.dag import Dag, inner_graph
from swarm_ui.node import Node, parts_of

if TYPE_CHECKING:
    import networkx


def to_json(graph: Dag) -> str:
    """The structure as JSON, a fingerprint of the graph: names, classes of nodes and edges.

    Functions (conditions, ``until``) are written by name; weights and settings are not.
    """
    return json.dumps(_structure(graph), ensure_ascii=False, separators=(",", ":"))


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
