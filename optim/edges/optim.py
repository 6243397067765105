"""Learning of edges: a score-function loss, and an optimiser that steps in probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import stdev
from typing import Any

import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution

MIN_PROBABILITY, MAX_SCORE = 0.03, 3.0


def edge_loss(
    edges: EdgeDistribution,
    dags: Sequence[EdgeSample],
    utilities: Sequence[float | None],
    *,
    groups: Sequence[object] | None = None,
    normalise: bool = True,
) -> Tensor:
    """The REINFORCE loss of drawn DAGs, a scalar: its descent makes DAGs of high utility likely.

    The baseline of a DAG is the mean utility of the *other* DAGs of its group (leave one out,
    unbiased). A DAG that is alone in its group adds nothing.

    Args:
        edges: the distribution, with the parameters that ``dags`` were drawn with.
        dags: samples.
        utilities: one for each DAG; ``None`` masks it, as if it had not been drawn.
        groups: for each DAG, an identifier of the task and seed it was tried on. Default: all are
            one group.
        normalise: divide advantages by the standard deviation of the utilities in their group.

    Raises:
        ConfigError: the arguments differ in length, or a number is not finite.
    """
    grouped = groups or [None for _ in dags]
    scored = [(k, u) for k, u in enumerate(utilities) if u is not None]
    finite = all(math.isfinite(utility) for _, utility in scored)
    if not len(dags) == len(utilities) == len(grouped) or not finite:
        raise ConfigError(
            f"edge_loss: expected finite utilities and groups of {len(dags)} DAGs, got "
            f"{len(utilities)} and {len(grouped)}; give None for a DAG that failed"
        )
    members: dict[object, list[float]] = {}
    for k, utility in scored:
        members.setdefault(grouped[k], []).append(utility)
    advantages = []
    for k, utility in scored:
        values = members[grouped[k]]
        spread = stdev(values) if len(values) > 1 else 0.0
        advantage = 0.0
        if spread > 1e-9:  # else all are equal, but for rounding
            baseline = (sum(values) - utility) / (len(values) - 1)
            advantage = (utility - baseline) / (spread if normalise else 1.0)
        advantages.append(advantage)
    if not any(advantages):
        return (edges.logits.sum() + edges.scores.sum()) * 0.0
    log_probs = edges.log_prob([dags[k] for k, _ in scored])
    return -(torch.tensor(advantages) * log_probs).sum() / len(scored)


class ProbabilitySGD(torch.optim.Optimizer):
    """Steps in probability space: ``p -= lr * dLoss/dlogit``.

    This is the natural gradient of a Bernoulli up to a constant. Near 0 or 1 it neither vanishes
    nor diverges, as steps on log-odds do. A step without gradient changes nothing.
    """

    def __init__(self, edges: EdgeDistribution, lr: float = 0.1) -> None:
        """
        Args:
            edges: updated in place. Probabilities stay in ``[0.03, 0.97]``, so that the entropy
                never becomes 0 and every edge can come back, and order scores in ``[-3, 3]``.
            lr: the change of a probability, or of an order score, for a gradient of 1.
        """
        groups: list[dict[str, Any]] = [
            {"params": [edges.logits], "kind": "logits"},
            {"params": [edges.scores], "kind": "scores"},
        ]
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step with the gradients that the parameters have."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            (parameter,) = group["params"]
            if parameter.grad is None or not parameter.grad.any() or not group["lr"]:
                continue
            if group["kind"] == "logits":
                p = parameter.sigmoid() - group["lr"] * parameter.grad
                bounded = p.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
                parameter.copy_(bounded.logit())
            else:
                moved = parameter - group["lr"] * parameter.grad
                # Only differences of scores matter; centring keeps the bound symmetric.
                parameter.copy_((moved - moved.mean()).clamp(-MAX_SCORE, MAX_SCORE))
        return loss
