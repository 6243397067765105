"""Composing graphs: names, edges, errors that show what is wrong, operations on copies."""

from __future__ import annotations

from itertools import pairwise

import pytest
from graph_fakes import SCREEN, HashModel, Sleeper

from swarm_ui import CollabGraph, ConfigError, GraphError
from swarm_ui.nodes import MajorityVote


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
        ("ab", [], None, 1, "no node receives the messages of a, b"),
        ("ab", [("a", "b")], "b", 0, "rounds must be a whole number of at least 1"),
        ("", [], None, 1, "at least one node"),
        ([" a"], [], None, 1, "name"),
        (["a/b"], [], None, 1, "'/'"),
        (["a\nb"], [], None, 1, "printable"),
        (["grace", "ada"], [("gracie", "ada")], None, 1, "did you mean 'grace'"),
        ("abc", ["ab"], "c", 1, "edges are pairs"),
        ("abc", [("a", "b", "c")], "c", 1, "edges are pairs"),
    ],
)
def test_what_cannot_be_a_graph(
    names: str, edges: list[tuple[str, str]], output: str | None, rounds: int, words: str
) -> None:
    with pytest.raises(GraphError, match=words.replace("->", "-.")):
        CollabGraph([Sleeper(n) for n in names], edges, output, rounds)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([MajorityVote], r"a class: write MajorityVote\(\.\.\.\)"),
        ([lambda inbox, context: ""], "has no id.*@function_node"),
        (["ada"], "'ada' is not a node"),
        ({"a": 3}, "'a' is not a node"),
        ({"a": Sleeper}, "'a' is not a node but a class"),
        ([Sleeper("team"), line("ab")], "two nodes are called 'team'.*mapping"),
    ],
)
def test_what_is_no_node(nodes: object, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        CollabGraph(nodes)  # type: ignore[arg-type]


def test_operations_return_new_graphs_and_leave_the_old_one() -> None:
    graph = line("abc")
    before = graph.to_json()
    assert graph.with_edge("a", "c").predecessors["c"] == ("b", "a")
    assert graph.without_edge("a", "b").predecessors["b"] == ()
    assert graph.with_rounds(4).rounds == 4
    assert graph.with_edges([("a", "c")]).edges == (("a", "c"),)
    assert graph.without_node("b").edges == ()
    more = graph.with_node(Sleeper("d"), hears=["a"]).with_edge("d", "c")
    assert more.predecessors["d"] == ("a",) and more.predecessors["c"] == ("b", "d")
    assert graph.to_json() == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.without_edge("a", "c"), "no edge a -> c to remove"),
        (lambda g: g.without_edge("b", "a"), "no edge b -> a to remove; there is a -> b"),
        (lambda g: g.with_edge("a", "b"), "already"),
        (lambda g: g.named(""), "a name must be"),
        (lambda g: g.without_node("c"), "output"),
        (lambda g: g.without_node("z"), "'z' is not in the graph"),
        (lambda g: g.with_edge("c", "a"), "cycle"),
        (lambda g: g >> line("cd"), "cannot compose 'team' with 'team': two nodes are called 'c'"),
        (lambda g: g >> Sleeper("c"), "cannot compose 'team' with 'c': two nodes are called 'c'"),
        (lambda g: g >> [Sleeper("x"), Sleeper("x")], "two nodes are called 'x'"),
        (lambda g: g >> [], "is an empty list"),
        (lambda g: g >> "vote", "'vote' is not a node"),
        (
            lambda g: g.with_rounds(2) >> MajorityVote() >> line("xy", rounds=2),
            "a vote cannot repeat",
        ),
        (lambda g: g >> line("xy", rounds=2), "both need equal rounds"),
    ],
)
def test_operations_that_cannot_be_done(change: object, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        change(line("abc"))  # type: ignore[operator]


def nodes(names: str) -> list[Sleeper]:
    return [Sleeper(name) for name in names]


def test_a_list_fans_out_and_the_next_node_hears_all_of_it() -> None:
    a, b, c, d, e, f = nodes("abcdef")
    graph = CollabGraph([a], name="mine", rounds=2) >> [b, c] >> [d, e] >> f
    assert isinstance(graph, CollabGraph) and graph.output == "f"
    assert (graph.name, graph.rounds) == ("mine", 2)
    assert graph.predecessors == {
        "a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("b", "c"), "f": ("d", "e"),
    }  # fmt: skip
    assert graph.run_sync(SCREEN).messages[-1].content == "f(f,d,e)"


def test_a_fan_may_hold_graphs() -> None:
    branch = line("pq", when={("p", "q"): bool})
    graph = line("mn") >> [branch, Sleeper("u")] >> Sleeper("v")
    assert graph.predecessors["p"] == graph.predecessors["u"] == ("n",)
    assert graph.predecessors["v"] == ("q", "u") and graph.when == branch.when


def test_a_fan_has_open_ends() -> None:
    fan = line("ab") >> nodes("cd")
    assert fan.ends == ("c", "d")
    with pytest.raises(GraphError, match=r"output is ambiguous.*messages of c, d"):
        fan.run_sync(SCREEN)


def team(**options: object) -> CollabGraph:
    return CollabGraph.collaborative(model=HashModel(), **options)  # type: ignore[arg-type]


def test_a_team_votes_together_and_new_edges_leave_the_vote_alone() -> None:
    graph = team(edges=[("agent_1", "agent_0")])
    agents = ("agent_0", "agent_1", "agent_2", "agent_3")
    assert graph.agents == agents and graph.closing == ("vote",)
    assert graph.communication_edges == (("agent_1", "agent_0"),)
    assert graph.predecessors["vote"] == agents
    other = graph.with_edges([("agent_3", "agent_2")])
    assert (
        other.communication_edges == (("agent_3", "agent_2"),)
        and other.predecessors["vote"] == agents
    )
    pruned = graph.without_edge("agent_2", "vote").with_edges([])
    assert (
        pruned.predecessors["vote"] == ("agent_0", "agent_1", "agent_3")
        and pruned.communication_edges == ()
    )
    assert graph.without_node("agent_1").predecessors["vote"] == ("agent_0", "agent_2", "agent_3")


def test_a_vote_is_never_left_with_nobody_to_hear() -> None:
    alone = team(agents=1)
    with pytest.raises(GraphError, match="'vote' would have no incoming edge"):
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
        team(temperature=[0.1, 0.2])
    with pytest.raises(ConfigError, match="score"):
        team(vote="probability")
    with pytest.raises(GraphError, match="density"):
        team(density=1.5)
