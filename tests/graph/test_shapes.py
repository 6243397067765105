"""Ready-made shapes: the laws each keeps, and graphs made with them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial

import networkx
import pytest
from graph_fakes import SCREEN, Sleeper
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import CollabGraph, GraphError
from swarm_ui.graph import shapes
from swarm_ui.nodes import MajorityVote
from swarm_ui.topology import Shape, random_dag

SHAPES: dict[str, Shape] = {
    "chain": shapes.chain,
    "debate": shapes.debate,
    "star": shapes.star,
    "tree": shapes.tree,
    "tree of 1": partial(shapes.tree, branching=1),
    "tree of 3": partial(shapes.tree, branching=3),
}
ANSWERS = {"chain": -1, "debate": -1, "star": 0, "tree": 0, "tree of 1": 0, "tree of 3": 0}


def nodes(names: Iterable[str]) -> list[Sleeper]:
    return [Sleeper(name) for name in names]


def test_the_shapes_edge_by_edge() -> None:
    assert shapes.chain("abc") == (("a", "b"), ("b", "c"))
    assert shapes.debate("abc") == (("a", "b"), ("a", "c"), ("b", "c"))
    assert shapes.star("abc") == (("b", "a"), ("c", "a"))
    assert shapes.tree("abcdef") == (("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c"))
    assert shapes.tree("abcde", branching=3) == (("b", "a"), ("c", "a"), ("d", "a"), ("e", "b"))
    assert shapes.chain("a") == shapes.debate("a") == shapes.tree("a") == ()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: shapes.star("a"), "a star needs a hub and at least one other"),
        (lambda: shapes.tree("abc", branching=0), "branching must be at least 1, got 0"),
        (lambda: random_dag("ab", float("nan"), random.Random(0)), "density"),
        (lambda: CollabGraph([], shapes.chain), "at least one node"),
        (lambda: CollabGraph(nodes("aba"), shapes.debate), "two nodes are called 'a'"),
    ],
)
def test_what_cannot_be_shaped(make: Callable[[], object], words: str) -> None:
    with pytest.raises(GraphError, match=words):
        make()


@pytest.mark.parametrize("shape", ANSWERS)
def test_a_shape_is_among_the_nodes_and_a_vote_hears_all_of_them(shape: str) -> None:
    members, edges = nodes("abcd"), tuple(SHAPES[shape]("abcd"))
    graph = CollabGraph(members, SHAPES[shape])
    assert (graph.edges, graph.output) == (edges, "abcd"[ANSWERS[shape]])
    voting = CollabGraph([*members, MajorityVote()], SHAPES[shape], rounds=2)
    assert voting.communication_edges == edges and voting.output == "vote"
    assert voting.predecessors["vote"] == tuple("abcd") and voting.closing == ("vote",)
    assert len(voting.run_sync(SCREEN).calls) == 4 * 2 + 1


@given(st.integers(0, 2**32), st.integers(1, 12), st.floats(0, 1))
def test_random_dags_are_acyclic_and_reproducible(seed: int, size: int, density: float) -> None:
    names = [f"n{k}" for k in range(size)]
    edges = random_dag(names, density, random.Random(seed))
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))
    assert edges == random_dag(names, density, random.Random(seed))
    if density == 1.0:
        assert len(edges) == size * (size - 1) // 2
