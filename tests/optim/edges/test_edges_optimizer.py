"""Learning edges from utilities."""

from __future__ import annotations

import pytest
import torch

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.distribution import EdgeDistribution, EdgeSample
from swarm_ui.optim.edges.optimizer import EdgeOptimizer

NAMES = ["a", "b", "c"]


def utility(sample: EdgeSample) -> float:
    """One edge helps, one harms."""
    return 1.0 * (("a", "b") in sample.edges) - 1.0 * (("c", "b") in sample.edges)


def train(steps: int, per_step: int) -> EdgeDistribution:
    distribution = EdgeDistribution(NAMES)
    optimizer = EdgeOptimizer(distribution)
    draw = torch.Generator().manual_seed(0)
    for _ in range(steps):
        samples = distribution.sample(per_step, draw)
        optimizer.step(samples, [utility(s) for s in samples])
    return distribution


@pytest.mark.parametrize(
    ("steps", "per_step"), [(30, 8), pytest.param(150, 1, marks=pytest.mark.slow)]
)
def test_finds_the_helpful_edge_and_drops_the_harmful_one(steps: int, per_step: int) -> None:
    before = EdgeDistribution(NAMES).marginals()
    after = train(steps, per_step).marginals()
    assert after["a", "b"] > before["a", "b"] + 0.2
    assert after["c", "b"] < before["c", "b"] - 0.1
    assert ("a", "b") in train(steps, per_step).mode().edges


def test_probabilities_never_leave_their_bounds() -> None:
    distribution = EdgeDistribution(NAMES)
    optimizer = EdgeOptimizer(distribution, lr=100.0, min_probability=0.05, max_score=2.0)
    draw = torch.Generator().manual_seed(1)
    for _ in range(5):
        samples = distribution.sample(4, draw)
        optimizer.step(samples, [utility(s) for s in samples])
        p = distribution.logits.sigmoid()
        assert p.min() >= 0.05 - 1e-6
        assert p.max() <= 0.95 + 1e-6
        assert distribution.scores.abs().max() <= 2.0


def test_none_is_masked_not_zero() -> None:
    def updated(keep: list[int], utilities: list[float | None]) -> torch.Tensor:
        distribution = EdgeDistribution(NAMES)
        samples = distribution.sample(4, torch.Generator().manual_seed(5))
        EdgeOptimizer(distribution).step([samples[k] for k in keep], utilities)
        return distribution.logits.detach()

    masked = updated([0, 1, 2, 3], [1.0, None, 0.0, None])
    assert torch.equal(masked, updated([0, 2], [1.0, 0.0]))
    assert not torch.equal(masked, updated([0, 1, 2, 3], [1.0, 0.0, 0.0, 0.0]))


def test_equal_utilities_move_nothing() -> None:
    distribution = EdgeDistribution(NAMES)
    samples = distribution.sample(4, torch.Generator().manual_seed(5))
    update = EdgeOptimizer(distribution).step(samples, [0.7] * 4)
    assert update.moved < 1e-6
    assert update.baseline == pytest.approx(0.7)


def test_leave_one_out_step_in_closed_form() -> None:
    """Two nodes: dJ/dlogit has a two-line formula."""
    distribution = EdgeDistribution(["a", "b"])
    with_edge = EdgeSample(order=("a", "b"), edges=(("a", "b"),), log_prob=0.0)
    without = EdgeSample(order=("a", "b"), edges=(), log_prob=0.0)
    EdgeOptimizer(distribution, lr=0.1).step([with_edge, without], [1.0, 0.0])
    # P(a -> b) = q p with q = P(a first) = 1/2, p = 1/2; d log P(a -> b)/dlogit = 1 - p;
    # P(no edge) = 1 - p whoever comes first, so d log P(no edge)/dlogit = -q p for each edge.
    p = distribution.logits.detach().sigmoid().tolist()
    assert p[0] == pytest.approx(0.5 + 0.1 * (0.5 + 0.25) / 2, abs=1e-6)
    assert p[1] == pytest.approx(0.5 + 0.1 * (0.0 + 0.25) / 2, abs=1e-6)


def test_credit_of_single_edges_moves_them() -> None:
    distribution = EdgeDistribution(["a", "b", "c"])
    sample = EdgeSample(order=("a", "b", "c"), edges=(("a", "b"), ("a", "c")), log_prob=0.0)
    EdgeOptimizer(distribution).step([sample], [0.5], [{("a", "b"): 1.0, ("a", "c"): -1.0}])
    p = distribution.marginals()
    assert p["a", "b"] > 0.25 > p["a", "c"]
    with pytest.raises(ConfigError, match="which is not in the sample"):
        EdgeOptimizer(distribution).step([sample], [0.5], [{("b", "c"): 1.0}])


def test_normalised_steps_do_not_depend_on_the_scale_of_utilities() -> None:
    def updated(scale: float, offset: float, normalise: bool) -> torch.Tensor:
        distribution = EdgeDistribution(NAMES)
        samples = distribution.sample(4, torch.Generator().manual_seed(5))
        worth = [offset + scale * u for u in (0.1, 0.7, 0.3, 0.2)]
        EdgeOptimizer(distribution, normalise=normalise).step(samples, worth)
        return distribution.logits.detach()

    assert torch.allclose(updated(1.0, 0.0, True), updated(0.01, 0.5, True), atol=1e-5)
    assert not torch.allclose(updated(1.0, 0.0, False), updated(0.01, 0.5, False), atol=1e-3)
    same = EdgeDistribution(NAMES)
    samples = same.sample(3, torch.Generator().manual_seed(5))
    assert EdgeOptimizer(same, normalise=True).step(samples, [0.3] * 3).moved < 1e-6


def test_a_rate_of_zero_changes_nothing() -> None:
    distribution = EdgeDistribution(NAMES)
    samples = distribution.sample(4, torch.Generator().manual_seed(0))
    update = EdgeOptimizer(distribution, lr=0.0).step(samples, [0.0, 1.0, 0.0, 1.0])
    assert update.moved == pytest.approx(0.0, abs=1e-6)
