"""Losses of a batch of examples, as plain functions ``loss(model, batch, **settings) -> scalar``.

A loss is a mean over the *whole* batch. Of a part of a batch (:meth:`Batch.parts`) it is the part's
share of this mean, so the losses of the parts add up to that of the batch, and their gradients to
its gradient. A batch may mix agents: each example names its adapter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from swarm_ui.optim.examples import Batch, Trainable, reply_logprobs, token_logprobs

Loss = Callable[[Trainable, Batch], Tensor]


def dpo_loss(
    model: Trainable, batch: Batch, *, beta: float = 0.1, nll_weight: float = 0.0
) -> Tensor:
    """``-log sigmoid(beta * margin)``, the sigmoid loss of DPO (arXiv 2305.18290, eq. 7).

    The margin of a pair is the log-ratio of policy to reference of the chosen reply, minus that of
    the rejected one, in nats. Deviations: a pair counts by its weight, the difference in credit;
    examples without a rejected reply have no margin and count only in the supervised term.

    Args:
        batch: examples with their reference (:func:`~swarm_ui.optim.examples.with_reference`).
        beta: strength of the regularisation towards the reference.
        nll_weight: weight of :func:`rft_loss`, so that chosen replies stay likely.
    """
    return _of_pairs(model, batch, lambda margin: -F.logsigmoid(beta * margin), nll_weight)


def ipo_loss(
    model: Trainable, batch: Batch, *, beta: float = 0.1, nll_weight: float = 0.0
) -> Tensor:
    """``(margin - 1 / (2 beta))^2``, the squared loss of IPO (arXiv 2310.12036, eq. 17).

    As in the paper, log-probabilities are sums over tokens. The rest is as in :func:`dpo_loss`.
    """
    return _of_pairs(model, batch, lambda margin: (margin - 0.5 / beta) ** 2, nll_weight)


def rft_loss(model: Trainable, batch: Batch) -> Tensor:
    """Mean negative log-likelihood per token (nats) of the chosen replies, each counted by its
    weight: rejection-sampling fine-tuning."""
    return _likelihood(reply_logprobs(model, [(e.adapter, e.chosen) for e in batch]), batch)


def policy_gradient_loss(
    model: Trainable,
    batch: Batch,
    *,
    clip: float = 0.2,
    beta: float = 0.0,
    ratio: Literal["token", "sequence"] = "token",
) -> Tensor:
    """Clipped policy gradient: ``-min(s A, clamp(s, 1 - clip, 1 + clip) A)``.

    ``s`` is the ratio of probabilities under the policy and under the reference, the weights that
    sampled the reply. The advantage ``A`` is ``Example.weight``. The terms of a reply's tokens are
    averaged, then those of the replies.

    Args:
        batch: replies with advantages and their reference.
        clip: the largest distance of the ratio from 1 that has a gradient.
        beta: weight of the KL divergence from the reference per token (nats), by the estimator
            ``exp(d) - d - 1`` of GRPO (eq. 4) with ``d = reference - policy``.
        ratio: ``token``: one for each token, as in GRPO (arXiv 2402.03300, eq. 3). ``sequence``:
            one for the reply, the geometric mean of those of its tokens, as in GSPO (arXiv
            2507.18071, eqs. 5 and 7).
    """
    policy = token_logprobs(model, [(e.adapter, e.chosen) for e in batch])
    reference = pad_sequence([policy.new_tensor(e.by_token) for e in batch], True)
    mask = pad_sequence([policy.new_ones(len(e.chosen[1])) for e in batch], True)
    tokens = mask.sum(1).clamp(min=1)
    advantage = policy.new_tensor([e.weight for e in batch])[:, None]
    if ratio == "token":
        s = (policy - reference).exp()
    else:
        s = ((policy - reference).sum(1) / tokens).exp()[:, None].expand_as(policy)
    loss = -torch.minimum(s * advantage, s.clamp(1.0 - clip, 1.0 + clip) * advantage)
    if beta:
        d = reference - policy
        loss = loss + beta * (d.exp() - d - 1.0)
    return ((loss * mask).sum(1) / tokens).sum() / len(batch.whole)


def _of_pairs(
    model: Trainable, batch: Batch, cost: Callable[[Tensor], Tensor], nll_weight: float
) -> Tensor:
    pairs = [(k, e.rejected, e) for k, e in enumerate(batch) if e.rejected is not None]
    rows = [(e.adapter, e.chosen) for e in batch]
    sums = reply_logprobs(model, [*rows, *((e.adapter, rejected) for _, rejected, e in pairs)])
    loss = nll_weight * _likelihood(sums[: len(rows)], batch)
    if not pairs:
        return loss
    reference = sums.new_tensor([e.reference[0] - e.reference[1] for _, _, e in pairs])
    weight = sums.new_tensor([e.weight for _, _, e in pairs])
    margin = sums[[k for k, _, _ in pairs]] - sums[len(rows) :] - reference
    whole = [e.weight for e in batch.whole if e.rejected is not None]
    share = len(whole) / len(batch.whole) / max(sum(whole), 1e-8)
    return loss + (weight * cost(margin)).sum() * share


def _likelihood(sums: Tensor, batch: Batch) -> Tensor:
    weight = sums.new_tensor([e.weight for e in batch])
    tokens = sum(e.weight * len(e.chosen[1]) for e in batch.whole)
    return -(weight * sums).sum() / max(tokens, 1e-8)
