"""The order-free sampler: its law in closed form, no favoured place, no exponential search."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.sequential import SequentialEdges

NAMES = ["ada", "bo", "cy", "dee"]
Edge = tuple[str, str]


def distribution(n: int, seed: int, sequence: str = "listed") -> SequentialEdges:
    made = SequentialEdges(NAMES[:n], sequence=sequence)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.logits.copy_(torch.randn(made.logits.shape, generator=draw))
    return made


def dags(names: list[str]) -> list[frozenset[Edge]]:
    pairs = [(a, b) for a in names for b in names if a != b]
    subsets = (s for k in range(len(pairs) + 1) for s in itertools.combinations(pairs, k))
    return [frozenset(s) for s in subsets if nx.is_directed_acyclic_graph(nx.DiGraph(list(s)))]


def by_hand(made: SequentialEdges, edges: frozenset[Edge], enumeration: int | None) -> float:
    """The definition, with networkx looking for cycles."""
    chance = dict(zip(made.candidates, made.logits.sigmoid().tolist(), strict=True))
    sequence = list(made.candidates)
    if enumeration is not None:
        places = np.random.default_rng(enumeration).permutation(len(sequence))
        sequence = [made.candidates[k] for k in places]
    graph, total = nx.DiGraph(), 0.0
    graph.add_nodes_from(made.names)
    for a, b in sequence:
        if nx.has_path(graph, b, a):
            if (a, b) in edges:
                return -math.inf
        elif (a, b) in edges:
            graph.add_edge(a, b)
            total += math.log(chance[a, b])
        else:
            total += math.log1p(-chance[a, b])
    return total


def chi_square(seen: Counter[frozenset[Edge]], expected: dict[frozenset[Edge], float]) -> None:
    draws = sum(expected.values())
    cells = [(seen[s], e) for s, e in expected.items() if e >= 5]
    rest = (sum(seen.values()) - sum(s for s, _ in cells), draws - sum(e for _, e in cells))
    chi2 = sum((s - e) ** 2 / e for s, e in [*cells, rest] if e > 1e-2)
    free = len(cells)
    assert set(seen) <= set(expected)
    assert chi2 < free + 3.1 * (2 * free) ** 0.5 + 5  # beyond the 0.1 % tail of chi-square


@pytest.mark.parametrize(("n", "enumeration"), [(2, None), (3, None), (4, None), (4, 11)])
def test_the_law_given_the_sequence_is_the_definition_and_sums_to_one(
    n: int, enumeration: int | None
) -> None:
    made = distribution(n, seed=n)
    every = dags(NAMES[:n])
    assert len(every) == [3, 25, 543][n - 2]
    with torch.no_grad():
        ours = {s: float(made.log_prob(s, enumeration)) for s in every}
    assert sum(math.exp(v) for v in ours.values()) == pytest.approx(1.0, abs=1e-4)
    for edges in every[:: max(1, len(every) // 60)]:
        assert ours[edges] == pytest.approx(by_hand(made, edges, enumeration), abs=1e-4)


@pytest.mark.parametrize("n", [3, 4])
def test_frequencies_follow_the_stated_law(n: int) -> None:
    made = distribution(n, seed=n)
    draws = 6000
    samples = made.sample(draws, torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = {s: draws * float(made.log_prob(s).exp()) for s in dags(NAMES[:n])}
    chi_square(Counter(frozenset(s.edges) for s in samples), expected)


def test_shuffled_frequencies_are_the_mean_over_all_sequences() -> None:
    made = distribution(3, seed=5, sequence="shuffled")
    chance = dict(zip(made.candidates, made.logits.sigmoid().tolist(), strict=True))
    expected: dict[frozenset[Edge], float] = dict.fromkeys(dags(NAMES[:3]), 0.0)
    sequences = list(itertools.permutations(made.candidates))
    for sequence in sequences:
        for edges in expected:
            graph, value = nx.DiGraph(), 1.0
            graph.add_nodes_from(made.names)
            for a, b in sequence:
                if nx.has_path(graph, b, a):
                    value *= (a, b) not in edges
                elif (a, b) in edges:
                    graph.add_edge(a, b)
                    value *= chance[a, b]
                else:
                    value *= 1 - chance[a, b]
            expected[edges] += 6000 * value / len(sequences)
    samples = made.sample(6000, torch.Generator().manual_seed(3))
    chi_square(Counter(frozenset(s.edges) for s in samples), expected)


def test_no_place_in_the_list_is_favoured_unless_it_is_the_listed_sequence() -> None:
    names = list("abcde")

    def early_and_late(sequence: str) -> tuple[float, float]:
        marginals = SequentialEdges(names, sequence=sequence).marginals(6000)
        early = [p for (a, b), p in marginals.items() if a < b]
        late = [p for (a, b), p in marginals.items() if a > b]
        return sum(early) / len(early), sum(late) / len(late)

    early, late = early_and_late("shuffled")
    assert early == pytest.approx(late, abs=0.02)
    early, late = early_and_late("listed")
    assert early > late + 0.2


@given(n=st.integers(1, 4), seed=st.integers(0, 2**31), spread=st.floats(0, 20))
@settings(max_examples=40, deadline=None)
def test_samples_are_acyclic_and_know_their_probability(n: int, seed: int, spread: float) -> None:
    made = distribution(n, seed, "shuffled")
    with torch.no_grad():
        made.logits.mul_(spread)
    for sample in made.sample(3, torch.Generator().manual_seed(seed)):
        graph = nx.DiGraph(list(sample.edges))
        assert nx.is_directed_acyclic_graph(graph)
        rank = {name: r for r, name in enumerate(sample.order)}
        assert all(rank[a] < rank[b] for a, b in sample.edges)
        again = float(made.log_prob(sample.edges, sample.enumeration).detach())
        assert sample.log_prob == pytest.approx(again, abs=1e-3)


def test_gradient_is_that_of_the_closed_form() -> None:
    made = distribution(3, seed=1)
    sample = made.sample(1, torch.Generator().manual_seed(0))[0]
    made.log_prob(sample.edges).backward()
    p = made.logits.detach().sigmoid()
    assert made.logits.grad is not None
    for k, edge in enumerate(made.candidates):
        skipped = edge not in sample.edges and nx.has_path(
            nx.DiGraph([*((a, a) for a in made.names), *[
                e for e in made.candidates[:k] if e in sample.edges
            ]]), edge[1], edge[0]
        )  # fmt: skip
        expected = 0.0 if skipped else float(edge in sample.edges) - float(p[k])
        assert float(made.logits.grad[k]) == pytest.approx(expected, abs=1e-5)


def test_used_nodes_reach_the_decision_and_useful_edges_lead_to_it() -> None:
    made = SequentialEdges(NAMES, decision="cy", density=0.3)
    for sample in made.sample(30, torch.Generator().manual_seed(0)):
        graph = nx.DiGraph(list(sample.edges))
        graph.add_nodes_from(NAMES)
        used = nx.ancestors(graph, "cy") | {"cy"}
        assert set(sample.used or ()) == used
        assert set(sample.useful) == {(a, b) for a, b in sample.edges if b in used}


def test_mode_takes_the_likeliest_of_a_cycle() -> None:
    made = SequentialEdges(["a", "b", "c"])
    with torch.no_grad():
        made.logits.fill_(-1.0)
        for edge, value in {("a", "b"): 1.0, ("b", "c"): 2.0, ("c", "a"): 3.0}.items():
            made.logits[made.candidates.index(edge)] = value
    assert set(made.mode().edges) == {("c", "a"), ("b", "c")}


def test_a_sparse_graph_of_200_nodes_is_drawn() -> None:
    made = SequentialEdges([f"n{k}" for k in range(200)], density=0.05)
    sample = made.sample(1, torch.Generator().manual_seed(0))[0]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(sample.edges)))
    assert len(sample.edges) > 300


def test_another_word_for_the_sequence_is_refused() -> None:
    with pytest.raises(ConfigError, match="'shuffled' or 'listed'"):
        SequentialEdges(["a", "b"], sequence="random")
