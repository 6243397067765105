"""Graphs in other forms: the fingerprint, networkx there and back."""

from __future__ import annotations

import json
import random

import networkx
import pytest
from graph_fakes import Sleeper

from swarm_ui import CollabGraph, GraphError, Message, Node
from swarm_ui.nodes import MajorityVote
from swarm_ui.topology import random_dag

AWKWARD = ['say "hi"', "back\\", "<b>&lt;", "#quot;", "`x`", "{a|b}", "ü 中", "end", "a;b"]


def is_code(message: Message) -> bool:
    return "code" in message.content


def everything() -> CollabGraph:
    """Awkward names, a condition, a delay, a vote, a graph inside."""
    inner = CollabGraph([Sleeper("x"), Sleeper("y")], [("x", "y")], name="in side")
    members: dict[str, Node] = {name: Sleeper(name) for name in AWKWARD}
    members |= {"inner": inner, "vote": MajorityVote()}
    edges = random_dag([*AWKWARD, "inner"], 0.5, random.Random(3))
    graph = CollabGraph(members, edges, "vote", 2, "`x`", when={edges[0]: is_code})
    return graph.with_edge(*reversed(edges[1]), delay=1)


@pytest.mark.parametrize("graph", [everything(), CollabGraph([Sleeper("a")])])
def test_networkx_there_and_back(graph: CollabGraph) -> None:
    digraph = graph.to_networkx()
    # Also when another program wrote the edges in another order.
    shuffled = networkx.DiGraph(**digraph.graph)
    shuffled.add_nodes_from(digraph.nodes(data=True))
    shuffled.add_edges_from(reversed(list(digraph.edges(data=True))))
    back = CollabGraph.from_networkx(shuffled)
    assert back.to_json() == graph.to_json()
    assert back.nodes == graph.nodes and back.when == graph.when and back.delays == graph.delays


def test_graphs_of_other_programs_are_read() -> None:
    digraph = networkx.DiGraph([(1, 2), (2, 3)], name=["not", "ours"])
    nodes = {str(k): Sleeper(str(k)) for k in (1, 2, 3)}
    graph = CollabGraph.from_networkx(digraph, nodes)
    assert graph.edges == (("1", "2"), ("2", "3"))
    assert (graph.output, graph.rounds, graph.name) == ("3", 1, "team")
    with pytest.raises(GraphError, match="'3'"):
        CollabGraph.from_networkx(digraph, {"1": nodes["1"], "2": nodes["2"]})
    with pytest.raises(GraphError, match="directed"):
        CollabGraph.from_networkx(networkx.Graph([(1, 2)]), nodes)  # type: ignore[arg-type]
    digraph.add_node("1")
    with pytest.raises(GraphError, match="labels whose texts differ"):
        CollabGraph.from_networkx(digraph, nodes)


def test_the_fingerprint_names_what_a_graph_is_made_of() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], when={("a", "b"): is_code})
    assert json.loads(graph.to_json()) == {
        "name": "team",
        "nodes": [{"id": "a", "kind": "Sleeper"}, {"id": "b", "kind": "Sleeper"}],
        "edges": [["a", "b"]],
        "output": "b",
        "rounds": 1,
        "when": [["a", "b", "is_code"]],
    }
