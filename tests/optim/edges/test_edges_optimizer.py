"""Learning edges from utilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from swarm_ui import ConfigError
from swarm_ui.optim import EdgeDistribution, EdgeSample, ProbabilitySGD, edge_loss

NAMES = ["a", "b", "c"]
AB = ("a", "b")


def sample(*edges: tuple[str, str]) -> EdgeSample:
    return EdgeSample(order=("a", "b", "c"), edges=edges, log_prob=0.0)


def utility(drawn: EdgeSample) -> float:
    """One edge helps, one harms."""
    return 1.0 * (AB in drawn.edges) - 1.0 * (("c", "b") in drawn.edges)


def update(
    made: EdgeDistribution,
    drawn: Sequence[EdgeSample],
    worth: Sequence[float | None],
    *,
    optimizer: torch.optim.Optimizer | None = None,
    **loss: Any,
) -> torch.Tensor:
    """One step; the probabilities after it."""
    optimizer = optimizer or ProbabilitySGD(made, lr=0.4)
    optimizer.zero_grad()
    edge_loss(made, drawn, worth, **{"normalise": False, **loss}).backward()
    optimizer.step()
    return made.logits.detach().sigmoid()


@pytest.mark.parametrize("kind", [ProbabilitySGD, torch.optim.Adam])
def test_the_helpful_edge_is_found_and_the_harmful_one_dropped(kind: Any) -> None:
    made = EdgeDistribution(NAMES)
    before = made.marginals()
    own = kind(made, lr=0.4) if kind is ProbabilitySGD else kind(made.parameters(), lr=0.1)
    draw = torch.Generator().manual_seed(0)
    for _ in range(30):
        drawn = made.sample(8, draw)
        update(made, drawn, [utility(s) for s in drawn], optimizer=own)
    after = made.marginals()
    assert after[AB] > before[AB] + 0.2
    assert after["c", "b"] < before["c", "b"] - 0.1
    assert AB in made.mode().edges


def test_probabilities_never_leave_their_bounds() -> None:
    made = EdgeDistribution(NAMES)
    own = ProbabilitySGD(made, lr=100.0)
    draw = torch.Generator().manual_seed(1)
    for _ in range(5):
        drawn = made.sample(4, draw)
        p = update(made, drawn, [utility(s) for s in drawn], optimizer=own)
        assert p.min() >= 0.03 - 1e-6 and p.max() <= 0.97 + 1e-6
        assert made.scores.abs().max() <= 3.0


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1, 1]])
def test_a_masked_sample_is_as_if_it_had_not_been_drawn(groups: list[int] | None) -> None:
    def moved(keep: list[int], worth: list[float | None]) -> torch.Tensor:
        made = EdgeDistribution(NAMES)
        drawn = made.sample(5, torch.Generator().manual_seed(3))
        own = None if groups is None else [groups[k] for k in keep]
        return update(made, [drawn[k] for k in keep], worth, groups=own)

    masked = moved([0, 1, 2, 3, 4], [1.0, 0.0, None, 0.6, 0.3])
    assert torch.allclose(masked, moved([0, 1, 3, 4], [1.0, 0.0, 0.6, 0.3]), atol=1e-6)
    counted_as_0 = moved([0, 1, 2, 3, 4], [1.0, 0.0, 0.0, 0.6, 0.3])
    assert not torch.allclose(masked, counted_as_0, atol=1e-4)


def test_a_step_in_closed_form() -> None:
    """Two nodes: dJ/dlogit has a two-line formula."""
    made = EdgeDistribution(["a", "b"])
    drawn = [
        EdgeSample(order=("a", "b"), edges=(AB,), log_prob=0.0),
        EdgeSample(order=("a", "b"), edges=(), log_prob=0.0),
    ]
    p = update(made, drawn, [1.0, 0.0], optimizer=ProbabilitySGD(made, lr=0.1)).tolist()
    # P(a -> b) = q p with q = P(a first) = 1/2, p = 1/2; d log P(a -> b)/dlogit = 1 - p;
    # P(no edge) = 1 - p whoever comes first, so d log P(no edge)/dlogit = -q p for each edge.
    assert p[0] == pytest.approx(0.5 + 0.1 * (0.5 + 0.25) / 2, abs=1e-6)
    assert p[1] == pytest.approx(0.5 + 0.1 * (0.0 + 0.25) / 2, abs=1e-6)


def test_the_gradient_is_unbiased() -> None:
    """Its mean over draws is the derivative of the expected utility, found by enumeration."""
    made = EdgeDistribution(NAMES, candidates=[AB, ("b", "c"), ("a", "c")])

    def worth(drawn: EdgeSample) -> float:
        edges = set(drawn.edges)
        return 2.0 * ({AB, ("b", "c")} <= edges) - 1.0 * (("a", "c") in edges) + 5.0

    # All p are 1/2. J = 2 p1 p2 - p3 + 5, dJ/dlogit = p (1 - p) dJ/dp.
    slope = {AB: 2 * 0.5, ("b", "c"): 2 * 0.5, ("a", "c"): -1.0}
    expected = torch.tensor([0.25 * slope[edge] for edge in made.candidates])
    gradients, draw = [], torch.Generator().manual_seed(0)
    for _ in range(500):
        drawn = made.sample(4, draw)
        made.zero_grad()
        edge_loss(made, drawn, [worth(s) for s in drawn], normalise=False).backward()
        assert made.logits.grad is not None
        gradients.append(-made.logits.grad.clone())
    mean, error = torch.stack(gradients).mean(0), torch.stack(gradients).std(0) / 500**0.5
    assert ((mean - expected).abs() < 4 * error).all()


def test_samples_are_compared_within_their_group_only() -> None:
    """An easy and a hard task: the edge hurts on both, though its mean utility is higher."""
    drawn = [sample(AB), sample(AB), sample(), sample(AB), sample(), sample()]
    worth = [0.9, 0.9, 1.0, 0.0, 0.1, 0.1]
    together, apart = (EdgeDistribution(["a", "b"], candidates=[AB]) for _ in range(2))
    update(together, drawn, worth)
    update(apart, drawn, worth, groups=["easy"] * 3 + ["hard"] * 3)
    assert float(together.logits.detach()) > 0.0 > float(apart.logits.detach())


@pytest.mark.parametrize(
    ("worth", "groups"), [([1.0], [1, 2]), ([1.0, 0.5], None), ([math.nan], None)]
)
def test_bad_arguments_are_refused(worth: Any, groups: Any) -> None:
    with pytest.raises(ConfigError):
        edge_loss(EdgeDistribution(NAMES), [sample(AB)], worth, groups=groups)
