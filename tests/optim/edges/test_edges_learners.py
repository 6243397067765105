"""Baselines, groups, masks, the posterior, the limit on costs: what each does to the edges."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.adam_optimizer import AdamEdgeOptimizer, gptswarm_rule
from swarm_ui.optim.edges.cost_limit import CostLimit
from swarm_ui.optim.edges.distribution import EdgeDistribution, EdgeSample
from swarm_ui.optim.edges.optimizer import EdgeOptimizer
from swarm_ui.optim.edges.score_function import Baseline
from swarm_ui.optim.edges.sequential import SequentialEdges
from swarm_ui.optim.edges.thompson import ThompsonEdges

AB = ("a", "b")


def sample(*edges: tuple[str, str]) -> EdgeSample:
    return EdgeSample(order=("a", "b", "c"), edges=edges, log_prob=0.0)


def star(size: int = 3) -> EdgeDistribution:
    names = [f"n{k}" for k in range(size)]
    return EdgeDistribution([*names, "z"], candidates=[(n, "z") for n in names], decision="z")


@pytest.mark.parametrize(
    ("baseline", "advantage"),
    [("none", 1.0), (0.5, 0.5), ("average", 1.0 - 0.2), ("others", 1.0 - 0.2)],
)
def test_each_baseline_in_closed_form(baseline: Baseline, advantage: float) -> None:
    made = EdgeDistribution(["a", "b"], candidates=[AB])
    optimizer = EdgeOptimizer(made, lr=0.1, baseline=baseline)
    optimizer.average = 0.2
    optimizer.step([sample(AB)], [1.0])
    # d log p / dlogit = 1 - p = 1/2.
    assert float(made.logits.detach().sigmoid()) == pytest.approx(0.5 + 0.1 * advantage * 0.5)
    assert optimizer.average == pytest.approx(0.9 * 0.2 + 0.1 * 1.0)


@pytest.mark.parametrize("baseline", ["none", 0.5, "average", "others"])
def test_every_baseline_can_be_normalised(baseline: Baseline) -> None:
    """Advantages in standard deviations do not depend on the scale of the utilities."""

    def moved(scale: float) -> float:
        made = EdgeDistribution(["a", "b"], candidates=[AB])
        own = baseline * scale if isinstance(baseline, float) else baseline
        optimizer = EdgeOptimizer(made, lr=0.01, baseline=own, normalise=True)
        optimizer.average = 0.3 * scale
        optimizer.step([sample(AB), sample()], [1.0 * scale, 0.2 * scale])
        return float(made.logits.detach())

    assert moved(1.0) == pytest.approx(moved(0.01), rel=1e-4)


def test_edges_with_the_rate_0_stay_as_they_are() -> None:
    made = EdgeDistribution(["a", "b"], density=0.01)  # below the least probability
    before = made.logits.detach().clone()
    EdgeOptimizer(made, lr=0.0).step([sample(AB), sample()], [1.0, 0.0])
    assert torch.equal(made.logits.detach(), before)


def test_samples_are_compared_within_their_group_only() -> None:
    """An easy and a hard task: the edge hurts on both, though its mean utility is higher."""
    samples = [sample(AB), sample(AB), sample(), sample(AB), sample(), sample()]
    worth = [0.9, 0.9, 1.0, 0.0, 0.1, 0.1]
    together, apart = (EdgeDistribution(["a", "b"], candidates=[AB]) for _ in range(2))
    EdgeOptimizer(together).step(samples, worth)
    EdgeOptimizer(apart).step(samples, worth, groups=["easy"] * 3 + ["hard"] * 3)
    assert float(together.logits.detach()) > 0.0 > float(apart.logits.detach())


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 1]])
def test_a_masked_sample_is_as_if_it_had_not_been_drawn(groups: list[int] | None) -> None:
    def moved(keep: list[int], worth: list[float | None]) -> tuple[torch.Tensor, torch.Tensor]:
        score, posterior = EdgeDistribution(["a", "b", "c"]), ThompsonEdges(["a", "b", "c"])
        drawn = EdgeDistribution(["a", "b", "c"]).sample(5, torch.Generator().manual_seed(3))
        own = None if groups is None else [groups[k] for k in keep]
        for learner in (EdgeOptimizer(score), posterior):
            learner.step([drawn[k] for k in keep], worth, groups=own)
        return score.logits.detach(), torch.tensor(list(posterior.marginals().values()))

    masked = moved([0, 1, 2, 3, 4], [1.0, 0.0, None, 0.6, 0.3])
    left_out = moved([0, 1, 3, 4], [1.0, 0.0, 0.6, 0.3])
    counted_as_0 = moved([0, 1, 2, 3, 4], [1.0, 0.0, 0.0, 0.6, 0.3])
    for a, b, c in zip(masked, left_out, counted_as_0, strict=True):
        assert torch.allclose(a, b, atol=1e-6)
        assert not torch.allclose(a, c, atol=1e-4)


def test_the_gradient_is_unbiased_with_leave_one_out() -> None:
    """Its mean over draws is the derivative of the expected utility, found by enumeration."""
    made = EdgeDistribution(["a", "b", "c"], candidates=[AB, ("b", "c"), ("a", "c")])

    def utility(edges: frozenset[tuple[str, str]]) -> float:
        return 2.0 * ({AB, ("b", "c")} <= edges) - 1.0 * (("a", "c") in edges) + 5.0

    # All p are 1/2. J = 2 p1 p2 - p3 + 5, dJ/dlogit = p (1 - p) dJ/dp; candidates are sorted.
    slope = {AB: 2 * 0.5, ("b", "c"): 2 * 0.5, ("a", "c"): -1.0}
    expected = torch.tensor([0.25 * slope[edge] for edge in made.candidates])
    steps = []
    draw = torch.Generator().manual_seed(0)
    for _ in range(500):
        with torch.no_grad():
            made.logits.zero_()
        drawn = made.sample(4, draw)
        worth = [utility(frozenset(s.edges)) for s in drawn]
        EdgeOptimizer(made, lr=0.01, min_probability=0.0).step(drawn, worth)
        steps.append((made.logits.detach().sigmoid() - 0.5) / 0.01)
    mean, error = torch.stack(steps).mean(0), torch.stack(steps).std(0) / 500**0.5
    assert ((mean - expected).abs() < 4 * error).all()


def test_gptswarms_rule_is_adam_at_a_tenth_without_bounds() -> None:
    made = SequentialEdges(["a", "b"], candidates=[AB], sequence="listed")
    rule = gptswarm_rule(made, "half")
    rule.step([sample(AB)], [1.0])
    # Adam's first step is its rate.
    assert float(made.logits.detach()) == pytest.approx(0.1, abs=1e-4)
    rule.step([sample(AB)] * 4, [0.5] * 4)
    assert float(made.logits.detach()) > 0.1  # momentum
    for _ in range(90):
        rule.step([sample(AB)], [1.0])
    assert float(made.logits.detach().sigmoid()) > 0.98  # past the bound ours has


def test_bad_steps_are_refused() -> None:
    made = star()
    optimizer = EdgeOptimizer(made)
    one = made.sample(1, torch.Generator().manual_seed(0))
    with pytest.raises(ConfigError, match="groups and samples differ"):
        optimizer.step(one, [1.0], groups=[1, 2])
    with pytest.raises(ConfigError, match="a utility is nan"):
        optimizer.step(one, [math.nan])
    with pytest.raises(ConfigError, match="baseline must be"):
        EdgeOptimizer(made, baseline="mean")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [math.nan, math.inf, None])
def test_a_step_that_is_refused_changes_nothing(value: float | None) -> None:
    """Thompson's posterior counted the samples twice if the step was repeated, and a credit that is
    not a number ended in the probabilities."""
    unknown = {("z", "n1"): 1.0} if value is None else {("n1", "z"): value}
    words = "credit for" if value is None else "a credit is (nan|inf)"
    drawn = EdgeSample(order=("n0", "n1", "n2", "z"), edges=(("n1", "z"),), log_prob=0.0)
    made = star()
    for learner in (EdgeOptimizer(made), ThompsonEdges(made.names, candidates=made.candidates)):
        once = copy.deepcopy(learner)
        with pytest.raises(ConfigError, match=words):
            learner.step([drawn, drawn], [1.0, 0.0], [unknown, {}])
        for each in (learner, once):
            each.step([drawn, drawn], [1.0, 0.5], groups=[0, 1])
            each.step([drawn], [0.25])
        ours, theirs = (
            each.distribution if isinstance(each, EdgeOptimizer) else each
            for each in (learner, once)
        )
        assert ours.marginals() == theirs.marginals()


def test_credit_counts_where_the_utility_is_masked() -> None:
    made = star()
    drawn = EdgeSample(order=("n0", "n1", "n2", "z"), edges=(("n1", "z"),), log_prob=0.0)
    update = EdgeOptimizer(made, credit_weight=1.0).step([drawn], [None], [{("n1", "z"): -1.0}])
    assert update.used == 0
    assert update.moved == pytest.approx(0.4 * 0.5, abs=1e-6)


def test_the_posterior_is_that_of_linear_regression() -> None:
    edges = [("n0", "z"), ("n1", "z")]
    made = ThompsonEdges(["n0", "n1", "z"], candidates=edges, noise=0.5, prior=2.0)
    drawn = [
        EdgeSample(order=("n0", "n1", "z"), edges=e, log_prob=None)
        for e in ((edges[0],), (edges[1],), tuple(edges), ())
    ]
    worth = [0.9, 0.2, 0.7, 0.4]
    made.step(drawn[:2], worth[:2])
    made.step(drawn[2:], worth[2:])
    x = torch.tensor([[1.0, 1, -1], [1, -1, 1], [1, 1, 1], [1, -1, -1]], dtype=torch.double)
    precision = x.T @ x / 0.25 + torch.eye(3, dtype=torch.double) / 4
    y = torch.tensor(worth, dtype=torch.double)
    mean = torch.linalg.solve(precision, x.T @ y / 0.25)
    spread = torch.linalg.inv(precision).diagonal().sqrt()
    for k, edge in enumerate(edges):
        got = made.worth()[edge]
        assert got.mean == pytest.approx(2 * float(mean[k + 1]))
        assert got.high - got.mean == pytest.approx(2 * 1.96 * float(spread[k + 1]), rel=1e-3)
        chance = torch.special.ndtr(mean / spread)[k + 1]
        assert made.marginals()[edge] == pytest.approx(float(chance))


def test_the_posterior_finds_what_pays_and_its_graphs_are_acyclic() -> None:
    made = ThompsonEdges(["a", "b", "c"])
    draw = torch.Generator().manual_seed(0)
    for task in range(40):
        drawn = made.sample(4, draw)
        hard = float(task % 2)
        worth = [(AB in s.edges) - 0.5 * (("c", "a") in s.edges) - hard for s in drawn]
        made.step(drawn, worth, groups=[task] * 4)
        for s in drawn:
            rank = {name: k for k, name in enumerate(s.order)}
            assert all(rank[a] < rank[b] for a, b in s.edges)
    assert AB in made.mode().edges
    assert made.worth()[AB].low > 0.0 > made.worth()["c", "a"].high


@pytest.mark.parametrize("optimizer_class", [EdgeOptimizer, AdamEdgeOptimizer])
def test_a_warm_up_starts_slowly_and_ends_at_the_full_rate(
    optimizer_class: type[EdgeOptimizer] | type[AdamEdgeOptimizer],
) -> None:
    moved = []
    for seen in (0, 5, 10, 99):
        made = EdgeDistribution(["a", "b"], candidates=[AB])
        optimizer = optimizer_class(made, lr=0.4, first_lr=0.1, warmup=10, baseline="none")
        optimizer.seen = seen
        moved.append(optimizer.step([sample(AB)], [1.0]).moved)
        assert optimizer.seen == seen + 1
    assert moved[0] < moved[1] < moved[2] == pytest.approx(moved[3])
    if optimizer_class is EdgeOptimizer:
        assert moved[:3] == pytest.approx([0.5 * lr for lr in (0.1, 0.25, 0.4)], abs=1e-6)
    with pytest.raises(ConfigError, match="warmup must be"):
        optimizer_class(star(), warmup=-1)


def test_the_price_rises_above_the_limit_and_falls_below_it() -> None:
    limit = CostLimit(100.0, lr=0.5)
    assert limit.charge([1.0, 0.5], [200.0, 200.0]) == [1.0, 0.5]
    assert limit.price == pytest.approx(0.5)
    assert limit.charge([1.0, None], [50.0, 9000.0]) == [pytest.approx(0.75), None]
    assert limit.price == pytest.approx(0.25)
    for _ in range(3):
        limit.charge([1.0], [0.0])
    assert limit.price == 0.0
    with pytest.raises(ConfigError, match="has no cost"):
        limit.charge([1.0], [None])


def test_a_limit_on_cost_keeps_only_edges_worth_their_price() -> None:
    made = star(4)
    optimizer, limit = EdgeOptimizer(made, lr=0.2), CostLimit(2.0, lr=0.05)
    draw = torch.Generator().manual_seed(0)
    value = {"n0": 1.0, "n1": 0.8, "n2": 0.1, "n3": 0.1}
    for _ in range(150):
        drawn = made.sample(8, draw)
        worth: list[float | None] = [sum(value[a] for a, _ in s.edges) for s in drawn]
        optimizer.step(drawn, limit.charge(worth, [float(len(s.edges)) for s in drawn]))
    assert {a for a, _ in made.mode().edges} == {"n0", "n1"}
    drawn = made.sample(2000, draw)
    assert sum(len(s.edges) for s in drawn) / 2000 == pytest.approx(2.0, rel=0.1)
