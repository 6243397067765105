"""Learning edges from what sampled graphs were worth: score function, baselines, step geometry.

The gradient is that of the log-probability the distribution gives a sample (of the edge set, the
order summed out, where that can be done). By default steps are taken in probability space
(``p += lr * dJ/dlogit``, the natural gradient of a Bernoulli up to a constant), which neither
stalls nor runs away at the ends as steps on logits do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Literal, Protocol

import msgspec
import torch
from torch import Tensor, nn
from typing_extensions import TypeVar  # PyTorch needs it too; typing has no defaults before 3.13

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.trace.records import EdgeName

Baseline = Literal["others", "average", "none"] | float
Space = Literal["probability", "adam"]


class Learnable(Protocol):
    """What an :class:`EdgeOptimizer` asks of a distribution over graphs."""

    @property
    def space(self) -> EdgeSpace: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """Log-probability of each sample, ``[B]``, with gradient."""
        ...

    def edge_logits(self, sample: EdgeSample) -> Tensor:
        """Log-odds of each candidate as they were for this sample, ``[E]``, with gradient."""
        ...

    def edge_entropy(self) -> Tensor: ...


D = TypeVar("D", bound=Learnable, default=EdgeDistribution)


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


class EdgeLearner(Protocol):
    """Anything that learns from graphs that were tried."""

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> EdgeUpdate:
        """One update; see :meth:`EdgeOptimizer.step`."""
        ...


class EdgeOptimizer(Generic[D]):
    """Moves a distribution over graphs towards those of higher utility."""

    def __init__(
        self,
        distribution: D,
        *,
        lr: float = 0.4,
        score_lr: float | None = None,
        first_lr: float | None = None,
        warmup: int = 0,
        min_probability: float = 0.03,
        max_score: float = 3.0,
        entropy_weight: float = 0.0,
        momentum: float = 0.9,
        credit_weight: float = 0.1,
        normalise: bool = False,
        baseline: Baseline = "others",
        space: Space = "probability",
    ) -> None:
        """Defaults are ours.

        Args:
            distribution: updated in place.
            lr: step of edge probabilities for an advantage of 1; with ``space="adam"`` Adam's
                learning rate for all parameters.
            score_lr: step of the order's scores; default: as ``lr``.
            first_lr: where ``lr`` starts, to grow linearly over ``warmup`` samples with a utility:
                early steps decide on little evidence, late ones only make sure. Default: ``lr``.
            warmup: see ``first_lr``; 0: none.
            min_probability: every edge keeps a probability in ``[this, 1 - this]``, so that the
                entropy never falls to 0 and no edge is lost for good.
            max_score: bound on the absolute value of an order score.
            entropy_weight: weight of the edges' entropy in the objective.
            momentum: of the moving average.
            credit_weight: weight of per-edge credit beside the utility.
            normalise: divide advantages by the utilities' standard deviation within their group,
                so that their scale does not matter: for utilities that are means over many
                episodes and differ by little. Needs two samples in a group to have an effect.
            baseline: what a utility is compared with. ``"others"``: the mean of the *others* in
                its group (unbiased); alone in its group, the moving average of earlier steps.
                ``"average"``: that moving average always. ``"none"``: 0. A number: itself.
            space: ``"probability"``: natural, clipped steps, for distributions with ``logits`` and
                perhaps ``scores``. ``"adam"``: Adam on the parameters, without the two bounds.
        """
        _check(distribution, min_probability, baseline, space, warmup)
        self.distribution = distribution
        self.lr = lr
        self.score_lr = lr if score_lr is None else score_lr
        self.first_lr = lr if first_lr is None else first_lr
        self.warmup = warmup
        self.min_probability = min_probability
        self.max_score = max_score
        self.entropy_weight = entropy_weight
        self.momentum = momentum
        self.credit_weight = credit_weight
        self.normalise = normalise
        self.baseline = baseline
        self._adam = torch.optim.Adam(distribution.parameters(), lr) if space == "adam" else None
        self.average: float | None = None
        """Moving average of utilities; ``None`` before the first step."""
        self.seen = 0
        """Samples with a utility so far; what the warm-up counts."""

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> EdgeUpdate:
        """One update.

        Args:
            samples: graphs drawn from the distribution as it is now.
            utilities: what each was worth; ``None`` masks a sample (it is not a 0): the others
                are compared as if it had not been drawn.
            credit: for each sample, an advantage of single edges, such as a critic's; edges
                without an entry are unscored. It counts even where the utility is ``None``.
            groups: what task and seed each was tried on; samples are compared within their
                group. Default: all are one group.
        """
        check_lengths(samples, utilities, credit, groups)
        scored = [k for k, u in enumerate(utilities) if u is not None]
        credited = [k for k in range(len(samples)) if credit is not None and credit[k]]
        values = [u for u in utilities if u is not None]
        mean = sum(values) / len(values) if values else self.average or 0.0
        if not scored and not credited:
            return self._update(0, mean, self._chances(samples))
        before = self._chances(samples)
        objective = torch.zeros(())
        if scored:
            own = [None if groups is None else groups[k] for k in scored]
            advantages = torch.tensor(self._advantages(values, own))
            # Adam moves on its momentum even where there is nothing to learn.
            if self._adam is not None or bool(advantages.any()):
                log_probs = self.distribution.sample_log_probs([samples[k] for k in scored])
                objective = objective + (advantages * log_probs).sum() / len(scored)
        for k in credited:
            assert credit is not None
            objective = objective + self._nudge(samples[k], credit[k]) / len(credited)
        if self.entropy_weight:
            objective = objective + self.entropy_weight * self.distribution.edge_entropy()
        if objective.requires_grad:
            self._ascend(objective)
        self.seen += len(scored)
        return self._update(len(scored), mean, before, samples)

    def _advantages(self, values: Sequence[float], groups: Sequence[object]) -> list[float]:
        mean = sum(values) / len(values)
        known = self.average
        self.average = mean if known is None else self._blend(known, mean)
        if self.baseline == "none":
            return list(values)
        if isinstance(self.baseline, float | int):
            return [v - self.baseline for v in values]
        if self.baseline == "average":
            return [v - (mean if known is None else known) for v in values]
        members: dict[object, list[int]] = {}
        for k, group in enumerate(groups):
            members.setdefault(group, []).append(k)
        out = [0.0] * len(values)
        for places in members.values():
            own = [values[k] for k in places]
            compared = self._within(own, known)
            for k, advantage in zip(places, compared, strict=True):
                out[k] = advantage
        return out

    def _within(self, values: Sequence[float], known: float | None) -> list[float]:
        if len(values) == 1:
            return [0.0 if known is None else values[0] - known]
        total, others = sum(values), len(values) - 1
        mean = total / len(values)
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / others)
        scale = spread if self.normalise and spread > 1e-9 else 1.0
        return [(v - (total - v) / others) / scale for v in values]

    def _blend(self, old: float, new: float) -> float:
        return self.momentum * old + (1.0 - self.momentum) * new

    def _nudge(self, sample: EdgeSample, credit: Mapping[EdgeName, float]) -> Tensor:
        drawn = set(sample.edges)
        strange = [edge for edge in credit if edge not in drawn]
        if strange:
            raise ConfigError(f"edge step: credit for {strange[0]}, which its sample does not have")
        slots = [self.distribution.space.slot[edge] for edge in credit]
        logits = self.distribution.edge_logits(sample)[slots]
        values = torch.tensor(list(credit.values()))
        return self.credit_weight * (values * nn.functional.logsigmoid(logits)).sum()

    @property
    def rate(self) -> float:
        """``lr`` as it is now, as a share of what it will be."""
        done = min(1.0, self.seen / self.warmup) if self.warmup else 1.0
        return (self.first_lr + (self.lr - self.first_lr) * done) / self.lr

    def _ascend(self, objective: Tensor) -> None:
        rate = self.rate
        if self._adam is not None:
            self._adam.param_groups[0]["lr"] = rate * self.lr
            self._adam.zero_grad()
            (-objective).backward()  # type: ignore[no-untyped-call]
            self._adam.step()
            return
        named = dict(self.distribution.named_parameters())  # type: ignore[attr-defined]
        slopes = torch.autograd.grad(objective, list(named.values()), allow_unused=True)
        d = dict(zip(named, slopes, strict=True))
        logits, scores = named["logits"], named.get("scores")
        with torch.no_grad():
            p = logits.sigmoid()
            if d["logits"] is not None:
                p = p + rate * self.lr * d["logits"]
            low = max(self.min_probability, 1e-6)
            logits.copy_(torch.logit(p.clamp(low, 1.0 - low)))
            if scores is not None and d["scores"] is not None:
                moved = scores + rate * self.score_lr * d["scores"]
                # Only differences of scores matter; centring keeps the bound symmetric.
                scores.copy_((moved - moved.mean()).clamp(-self.max_score, self.max_score))

    @torch.no_grad()
    def _chances(self, samples: Sequence[EdgeSample]) -> Tensor:
        distinct = {sample.condition: sample for sample in samples}
        if not distinct:
            return torch.zeros(0)
        return torch.stack([self.distribution.edge_logits(s) for s in distinct.values()]).sigmoid()

    def _update(
        self, used: int, baseline: float, before: Tensor, samples: Sequence[EdgeSample] = ()
    ) -> EdgeUpdate:
        with torch.no_grad():
            change = (self._chances(samples) - before).abs() if samples else torch.zeros(0)
            return EdgeUpdate(
                used=used,
                baseline=baseline,
                moved=float(change.max()) if change.numel() else 0.0,
                edge_entropy=float(self.distribution.edge_entropy()),
            )


def gptswarm_rule(
    distribution: D, baseline: Literal["none", "half", "average"] = "half"
) -> EdgeOptimizer[D]:
    """GPTSwarm's own update, as a reference: Adam at 0.1 on all log-odds, no bounds.

    Use it with :class:`~swarm_ui.optim.edges.sequential.SequentialEdges` in the listed sequence,
    and batches of 4.

    Args:
        baseline: ``"none"``, as its code does for MMLU; ``"half"``, as it does elsewhere (the
            moving average is reset every step, so it stays at 0.5); ``"average"``, the moving
            average that seems to have been meant.
    """
    own: Baseline = 0.5 if baseline == "half" else baseline
    return EdgeOptimizer(distribution, lr=0.1, baseline=own, space="adam")


def check_lengths(
    samples: Sequence[EdgeSample],
    utilities: Sequence[float | None],
    credit: Sequence[Mapping[EdgeName, float]] | None,
    groups: Sequence[object] | None,
) -> None:
    """Raises ``ConfigError`` unless there is one of each for every sample."""
    for what, given in (("utilities", utilities), ("credit", credit), ("groups", groups)):
        if given is not None and len(given) != len(samples):
            raise ConfigError(
                f"edge step: {what} and samples differ in length: {len(given)} and {len(samples)}"
            )
    bad = [u for u in utilities if u is not None and not math.isfinite(u)]
    if bad:
        raise ConfigError(f"edge step: a utility is {bad[0]}; a sample that failed has None")


def _check(
    distribution: object, min_probability: float, baseline: Baseline, space: Space, warmup: int
) -> None:
    """Refuse settings that cannot be."""
    if warmup < 0:
        raise ConfigError(f"warmup must be a number of samples, got {warmup}")
    if not 0.0 <= min_probability < 0.5:
        raise ConfigError(f"min_probability must be in [0, 0.5), got {min_probability}")
    if isinstance(baseline, str) and baseline not in ("others", "average", "none"):
        raise ConfigError(
            f"baseline must be 'others', 'average', 'none' or a number, got {baseline!r}"
        )
    if space not in ("probability", "adam"):
        raise ConfigError(f"space must be 'probability' or 'adam', got {space!r}")
    names = {name for name, _ in getattr(distribution, "named_parameters", list)()}
    if space == "probability" and not names <= {"logits", "scores"}:
        raise ConfigError(
            "space='probability' needs a distribution whose only parameters are logits and "
            f"scores, this one has {sorted(names)}; use space='adam'"
        )
