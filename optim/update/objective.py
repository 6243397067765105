"""The loss of a batch, as a sum over parts of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from swarm_ui.optim.update.batches import Example, Row
from swarm_ui.optim.update.losses import (
    divergence,
    dpo_loss,
    ipo_loss,
    margin,
    nll_loss,
    policy_gradient_loss,
)
from swarm_ui.optim.update.update_config import UpdateConfig

Forward = Callable[[Sequence[Row]], tuple[Tensor, Tensor]]
"""Log-probability (nats) and number of tokens of each row's reply, both ``[rows]``."""


class Totals(NamedTuple):
    """The divisors of the means over a batch. A loss is a mean over the batch, so each part of the
    batch is weighted by its share of the divisor. A part that is the whole batch has weight 1."""

    size: int
    paired: int
    """Number of examples with a rejected side."""
    pair_weight: float
    token_weight: float

    @classmethod
    def of(cls, batch: Sequence[Example]) -> Totals:
        paired = sum(each.sides == 2 for each in batch)
        return cls(len(batch), paired, _pair_weight(batch), _token_weight(batch))

    def of_pairs(self, part: Sequence[Example]) -> float:
        if len(part) == self.size:
            return 1.0
        return _pair_weight(part) / max(self.pair_weight, 1e-8)

    def of_tokens(self, part: Sequence[Example]) -> float:
        return 1.0 if len(part) == self.size else _token_weight(part) / max(self.token_weight, 1e-8)


def part_loss(
    forward: Forward,
    part: Sequence[Example],
    totals: Totals,
    settings: UpdateConfig,
    references: Tensor | None,
) -> tuple[Tensor, list[float]]:
    """The contribution of a part of a batch to the loss of the batch.

    Args:
        forward: computes the log-probabilities under the adapter in training.
        part: the examples.
        totals: the totals of the whole batch.
        settings: method and weights of the terms.
        references: log-probabilities to compare with, ``[2, examples of the part]``; see
            :meth:`~swarm_ui.optim.update.forward.Forwards.references`. ``None``: only the
            likelihood of the chosen replies is learned.

    Returns:
        A scalar with gradient, and for each pair 1.0 if its margin is above 0, else 0.0.
    """
    size = len(part)
    chosen = [each.chosen for each in part]
    weight = torch.tensor([each.weight for each in part])
    if references is None:
        sums, tokens = forward(chosen)
        loss = nll_loss(sums, tokens, weight=weight.to(sums.device))
        return totals.of_tokens(part) * loss, []
    if settings.method == "pg":
        sums, tokens = forward(chosen)
        old, reference = references.to(sums.device)
        advantage = weight.to(sums.device)
        loss = policy_gradient_loss(sums, old, advantage, tokens, clip=settings.clip)
        loss = loss + settings.beta * divergence(sums, reference, tokens)
        return loss * (size / totals.size), []
    paired = [k for k, each in enumerate(part) if each.rejected is not None]
    against = [row for each in part if (row := each.rejected) is not None]
    sums, tokens = forward(chosen + against)
    weight = weight.to(sums.device)
    supervised = nll_loss(sums[:size], tokens[:size], weight=weight)
    supervised = settings.nll_weight * totals.of_tokens(part) * supervised
    if not paired:
        return supervised, []
    reference = references[:, paired].to(sums.device)
    sides = (sums[paired], sums[size:], reference[0], reference[1])
    prefer = ipo_loss if settings.method == "ipo" else dpo_loss
    loss = prefer(*sides, beta=settings.beta, weight=weight[paired])
    # The loss of the pairs is weighted by their share of the batch.
    loss = loss * (totals.of_pairs(part) * totals.paired / totals.size) + supervised
    return loss, (margin(*sides).detach() > 0).float().tolist()


def _pair_weight(examples: Sequence[Example]) -> float:
    return sum(each.weight for each in examples if each.rejected is not None)


def _token_weight(examples: Sequence[Example]) -> float:
    return sum(each.weight * len(each.chosen[1]) for each in examples)
