"""Learning edges from what sampled graphs were worth: score function, baseline, probability steps.

The gradient is that of the *edge set's* log-probability, with the order summed out where the
number of nodes allows it: the order explains the edges only weakly, and summing it out removes
that noise. Steps are taken in probability space (``p += lr * dJ/dlogit``, the natural gradient of
a Bernoulli up to a constant), which neither stalls nor runs away at the ends as steps on logits do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges import EdgeDistribution, EdgeSample
from swarm_ui.optim.orders import MAX_EXACT
from swarm_ui.trace import EdgeName


class EdgeUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What one step did."""

    used: int
    """Samples with a utility; the others were masked."""
    baseline: float
    """Mean of the used utilities."""
    moved: float
    """Largest change of an edge's probability."""
    edge_entropy: float
    """Nats, after the step."""


class EdgeOptimizer:
    """Moves an :class:`EdgeDistribution` towards graphs of higher utility.

    With two or more samples in a step the baseline of each is the mean utility of the *others*
    (unbiased); a lone sample is compared with a moving average of earlier utilities.
    """

    def __init__(
        self,
        distribution: EdgeDistribution,
        *,
        lr: float = 0.4,
        score_lr: float | None = None,
        min_probability: float = 0.03,
        max_score: float = 3.0,
        entropy_weight: float = 0.0,
        momentum: float = 0.9,
        credit_weight: float = 0.1,
        normalise: bool = False,
    ) -> None:
        """Defaults are ours.

        Args:
            distribution: updated in place.
            lr: step of edge probabilities for an advantage of 1.
            score_lr: step of the order's scores; default: as ``lr``.
            min_probability: every edge keeps a probability in ``[this, 1 - this]``, so that the
                entropy never falls to 0 and no edge is lost for good.
            max_score: bound on the absolute value of an order score.
            entropy_weight: weight of the edges' entropy in the objective.
            momentum: of the moving average for lone samples.
            credit_weight: weight of per-edge credit beside the utility.
            normalise: divide advantages by the utilities' standard deviation within the step, so
                that their scale does not matter: for utilities that are means over many episodes
                and differ by little. Needs at least two samples to have an effect.
        """
        if not 0.0 <= min_probability < 0.5:
            raise ConfigError(f"min_probability must be in [0, 0.5), got {min_probability}")
        self.distribution = distribution
        self.lr = lr
        self.score_lr = lr if score_lr is None else score_lr
        self.min_probability = min_probability
        self.max_score = max_score
        self.entropy_weight = entropy_weight
        self.momentum = momentum
        self.credit_weight = credit_weight
        self.normalise = normalise
        self.average: float | None = None
        """Moving average of utilities; ``None`` before the first step."""

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
    ) -> EdgeUpdate:
        """One update.

        Args:
            samples: graphs drawn from the distribution as it is now.
            utilities: what each was worth; ``None`` masks a sample (it is not a 0).
            credit: for each sample, an advantage of single edges, such as a critic's; edges
                without an entry are unscored.
        """
        if len(samples) != len(utilities) or (credit is not None and len(credit) != len(samples)):
            raise ConfigError("edge step: samples, utilities and credit differ in length")
        used = [(s, float(u), k) for k, (s, u) in enumerate(zip(samples, utilities, strict=True))
                if u is not None]  # fmt: skip
        before = torch.sigmoid(self.distribution.logits.detach())
        if not used:
            return self._update(0, self.average or 0.0, before)
        values = [u for _, u, _ in used]
        objective = self.distribution.logits.sum() * 0.0
        for (sample, _, k), advantage in zip(used, self._advantages(values), strict=True):
            if advantage:
                objective = objective + advantage / len(used) * self._log_prob(sample)
            for edge, value in ({} if credit is None else credit[k]).items():
                objective = objective + self._nudge(sample, edge, value) / len(used)
        if self.entropy_weight:
            objective = objective + self.entropy_weight * self.distribution.edge_entropy()
        self._ascend(objective)
        return self._update(len(used), sum(values) / len(values), before)

    def _advantages(self, values: Sequence[float]) -> list[float]:
        mean = sum(values) / len(values)
        known = self.average
        self.average = mean if known is None else self._blend(known, mean)
        if len(values) == 1:
            return [0.0 if known is None else values[0] - known]
        total, others = sum(values), len(values) - 1
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / others)
        scale = spread if self.normalise and spread > 1e-9 else 1.0
        return [(v - (total - v) / others) / scale for v in values]

    def _blend(self, old: float, new: float) -> float:
        return self.momentum * old + (1.0 - self.momentum) * new

    def _log_prob(self, sample: EdgeSample) -> Tensor:
        if len(self.distribution.names) <= MAX_EXACT:
            return self.distribution.log_prob_edges(sample.edges)
        return self.distribution.log_prob(sample.order, sample.edges)

    def _nudge(self, sample: EdgeSample, edge: EdgeName, value: float) -> Tensor:
        if edge not in sample.edges:
            raise ConfigError(f"edge step: credit for {edge}, which its sample does not have")
        logit = self.distribution.logits[self.distribution.candidates.index(edge)]
        return self.credit_weight * value * torch.nn.functional.logsigmoid(logit)

    def _ascend(self, objective: Tensor) -> None:
        logits, scores = self.distribution.logits, self.distribution.scores
        d_logits, d_scores = torch.autograd.grad(objective, [logits, scores], allow_unused=True)
        with torch.no_grad():
            p = logits.sigmoid()
            if d_logits is not None:
                p = p + self.lr * d_logits
            low = max(self.min_probability, 1e-6)
            logits.copy_(torch.logit(p.clamp(low, 1.0 - low)))
            if d_scores is not None:
                moved = scores + self.score_lr * d_scores
                # Only differences of scores matter; centring keeps the bound symmetric.
                scores.copy_((moved - moved.mean()).clamp(-self.max_score, self.max_score))

    def _update(self, used: int, baseline: float, before: Tensor) -> EdgeUpdate:
        with torch.no_grad():
            change = (self.distribution.logits.sigmoid() - before).abs()
            return EdgeUpdate(
                used=used,
                baseline=baseline,
                moved=float(change.max()) if change.numel() else 0.0,
                edge_entropy=float(self.distribution.edge_entropy()),
            )
