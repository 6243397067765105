"""The edge distribution: acyclic, exact, free of list order, and kept by name."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from graph_fakes import Sleeper
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui import CollabGraph, ConfigError
from swarm_ui.optim import EdgeDistribution, EdgeSample

NAMES = ["ada", "bo", "cy", "dee", "eli", "fay"]
numbers = st.floats(-30, 30, allow_nan=False, width=32)


def distribution(names: list[str], seed: int, spread: float = 1.5) -> EdgeDistribution:
    made = EdgeDistribution(names)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.scores.copy_(spread * torch.randn(made.scores.shape, generator=draw))
        made.logits.copy_(spread * torch.randn(made.logits.shape, generator=draw))
    return made


def ordered(order: Sequence[str], edges: Sequence[tuple[str, str]]) -> EdgeSample:
    return EdgeSample(order=tuple(order), edges=tuple(edges), log_prob=None)


def log_prob(made: EdgeDistribution, *edge_sets: Sequence[tuple[str, str]]) -> list[float]:
    with torch.no_grad():
        return list(made.log_prob(edge_sets).tolist())


def acyclic(edges: Iterable[tuple[str, str]]) -> bool:
    return nx.is_directed_acyclic_graph(nx.DiGraph(list(edges)))


def edge_sets(names: list[str]) -> list[tuple[tuple[str, str], ...]]:
    """Every set of ordered pairs without a cycle."""
    pairs = [(a, b) for a in names for b in names if a != b]
    subsets = itertools.chain.from_iterable(
        itertools.combinations(pairs, k) for k in range(len(pairs) + 1)
    )
    return [s for s in subsets if acyclic(s)]


@given(n=st.integers(1, 6), data=st.data(), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_every_sample_is_acyclic_and_its_log_prob_is_exact(
    n: int, data: st.DataObject, seed: int
) -> None:
    made = EdgeDistribution(NAMES[:n])
    with torch.no_grad():
        for parameter in (made.scores, made.logits):
            values = data.draw(
                st.lists(numbers, min_size=parameter.numel(), max_size=parameter.numel())
            )
            parameter.copy_(torch.tensor(values))
    for sample in made.sample(4, torch.Generator().manual_seed(seed)):
        graph = nx.DiGraph(list(sample.edges))
        graph.add_nodes_from(made.names)
        assert nx.is_directed_acyclic_graph(graph)
        rank = {name: r for r, name in enumerate(sample.order)}
        assert sorted(sample.order) == sorted(made.names)
        assert all(rank[a] < rank[b] for a, b in sample.edges)
        assert list(sample.edges) == sorted(sample.edges, key=lambda e: (rank[e[1]], rank[e[0]]))
        by_hand = by_hand_log_prob(made, sample.order, sample.edges)
        assert sample.log_prob == pytest.approx(by_hand, abs=1e-3)


def by_hand_log_prob(
    made: EdgeDistribution, order: tuple[str, ...], edges: tuple[tuple[str, str], ...]
) -> float:
    """The definition, in double precision and without tensors."""
    score = dict(zip(made.names, made.scores.tolist(), strict=True))
    logit = dict(zip(made.candidates, made.logits.tolist(), strict=True))
    total = 0.0
    for k, name in enumerate(order):
        top = max(score[x] for x in order[k:])
        total += score[name] - top - math.log(sum(math.exp(score[x] - top) for x in order[k:]))
        for later in order[k + 1 :]:
            sign = 1.0 if (name, later) in edges else -1.0
            total -= math.log1p(math.exp(-sign * logit[name, later]))
    return total


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_probabilities_sum_to_one_over_all_dags(n: int) -> None:
    names = NAMES[:n]
    made = distribution(names, seed=n)
    all_sets = edge_sets(names)
    assert len(all_sets) == [1, 3, 25, 543][n - 1]  # number of labelled DAGs
    chances = [math.exp(value) for value in log_prob(made, *all_sets)]
    assert sum(chances) == pytest.approx(1.0, abs=1e-4)
    for edge, p in made.marginals().items():
        with_it = sum(c for edges, c in zip(all_sets, chances, strict=True) if edge in edges)
        assert p == pytest.approx(with_it, abs=1e-4)
    for edges, chance in list(zip(all_sets, chances, strict=True))[:: max(1, len(all_sets) // 30)]:
        over_orders = sum(
            math.exp(by_hand_log_prob(made, order, edges))
            for order in itertools.permutations(made.names)
            if all(order.index(a) < order.index(b) for a, b in edges)
        )
        assert chance == pytest.approx(over_orders, abs=1e-5)


MANY = [("a", "b"), ("b", "a"), ("a", "z"), ("c", "z"), ("b", "c"), ("c", "a")]
SHAPES: list[tuple[list[str], list[tuple[str, str]] | None, str | None]] = [
    (["ada", "bo", "cy", "dee"], None, None),
    (["ada", "bo", "cy", "dee"], None, "bo"),
    (["a", "b", "c", "z"], MANY[:-1], None),
    (["a", "b", "c", "z"], MANY[2:] + MANY[:1], "z"),
]


@pytest.mark.parametrize(("names", "candidates", "decision"), SHAPES)
def test_frequencies_follow_the_probabilities_whatever_the_candidates(
    names: list[str], candidates: Any, decision: str | None
) -> None:
    made = EdgeDistribution(names, candidates=candidates, decision=decision)
    draw = torch.Generator().manual_seed(8)
    with torch.no_grad():
        made.scores.copy_(0.7 * torch.randn(made.scores.shape, generator=draw))
        made.logits.copy_(0.7 * torch.randn(made.logits.shape, generator=draw))
        possible = [s for s in edge_sets(names) if set(s) <= set(made.candidates)]
        assert acyclic(made.mode().edges)
        chance = made.log_prob(possible).exp()
        assert float(chance.sum()) == pytest.approx(1.0, abs=1e-4)
        draws = 20_000
        sampled = made.draw(draws, draw)
        seen = Counter(
            frozenset(made.candidates[k] for k, on in enumerate(row) if on)
            for row in sampled.chosen.tolist()
        )
        assert made.log_prob_draws(sampled).isfinite().all()
    expected = dict(zip(map(frozenset, possible), (draws * chance).tolist(), strict=True))
    assert set(seen) <= {edges for edges, e in expected.items() if e > 0}
    # Rare graphs are counted together, as the test wants at least 5 expected in each cell.
    cells = [(seen[s], e) for s, e in expected.items() if e >= 5]
    rest = (draws - sum(s for s, _ in cells), draws - sum(e for _, e in cells))
    chi2 = sum((s - e) ** 2 / e for s, e in [*cells, rest] if e > 1e-3)
    free = len(cells)
    assert chi2 < free + 3.1 * (2 * free) ** 0.5 + 5  # beyond the 0.1 % tail of chi-square


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": [("a", "b")], "decision": "a"},
        {"candidates": [("a", "c")]},
        {"decision": "c"},
        {"density": 1.0},
    ],
)
def test_edges_between_other_nodes_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        EdgeDistribution(["a", "b"], **wrong)
    with pytest.raises(ConfigError):
        EdgeDistribution(["a", "a"])


def test_large_graphs_are_drawn_and_scored() -> None:
    names = [f"n{k}" for k in range(200)]
    made = EdgeDistribution(names, density=0.1, decision="n7")
    drawn = made.draw(2, torch.Generator().manual_seed(0))
    log_prob = made.log_prob_draws(drawn)
    log_prob.sum().backward()
    assert log_prob.isfinite().all() and log_prob.shape == (2,)
    assert made.logits.grad is not None and made.logits.grad.isfinite().all()
    record = made.records(drawn)[0]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(list(record.edges)))
    assert made.mode().order[-1] == "n7"


def test_mode_is_the_most_probable_pair_of_order_and_edges() -> None:
    for seed in range(6):
        made = distribution(NAMES[:4], seed=seed)
        mode = made.mode()
        logit = dict(zip(made.candidates, made.logits.tolist(), strict=True))
        best = max(
            by_hand_log_prob(
                made,
                order,
                tuple(
                    (a, b) for k, a in enumerate(order) for b in order[k + 1 :] if logit[a, b] > 0
                ),
            )
            for order in itertools.permutations(made.names)
        )
        assert mode.log_prob == pytest.approx(best, abs=1e-4)
    assert EdgeDistribution(["c", "a", "b"]).mode().order == ("a", "b", "c")


def test_a_file_holds_names_parameters_and_decision(tmp_path: Path) -> None:
    made = EdgeDistribution(NAMES[:3], decision="bo")
    with torch.no_grad():
        made.logits.copy_(torch.randn(made.logits.shape))
    made.save(tmp_path / "new" / "edges.safetensors")
    again = EdgeDistribution.load(tmp_path / "new" / "edges.safetensors")
    assert again.graph.decision == "bo" and again.candidates == made.candidates
    assert torch.equal(again.logits, made.logits) and torch.equal(again.scores, made.scores)


def test_a_file_that_is_not_edges_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "edges.safetensors"
    bad.write_bytes(b"not a tensor file")
    for path in (bad, tmp_path / "none.safetensors"):
        with pytest.raises(ConfigError):
            EdgeDistribution.load(path)


def test_a_drawn_edge_keeps_the_delay_that_it_has_in_the_graph() -> None:
    nodes, late = [Sleeper(name) for name in "abc"], {("c", "a"): 1, ("b", "c"): 2}
    graph = CollabGraph(nodes, [("a", "b"), ("a", "c"), *late], "c", rounds=3, delays=late)
    for sample in EdgeDistribution(graph).sample(30, torch.Generator().manual_seed(1)):
        masked = graph.with_edges(sample.edges)
        assert masked.communication_edges == sample.edges
        assert masked.delays == {e: late[e] for e in sample.edges if e in late}
