"""Learning of edges: a score-function loss, and an optimiser that steps in probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.trace.records import EdgeName

MIN_PROBABILITY, MAX_SCORE = 0.03, 3.0


def edge_loss(
    edges: EdgeDistribution,
    dags: Sequence[EdgeSample],
    utilities: Sequence[float | None],
    credit: Sequence[Mapping[EdgeName, float]] | None = None,
    *,
    groups: Sequence[object] | None = None,
    normalise: bool = True,
    credit_weight: float = 0.1,
) -> Tensor:
    """The REINFORCE loss of drawn DAGs, a scalar: its descent makes DAGs of high utility likely.

    The baseline of a DAG is the mean utility of the *other* DAGs of its group (leave one out,
    unbiased). A DAG that is alone in its group adds nothing.

    Args:
        edges: the distribution, with the parameters that ``dags`` were drawn with.
        dags: samples.
        utilities: one for each DAG; ``None`` masks it, as if it had not been drawn.
        credit: for each DAG, advantages of single edges, such as those of
            :func:`~swarm_ui.optim.edges.credit.episode_edge_credit`; others are unscored. It counts
            even if the utility is ``None``.
        groups: for each DAG, an identifier of the task and seed it was tried on. Default: all are
            one group.
        normalise: divide advantages by the standard deviation of the utilities in their group.
        credit_weight: weight of the credit of edges relative to the utility.

    Raises:
        ConfigError: the arguments differ in length, a number is not finite, or a credited edge is
            not in its DAG.
    """
    told, grouped = credit or [{} for _ in dags], groups or [None for _ in dags]
    given = [u for u in utilities if u is not None] + [v for own in told for v in own.values()]
    if not len(dags) == len(utilities) == len(told) == len(grouped) or not all(
        map(math.isfinite, given)
    ):
        raise ConfigError(
            f"edge_loss: expected finite utilities, credit and groups of {len(dags)} DAGs, got "
            f"{len(utilities)}, {len(told)} and {len(grouped)}; give None for a DAG that failed"
        )
    loss = (edges.logits.sum() + edges.scores.sum()) * 0.0
    scored = [(k, u) for k, u in enumerate(utilities) if u is not None]
    advantages = torch.tensor(_advantages([(grouped[k], u) for k, u in scored], normalise))
    if advantages.any():
        log_probs = edges.log_prob([dags[k] for k, _ in scored])
        loss = loss - (advantages * log_probs).sum() / len(scored)
    credited = [(dag, own) for dag, own in zip(dags, told, strict=True) if own]
    for dag, own in credited:
        if not set(own) <= set(dag.edges):
            raise ConfigError(f"edge_loss: expected credit of the edges {dag.edges}, got {own}")
        chosen = [edges.graph.edge_index[edge] for edge in own]
        term = (torch.tensor(list(own.values())) * logsigmoid(edges.logits[chosen])).sum()
        loss = loss - credit_weight * term / len(credited)
    return loss


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


def _advantages(scored: Sequence[tuple[object, float]], normalise: bool) -> list[float]:
    """The advantage of each utility over the others of its group, in order."""
    members: dict[object, list[float]] = {}
    for group, utility in scored:
        members.setdefault(group, []).append(utility)
    found = []
    for group, utility in scored:
        values = members[group]
        others, spread = len(values) - 1, stdev(values) if len(values) > 1 else 0.0
        if spread <= 1e-9:  # all are equal, but for rounding
            found.append(0.0)
            continue
        baseline = (sum(values) - utility) / others
        found.append((utility - baseline) / (spread if normalise else 1.0))
    return found
