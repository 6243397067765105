"""Learning of edges: a score-function loss, an optimiser that steps in probabilities, and credit
from the messages that edges carried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, stdev
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.preferences import credit_by_message
from swarm_ui.trace.records import EdgeName, Episode, Trace

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
            :func:`~swarm_ui.optim.edges.optim.episode_edge_credit`; others are unscored. It counts
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


_BASELINE = 0.5
"""What is subtracted from a credit, which is neither right nor wrong there."""


def edge_credit(
    trace: Trace, credit: Sequence[Sequence[float | None]], *, discount: float = 0.5
) -> dict[EdgeName, float]:
    """Credit of each edge of a decision, propagated backwards through the messages.

    The advantage of a message is its credit minus one half. Its return is its own advantage plus
    ``discount`` times the mean return of the messages that received it. Credit of a late message
    therefore reaches all messages before it, discounted with every hop. An edge gets the advantage
    of the message that it carried plus ``discount`` times the return of the receiver's message.
    Edges that carried no message have no entry.

    Args:
        credit: ``[rounds, agents]`` in the sequence of ``trace.agents``; ``None``: unscored; such
            a message has no advantage of its own.
        discount: a number in [0, 1); with 0 an edge gets only the advantage of the message itself.

    Returns the mean over the messages that each edge carried, by (sender, listener).
    """
    if not 0.0 <= discount < 1.0:
        raise ConfigError(f"edge credit: discount must be in [0, 1), got {discount}")
    own = {id: v - _BASELINE for id, v in credit_by_message(trace, credit).items()}
    sender = {message.id: message.sender for message in trace.messages}
    failed = {message.id for message in trace.messages if message.error is not None}
    heard_by: dict[str, list[str]] = {}
    for call in trace.calls:
        for id in call.heard:
            heard_by.setdefault(id, []).append(call.id)

    @cache
    def returns(id: str) -> float | None:
        """``None`` where neither the message nor a later one was scored."""
        later = [v for reply in heard_by.get(id, ()) if (v := returns(reply)) is not None]
        return own.get(id, 0.0) + discount * fmean(later) if later and discount else own.get(id)

    carried: dict[EdgeName, list[float]] = {}
    edges = set(trace.edges)
    for call in trace.calls:
        onward = returns(call.id) if discount else None
        for id in call.heard:
            edge = (sender.get(id, ""), call.node)
            if edge in edges and id not in failed and (id in own or onward is not None):
                carried.setdefault(edge, []).append(own.get(id, 0.0) + discount * (onward or 0.0))
    return {edge: fmean(values) for edge, values in sorted(carried.items())}


def episode_edge_credit(
    episodes: Iterable[Episode], *, edges: Iterable[EdgeName] | None = None, discount: float = 0.5
) -> dict[EdgeName, float]:
    """Mean credit of each edge of one sampled graph, over the decisions of its episodes: an element
    of ``credit`` in :func:`~swarm_ui.optim.edges.optim.edge_loss`. Steps without credit, and masked
    episodes, are left out. ``edges``: those to keep, such as those of the sample; default: all."""
    gathered: dict[EdgeName, list[float]] = {}
    for episode in episodes:
        for step in episode.steps if episode.success is not None else ():
            if step.credit is not None:
                for edge, value in edge_credit(step.trace, step.credit, discount=discount).items():
                    gathered.setdefault(edge, []).append(value)
    kept = set(gathered if edges is None else edges)
    return {edge: fmean(values) for edge, values in sorted(gathered.items()) if edge in kept}
