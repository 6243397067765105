"""Composing graphs: names, edges, errors that show what is wrong, operations on copies."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise

import networkx
import pytest
from graph_fakes import SCREEN, FixedModel, HashModel, Sleeper, click
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import CollabGraph, ConfigError, GraphError, MajorityVote, Node, random_dag


def line(names: str, **options: object) -> CollabGraph:
    """Nodes called by letters, each heard by the next."""
    edges = list(pairwise(names))
    return CollabGraph([Sleeper(n) for n in names], edges, **options)  # type: ignore[arg-type]


def test_a_cycle_is_an_error_that_shows_its_path() -> None:
    nodes = [Sleeper(n) for n in "abcde"]
    with pytest.raises(GraphError) as caught:
        CollabGraph(nodes, [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")])
    text = str(caught.value)
    path = text.split("cycle: ")[1].split(".")[0].split(" -> ")
    assert path[0] == path[-1]
    assert set(path) == {"b", "c", "d"}
    assert set(pairwise(path)) == {("b", "c"), ("c", "d"), ("d", "b")}


@pytest.mark.parametrize(
    ("names", "edges", "output", "rounds", "words"),
    [
        ("aa", [], "a", 1, "two nodes are called 'a'"),
        ("ab", [("a", "z")], "a", 1, "edge a -> z: node 'z' is not in the graph"),
        ("ab", [("a", "a")], "b", 1, "cycle: a -> a"),
        ("ab", [("a", "b"), ("a", "b")], "b", 1, "given twice"),
        ("ab", [], "z", 1, "output 'z' is not in the graph"),
        ("ab", [], None, 1, "nobody hears a, b"),
        ("ab", [("a", "b")], "b", 0, "rounds must be at least 1"),
        ("", [], None, 1, "at least one node"),
        ([" a"], [], None, 1, "name"),
        (["a/b"], [], None, 1, "'/'"),
    ],
)
def test_what_cannot_be_a_graph(
    names: str, edges: list[tuple[str, str]], output: str | None, rounds: int, words: str
) -> None:
    with pytest.raises(GraphError, match=words.replace("->", "-.")):
        CollabGraph([Sleeper(n) for n in names], edges, output, rounds)


def test_operations_return_new_graphs_and_leave_the_old_one() -> None:
    graph = line("abc")
    before = graph.to_json()
    assert graph.with_edge("a", "c").heard["c"] == ("b", "a")
    assert graph.without_edge("a", "b").heard["b"] == ()
    assert graph.with_rounds(4).rounds == 4
    assert graph.with_edges([("a", "c")]).edges == (("a", "c"),)
    assert graph.without_node("b").edges == ()
    assert graph.with_node(Sleeper("d"), hears=["a"], heard_by=["c"]).heard["c"] == ("b", "d")
    renamed = graph.rename({"a": "first", "c": "last"})
    assert renamed.edges == (("first", "b"), ("b", "last")) and renamed.output == "last"
    assert renamed.rename({"first": "a", "last": "c"}).to_json() == before
    assert graph.to_json() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.without_edge("a", "c"), "no edge a -> c"),
        (lambda g: g.without_node("c"), "output"),
        (lambda g: g.without_node("z"), "'z' is not in the graph"),
        (lambda g: g.rename({"a": "b"}), "two nodes are called 'b'"),
        (lambda g: g.rename({"z": "b"}), "'z' is not in the graph"),
        (lambda g: g.with_edge("c", "a"), "cycle"),
        (lambda g: g >> line("cd"), "two nodes are called 'c'"),
        (lambda g: g >> line("xy", rounds=2), "rounds must be equal"),
    ],
)
def test_operations_that_cannot_be_done(change: object, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        change(line("abc"))  # type: ignore[operator]


def test_composition_joins_the_output_to_the_first_nodes() -> None:
    fan = CollabGraph([Sleeper(n) for n in "xyz"], [("x", "z"), ("y", "z")])
    both = line("ab") >> fan >> Sleeper("end")
    assert both.heard["x"] == both.heard["y"] == ("b",)
    assert both.heard["end"] == ("z",) and both.output == "end"
    assert (Sleeper("start") >> line("ab")).heard["a"] == ("start",)


def team(**options: object) -> CollabGraph:
    return CollabGraph.collaborative(model=HashModel(), **options)  # type: ignore[arg-type]


def test_a_team_votes_together_and_new_edges_leave_the_vote_alone() -> None:
    graph = team(edges=[("agent_1", "agent_0")])
    agents = ("agent_0", "agent_1", "agent_2", "agent_3")
    assert graph.agents == agents and graph.closing == ("vote",)
    assert graph.talk == (("agent_1", "agent_0"),)
    assert graph.heard["vote"] == agents
    other = graph.with_edges([("agent_3", "agent_2")])
    assert other.talk == (("agent_3", "agent_2"),) and other.heard["vote"] == agents
    pruned = graph.without_edge("agent_2", "vote").with_edges([])
    assert pruned.heard["vote"] == ("agent_0", "agent_1", "agent_3") and pruned.talk == ()
    assert graph.without_node("agent_1").heard["vote"] == ("agent_0", "agent_2", "agent_3")


def test_a_vote_is_never_left_with_nobody_to_hear() -> None:
    alone = team(agents=1)
    with pytest.raises(GraphError, match="'vote' would hear nobody"):
        alone.without_edge("agent_0", "vote")


def test_what_follows_a_vote_speaks_once() -> None:
    graph = team(rounds=3) >> Sleeper("after")
    trace = graph.run_sync(SCREEN)
    assert graph.closing == ("vote", "after")
    assert [c.node for c in trace.calls].count("after") == 1
    assert len(trace.calls) == 4 * 3 + 2


def test_settings_of_a_team_that_do_not_fit() -> None:
    with pytest.raises(GraphError, match="4 agents need 4 adapters, got 1"):
        team(adapters=["a"])
    with pytest.raises(GraphError, match="4 agents need 4 temperatures, got 2"):
        team(temperatures=[0.1, 0.2])
    with pytest.raises(ConfigError, match="score"):
        team(vote="probability")
    with pytest.raises(GraphError, match="density"):
        team(density=1.5)


@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(0, 1))
def test_random_dags_are_acyclic_and_reproducible(seed: int, size: int, density: float) -> None:
    names = [f"n{k}" for k in range(size)]
    edges = random_dag(names, density, random.Random(seed))
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))
    assert edges == random_dag(names, density, random.Random(seed))
    if density == 1.0:
        assert len(edges) == size * (size - 1) // 2


def test_random_dags_favour_no_place_in_the_list() -> None:
    names = ["a", "b", "c", "d"]
    rng = random.Random(1)
    counts = Counter(edge for _ in range(6000) for edge in random_dag(names, 0.5, rng))
    # Each of the 12 ordered pairs has probability 1/4: 1500 of 6000, standard deviation 34.
    assert len(counts) == 12
    assert all(1330 < count < 1670 for count in counts.values())


def test_networkx_there_and_back_keeps_the_order_of_edges() -> None:
    graph = CollabGraph([Sleeper(n) for n in "abc"], [("b", "c"), ("a", "c"), ("b", "a")])
    digraph = graph.to_networkx()
    assert sorted(digraph.edges) == [("a", "c"), ("b", "a"), ("b", "c")]
    back = CollabGraph.from_networkx(digraph, output="c")
    assert back.to_json() == graph.to_json()


def test_any_digraph_imports_with_nodes_by_name() -> None:
    digraph = networkx.DiGraph([(1, 2), (2, 3)])
    graph = CollabGraph.from_networkx(digraph, {str(k): Sleeper(str(k)) for k in (1, 2, 3)})
    assert graph.output == "3" and graph.edges == (("1", "2"), ("2", "3"))
    with pytest.raises(GraphError, match="no node given for '1'"):
        CollabGraph.from_networkx(digraph)


def test_structure_as_json_there_and_back() -> None:
    graph = team(rounds=2, seed=5)
    nodes: dict[str, Node] = {"inner": graph, "judge": Sleeper("judge")}
    outer = CollabGraph(nodes, [("inner", "judge")])
    text = outer.to_json()
    assert CollabGraph.from_json(text, outer.nodes).to_json() == text
    inside = json.loads(text)["nodes"][0]["inside"]
    assert [n["kind"] for n in inside["nodes"]] == ["AgentNode"] * 4 + ["MajorityVote"]
    with pytest.raises(GraphError, match="no node given for: judge"):
        CollabGraph.from_json(text, {"inner": graph})
    with pytest.raises(GraphError, match="not the structure of a graph"):
        CollabGraph.from_json("{}", {})


def test_one_node_object_may_stand_under_two_names() -> None:
    model = FixedModel({None: click(1)})
    solo = CollabGraph.solo(model)
    agent = solo.nodes["agent_0"]
    graph = CollabGraph({"left": agent, "right": agent, "vote": MajorityVote()})
    assert graph.run_sync(SCREEN).ballot == {'{"action_type":"click","index":1}': 2.0}


def test_the_picture_shows_every_node_and_edge() -> None:
    graph = team(rounds=2, edges=[("agent_0", "agent_1"), ("agent_0", "agent_2")])
    picture = graph._repr_svg_()
    assert picture.count("<rect") == 5
    assert picture.count("marker-end") == len(graph.edges) == 6
    assert all(f">{name}</text>" in picture for name in graph.nodes)
    awkward = CollabGraph([Sleeper("<b>")])
    assert "&lt;b&gt;" in awkward._repr_html_() and "<b>" not in awkward._repr_html_()
    assert graph.to_mermaid().count("-->") == 6
