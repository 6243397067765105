"""Delayed edges as candidates: sampled, scored and saved as others, and free of the order."""

from __future__ import annotations

import asyncio
import itertools

import networkx as nx
import pytest
import torch
from graph_fakes import Sleeper
from learning_fakes import ButtonWorld, TinyModel, button_team
from learning_run import CONFIG, sample_jobs, trainer

from swarm_ui import CollabGraph
from swarm_ui.optim import EdgeDistribution, ScriptedCritic
from swarm_ui.optim.credit.counterfactual import as_recorded
from swarm_ui.optim.edges.credit import edge_credit
from swarm_ui.optim.trainer import TeamTrainer

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


def test_credit_of_a_message_reaches_the_delayed_edge_that_carried_it() -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], "a", rounds=2)
    trace = graph.with_edge("b", "a", delay=1).run_sync("x")
    assert edge_credit(trace, [[0.5, 0.9], [0.5, 0.5]], discount=0.0) == {
        ("a", "b"): pytest.approx(0.0), ("b", "a"): pytest.approx(0.4),
    }  # fmt: skip


def test_a_team_with_delayed_edges_is_trained() -> None:
    """The trainer draws them, keeps their delay in every graph it plays, and learns from them."""
    model = TinyModel([f"agent_{k}" for k in range(3)])
    delays = {("agent_2", "agent_0"): 1}
    team = button_team(model).with_edge("agent_2", "agent_0", delay=1)
    critic = ScriptedCritic(ButtonWorld)
    made = TeamTrainer(team, ButtonWorld, sample_jobs, critic=critic, config=CONFIG)
    assert made.edges.delays == delays
    assert trainer(model).edges.delays == {}
    result = asyncio.run(made.run())
    played = [graph for metrics in result.history for graph in metrics["graphs"]]
    assert any(["agent_2", "agent_0"] in edges for edges in played)
