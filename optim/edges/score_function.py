"""The base of both edge optimisers: advantages of samples, and the score-function objective.

The gradient is that of the log-probability of a sample. If the number of nodes allows it, this is
the probability of its edge set, summed over all orders.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypedDict

import msgspec
import torch
from torch import Tensor, nn
from typing_extensions import TypeVar  # PyTorch needs it too; typing has no defaults before 3.13

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.candidate_graph import CandidateGraph, EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.trace.records import EdgeName

Baseline = Literal["others", "average", "none"] | float
MOMENTUM = 0.9
"""Momentum of the moving average of utilities."""


class DifferentiableEdges(Protocol):
    """A distribution over DAGs whose log-probability has a gradient."""

    logits: nn.Parameter
    """Log-odds of each candidate, ``[E]``."""

    @property
    def graph(self) -> CandidateGraph: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """Log-probability of each sample, ``[B]``, with gradient."""
        ...

    def edge_entropy(self) -> Tensor: ...


D = TypeVar("D", bound=DifferentiableEdges, default=EdgeDistribution)


class EdgeUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What one update of the edges used and changed."""

    used: int
    """Number of samples with a utility; the others were masked."""
    baseline: float
    """Mean utility of the used samples."""
    moved: float
    """Largest change of an edge's probability."""
    edge_entropy: float
    """Expected entropy (nats) of the edges after the update."""


class Settings(TypedDict, total=False):
    """The keywords of :class:`ScoreFunctionOptimizer`."""

    lr: float
    first_lr: float | None
    warmup: int
    credit_weight: float
    normalise: bool
    baseline: Baseline


class ScoreFunctionOptimizer(ABC, Generic[D]):
    """Moves a distribution over DAGs towards samples of higher utility.

    Attributes:
        average: moving average of utilities; ``None`` before the first step.
        seen: number of samples with a utility so far; the warm-up counts them.
    """

    steps_without_gradient = False
    """Whether a step is made even if all advantages are 0, because the optimiser has momentum."""

    def __init__(
        self,
        distribution: D,
        *,
        lr: float = 0.4,
        first_lr: float | None = None,
        warmup: int = 0,
        credit_weight: float = 0.1,
        normalise: bool = False,
        baseline: Baseline = "others",
    ) -> None:
        """The defaults are ours.

        Args:
            distribution: updated in place.
            lr: the learning rate.
            first_lr: initial ``lr``; it grows linearly over ``warmup`` samples with a utility, so
                that early steps, which have little evidence, are small. Default: ``lr``.
            warmup: see ``first_lr``; 0: no warm-up.
            credit_weight: weight of the credit of single edges relative to the utility.
            normalise: divide advantages by the standard deviation of the utilities in their
                group, so that their scale does not matter. Use it for utilities that are means
                over many episodes and differ by little. It needs two samples in a group.
            baseline: what is subtracted from a utility. ``"others"``: the mean of the *other*
                samples in its group (unbiased); for a group of one sample, the moving average of
                earlier steps. ``"average"``: always this moving average. ``"none"``: 0. A number:
                this number.

        Raises:
            ConfigError: a setting is outside its range.
        """
        if warmup < 0:
            raise ConfigError(
                f"edge optimiser: warmup must be a number of samples >= 0, got {warmup}"
            )
        if isinstance(baseline, str) and baseline not in ("others", "average", "none"):
            raise ConfigError(
                "edge optimiser: baseline must be 'others', 'average', 'none' or a number, "
                f"got {baseline!r}"
            )
        self.distribution, self.lr, self.warmup = distribution, lr, warmup
        self.first_lr = lr if first_lr is None else first_lr
        self.credit_weight, self.normalise, self.baseline = credit_weight, normalise, baseline
        self.average: float | None = None
        self.seen = 0

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"{kind}({self.distribution!r}, lr={self.lr:g}, {self.seen} samples seen)"

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> EdgeUpdate:
        """Make one update.

        Args:
            samples: drawn from the distribution as it is now.
            utilities: one for each sample; ``None`` masks a sample: the others are compared as if
                it had not been drawn.
            credit: for each sample, an advantage of single edges, such as a critic's; edges
                without an entry are unscored. It counts even if the utility is ``None``.
            groups: for each sample, an identifier of the task and seed it was tried on; samples
                are compared within their group. Default: all are one group.
        """
        check_lengths(samples, utilities, credit, groups)
        scored = [k for k, u in enumerate(utilities) if u is not None]
        values = [u for u in utilities if u is not None]
        credited = [(s, given) for s, given in zip(samples, credit or (), strict=False) if given]
        credit_terms = [self._credit_term(*pair) / len(credited) for pair in credited]
        mean = sum(values) / len(values) if values else self.average or 0.0
        before = self.distribution.logits.detach().sigmoid()
        objective = torch.zeros(())
        if scored:
            own = [None if groups is None else groups[k] for k in scored]
            advantages = torch.tensor(self._advantages(values, own))
            if self.steps_without_gradient or bool(advantages.any()):
                log_probs = self.distribution.sample_log_probs([samples[k] for k in scored])
                objective = objective + (advantages * log_probs).sum() / len(scored)
        for term in credit_terms:
            objective = objective + term
        if objective.requires_grad:
            self._ascend(objective)
        self.seen += len(scored)
        with torch.no_grad():
            change = (self.distribution.logits.sigmoid() - before).abs()
            return EdgeUpdate(
                used=len(scored),
                baseline=mean,
                moved=float(change.max()) if change.numel() else 0.0,
                edge_entropy=float(self.distribution.edge_entropy()),
            )

    @property
    def rate(self) -> float:
        """The present learning rate as a share of ``lr``; below 1 during the warm-up."""
        done = min(1.0, self.seen / self.warmup) if self.warmup else 1.0
        present = self.first_lr + (self.lr - self.first_lr) * done
        return present / self.lr if self.lr else 0.0

    @abstractmethod
    def _ascend(self, objective: Tensor) -> None:
        """Change the parameters so that the objective grows."""

    def _advantages(self, values: Sequence[float], groups: Sequence[object]) -> list[float]:
        mean = sum(values) / len(values)
        known = self.average
        self.average = mean if known is None else MOMENTUM * known + (1.0 - MOMENTUM) * mean
        out = [0.0] * len(values)
        for rows in by_group(groups):
            own = [values[k] for k in rows]
            scale = self._scale(own)
            for k, baseline in zip(rows, self._baselines(own, known, mean), strict=True):
                out[k] = (values[k] - baseline) / scale
        return out

    def _baselines(
        self, values: Sequence[float], known: float | None, mean: float
    ) -> Sequence[float]:
        """The baseline that is subtracted from each utility of a group.

        Args:
            values: the utilities of the group.
            known: the moving average of earlier steps, if there were any.
            mean: the mean utility of this step.
        """
        size = len(values)
        if self.baseline == "none":
            return [0.0] * size
        if isinstance(self.baseline, float | int):
            return [self.baseline] * size
        if self.baseline == "average":
            return [mean if known is None else known] * size
        if size == 1:
            return values if known is None else [known]
        total = sum(values)
        return [(total - v) / (size - 1) for v in values]

    def _scale(self, values: Sequence[float]) -> float:
        """The number by which the advantages of a group are divided."""
        if not self.normalise or len(values) < 2:
            return 1.0
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
        return spread if spread > 1e-9 else 1.0

    def _credit_term(self, sample: EdgeSample, credit: Mapping[EdgeName, float]) -> Tensor:
        drawn = set(sample.edges)
        unknown = [edge for edge in credit if edge not in drawn]
        if unknown:
            raise ConfigError(
                f"edge step: got credit for edge {unknown[0]}, which is not in the sample; "
                "give credit only to edges of the sample"
            )
        chosen = [self.distribution.graph.edge_index[edge] for edge in credit]
        values = torch.tensor(list(credit.values()))
        log_probs = nn.functional.logsigmoid(self.distribution.logits[chosen])
        return self.credit_weight * (values * log_probs).sum()


def by_group(groups: Sequence[object]) -> list[list[int]]:
    """The indices of the samples of each group."""
    members: dict[object, list[int]] = {}
    for k, group in enumerate(groups):
        members.setdefault(group, []).append(k)
    return list(members.values())


def check_lengths(
    samples: Sequence[EdgeSample],
    utilities: Sequence[float | None],
    credit: Sequence[Mapping[EdgeName, float]] | None,
    groups: Sequence[object] | None,
) -> None:
    """Raise ``ConfigError`` unless each argument has one entry for every sample, and all numbers
    are finite."""
    for what, given in (("utilities", utilities), ("credit", credit), ("groups", groups)):
        if given is not None and len(given) != len(samples):
            raise ConfigError(
                f"edge step: {what} and samples differ in length: {len(given)} and {len(samples)}"
            )
    bad = [u for u in utilities if u is not None and not math.isfinite(u)]
    if bad:
        raise ConfigError(f"edge step: a utility is {bad[0]}; give None for a sample that failed")
    bad = [v for given in credit or () for v in given.values() if not math.isfinite(v)]
    if bad:
        raise ConfigError(f"edge step: a credit is {bad[0]}; leave out edges that are unscored")
