"""Losses of preference and policy-gradient learning, as functions of sequence log-probabilities.

``[B]`` is one number for each example: the log-probability (nats) of a reply given its prompt,
summed over the reply's tokens. Each function returns a scalar, the mean over the examples.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def margin(
    policy_chosen: Tensor, policy_rejected: Tensor, ref_chosen: Tensor, ref_rejected: Tensor
) -> Tensor:
    """Log-ratio of policy to reference of the chosen reply, minus that of the rejected one, in
    nats, ``[B]``."""
    return (policy_chosen - ref_chosen) - (policy_rejected - ref_rejected)


def dpo_loss(
    policy_chosen: Tensor,
    policy_rejected: Tensor,
    ref_chosen: Tensor,
    ref_rejected: Tensor,
    *,
    beta: float,
    weight: Tensor | None = None,
) -> Tensor:
    """``-log sigmoid(beta * margin)``, the sigmoid loss of DPO (arXiv 2305.18290, eq. 7).

    Args:
        policy_chosen, policy_rejected: log-probabilities under the policy, with gradient, ``[B]``.
        ref_chosen, ref_rejected: log-probabilities under the reference, ``[B]``.
        beta: strength of the regularisation towards the reference.
        weight: the weight of each pair, ``[B]``; default 1. The other losses also accept it.
    """
    h = margin(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return _mean(-F.logsigmoid(beta * h), weight)


def ipo_loss(
    policy_chosen: Tensor,
    policy_rejected: Tensor,
    ref_chosen: Tensor,
    ref_rejected: Tensor,
    *,
    beta: float,
    weight: Tensor | None = None,
) -> Tensor:
    """``(margin - 1 / (2 beta))^2``, the squared loss of IPO (arXiv 2310.12036, eq. 17).

    Shapes as in :func:`dpo_loss`. As in the paper, log-probabilities are sums over tokens. Some
    libraries divide them by the number of tokens first, which the caller can do.
    """
    h = margin(policy_chosen, policy_rejected, ref_chosen, ref_rejected)
    return _mean((h - 1.0 / (2.0 * beta)) ** 2, weight)


def nll_loss(policy_chosen: Tensor, tokens: Tensor, *, weight: Tensor | None = None) -> Tensor:
    """Mean negative log-likelihood per token (nats) of the chosen replies.

    It is the loss of rejection-sampling fine-tuning. Beside DPO it prevents a collapse of the
    likelihood of chosen replies. ``tokens`` are those of each reply, ``[B]``.
    """
    w = torch.ones_like(policy_chosen) if weight is None else weight
    return -(w * policy_chosen).sum() / (w * tokens).sum().clamp_min(1e-8)


def policy_gradient_loss(
    policy: Tensor, old: Tensor, advantage: Tensor, tokens: Tensor, *, clip: float
) -> Tensor:
    """Clipped policy gradient on whole replies: ``-min(s A, clamp(s, 1 - clip, 1 + clip) A)``.

    ``s = exp((policy - old) / tokens)`` is the importance ratio of a reply, normalised by its
    length, as in GSPO (arXiv 2507.18071, eqs. 5 and 7); credit is given to messages, so the ratio
    is one number for each message too.

    Args:
        policy: log-probabilities under the current policy, with gradient, ``[B]``.
        old: log-probabilities under the policy that sampled the replies, ``[B]``.
        advantage: credit relative to a group, ``[B]``. A negative one lowers the probability.
        tokens: the number of tokens of each reply, ``[B]``.
        clip: the largest distance of the ratio from 1 that has a gradient.
    """
    ratio = ((policy - old) / tokens.clamp_min(1)).exp()
    kept = ratio.clamp(1.0 - clip, 1.0 + clip)
    return -torch.minimum(ratio * advantage, kept * advantage).mean()


def divergence(policy: Tensor, reference: Tensor, tokens: Tensor) -> Tensor:
    """KL divergence from the reference per token (nats), estimated on these replies; at least 0.

    ``exp(d) - d - 1`` with ``d = (reference - policy) / tokens``, the estimator of GRPO (arXiv
    2402.03300, eq. 4) on the mean over a reply's tokens. All arguments are ``[B]``.
    """
    d = (reference - policy) / tokens.clamp_min(1)
    return (d.exp() - d - 1.0).mean()


def _mean(values: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return values.mean()
    return (weight * values).sum() / weight.sum().clamp_min(1e-8)
