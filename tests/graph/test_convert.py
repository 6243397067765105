"""Graphs in other forms: the fingerprint, networkx there and back."""

from __future__ import annotations

import json
import random

import networkx
import pytest
from graph_fakes import Sleeper
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import CollabGraph, GraphError, Message, Node
from swarm_ui.nodes import MajorityVote
from swarm_ui.topology import random_dag

AWKWARD = ['say "hi"', "back\\", "<b>&lt;", "#quot;", "`x`", "{a|b}", "ü 中", "end", "a;b"]


def is_code(message: Message) -> bool:
    return "code" in message.content


NAMES = st.sampled_from(AWKWARD) | st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=":/"),
    min_size=1,
    max_size=4,
)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 1) -> CollabGraph:
    """Any graph: awkward names, conditions, delays, votes, graphs inside."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    rng = random.Random(draw(st.integers(0, 999)))
    members: dict[str, Node] = {name: Sleeper(name) for name in names}
    if depth and rng.random() < 0.5:
        members[names[0]] = draw(graphs(depth=depth - 1))
    edges = random_dag(names, 0.5, rng)
    if rng.random() < 0.5 and "vote" not in members:
        members["vote"] = MajorityVote()
    when = {edge: is_code for edge in edges if rng.random() < 0.2}
    graph = CollabGraph(members, edges, rng.choice(list(members)), 2, rng.choice(names), when=when)
    late = [(b, a) for a, b in edges if b not in graph.closing and a not in graph.closing]
    return graph.with_edge(*late[0], delay=1) if late and rng.random() < 0.5 else graph


@given(graphs())
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


@given(graphs(), graphs())
def test_the_fingerprint_tells_graphs_apart(one: CollabGraph, other: CollabGraph) -> None:
    def parts(graph: CollabGraph) -> object:
        kinds = [type(node).__name__ for node in graph.nodes.values()]
        inside = [parts(n) for n in graph.nodes.values() if isinstance(n, CollabGraph)]
        return (
            list(graph.nodes), kinds, inside, graph.edges, list(graph.when), list(graph.delays),
            graph.output, graph.rounds, graph.name,
        )  # fmt: skip

    assert (one.to_json() == other.to_json()) == (parts(one) == parts(other))


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
