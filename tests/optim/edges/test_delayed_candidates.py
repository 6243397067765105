"""Delayed edges as candidates: sampled, scored and saved as others, and free of the order."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
import torch
from graph_fakes import Sleeper

from swarm_ui import CollabGraph
from swarm_ui.optim import EdgeDistribution
from swarm_ui.optim.credit.counterfactual import as_recorded

Edge = tuple[str, str]
CANDIDATES: list[Edge] = [("a", "b"), ("b", "a"), ("b", "c"), ("a", "c"), ("c", "a")]
DELAYS = {("c", "a"): 1, ("b", "c"): 2}
LATE = frozenset(DELAYS)


def distribution(decision: str | None = None) -> EdgeDistribution:
    edges = [*CANDIDATES, ("a", "z"), ("c", "z")] if decision else CANDIDATES
    names = ["a", "b", "c", *([decision] if decision else [])]
    made = EdgeDistribution(names, candidates=edges, delays=DELAYS, decision=decision)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        made.scores.copy_(torch.randn(made.scores.shape, generator=draw))
        made.logits.copy_(torch.randn(made.logits.shape, generator=draw))
    return made


def acyclic(edges: tuple[Edge, ...]) -> bool:
    """Whether the edges without a delay are."""
    return nx.is_directed_acyclic_graph(nx.DiGraph([e for e in edges if e not in LATE]))


@pytest.mark.parametrize("decision", [None, "z"])
def test_probabilities_of_all_edge_sets_sum_to_one(decision: str | None) -> None:
    made = distribution(decision)
    subsets = itertools.chain.from_iterable(
        itertools.combinations(made.candidates, k) for k in range(len(made.candidates) + 1)
    )
    sets = [edges for edges in subsets if acyclic(edges)]
    total = made.log_prob(sets).detach().exp().sum()
    assert float(total) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("decision", [None, "z"])
def test_samples_may_close_cycles_by_delayed_edges_only(decision: str | None) -> None:
    made = distribution(decision)
    samples = made.sample(300, torch.Generator().manual_seed(0))
    assert all(acyclic(sample.edges) for sample in samples)
    assert any(not nx.is_directed_acyclic_graph(nx.DiGraph(list(s.edges))) for s in samples)
    if decision is None:
        assert made.marginals()["c", "a"] == pytest.approx(
            float(made.logits.detach()[made.graph.edge_index["c", "a"]].sigmoid())
        )
        share = sum(("c", "a") in s.edges for s in samples) / len(samples)
        assert share == pytest.approx(made.marginals()["c", "a"], abs=0.1)
    assert acyclic(made.mode().edges)


def test_a_sample_masks_the_graph_and_edges_keep_their_delay() -> None:
    nodes = [Sleeper(name) for name in "abc"]
    at_once = [("a", "b"), ("a", "c")]
    graph = CollabGraph(nodes, [*at_once, *DELAYS], "c", rounds=3, delays=DELAYS)
    made = distribution()
    for sample in made.sample(30, torch.Generator().manual_seed(1)):
        masked = graph.with_edges(sample.edges)
        assert masked.communication_edges == sample.edges
        assert masked.delays == {e: DELAYS[e] for e in sample.edges if e in DELAYS}
        bare = CollabGraph(nodes, [], "c", rounds=3)
        assert bare.with_edges(sample.edges, delays=made.delays).delays == masked.delays
        trace = masked.run_sync("x")
        assert as_recorded(graph, trace).delays == masked.delays
