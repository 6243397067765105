"""Thompson sampling over edges: a Gaussian posterior over what each edge is worth.

The utility of a graph is modelled as linear in its edges (+1 drawn, -1 not), with Gaussian noise
and a Gaussian prior around 0. A graph is drawn by drawing the worths from the posterior and taking
the edges of positive worth, the best first, skipping those that close a cycle. So exploration fades
as evidence grows, and each edge comes with an interval. Interactions between edges are only seen
as far as they show on average; cost grows with the cube of the number of candidates, so this is
for up to a few hundred.

Samples of one group (same task and seed) are compared with each other only: the difficulty of the
task cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.optimizer import EdgeUpdate, check_lengths
from swarm_ui.optim.edges.sequential import acyclic
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.stats import Interval
from swarm_ui.trace.records import EdgeName

_Z = 1.959964


class ThompsonEdges:
    """A posterior over the worth of every edge; draws graphs, and learns from them.

    Attributes:
        names, candidates, decision: as of
            :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
        seen: samples with a utility so far.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
        noise: float = 0.3,
        prior: float = 1.0,
        credit_noise: float = 1.0,
        scale: float = 1.0,
    ) -> None:
        """Defaults are ours, for utilities of about 0 to 1.

        Args:
            names, candidates, decision: as of
                :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
            noise: standard deviation of a utility around the linear model.
            prior: standard deviation of an edge's worth before anything was tried.
            credit_noise: standard deviation of a credit around an edge's worth.
            scale: of the posterior's spread when drawing; below 1 explores less.
        """
        for what, value in (("noise", noise), ("prior", prior), ("credit_noise", credit_noise),
                            ("scale", scale)):  # fmt: skip
            if not value > 0.0 or not math.isfinite(value):
                raise ConfigError(f"thompson edges: {what} must be above 0, got {value}")
        self.space = EdgeSpace(names, candidates, decision)
        self.names, self.candidates = self.space.names, self.space.edges
        self.decision = decision
        self.noise, self.prior, self.credit_noise, self.scale = noise, prior, credit_noise, scale
        self.seen = 0
        # In double precision: precisions of thousands of samples stand beside the prior's.
        size = len(self.candidates) + 1
        self._precision = self._start = torch.eye(size, dtype=torch.double) / prior**2
        self._weighted = torch.zeros(size, dtype=torch.double)
        self._solve()

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` graphs, each from worths of its own; equal generator states give equal
        graphs. They have no log-probability."""
        noise = torch.randn(batch, len(self._mean), generator=generator, dtype=torch.double)
        worths = self._mean + self.scale * noise @ self._root.T
        return [self._best(row) for row in worths[:, 1:]]

    def mode(self) -> EdgeSample:
        """The graph by the mean worths."""
        return self._best(self._mean[1:])

    def marginals(self) -> dict[EdgeName, float]:
        """Probability that each edge's drawn worth is positive; cycles left aside."""
        spread = self.scale * self._covariance.diagonal().sqrt()
        chance = torch.special.ndtr(self._mean / spread)[1:]
        return dict(zip(self.candidates, chance.tolist(), strict=True))

    def worth(self) -> dict[EdgeName, Interval]:
        """What having each edge rather than not adds to the utility, with 95 % intervals."""
        spread = 2.0 * _Z * self._covariance.diagonal().sqrt()
        rows = zip(
            self.candidates, (2.0 * self._mean)[1:].tolist(), spread[1:].tolist(), strict=True
        )
        return {
            edge: Interval(mean=mean, low=mean - wide, high=mean + wide, n=self.seen)
            for edge, mean, wide in rows
        }

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> EdgeUpdate:
        """One update, from graphs of any origin.

        Args:
            samples, utilities, groups: as of
                :meth:`~swarm_ui.optim.edges.optimizer.EdgeOptimizer.step`; without ``groups`` the
                utilities are compared over all steps.
            credit: for each sample, an observation of single edges' worths.
        """
        check_lengths(samples, utilities, credit, groups)
        before = self._chances()
        scored = [k for k, u in enumerate(utilities) if u is not None]
        values = [u for u in utilities if u is not None]
        if scored:
            own = None if groups is None else [groups[k] for k in scored]
            self._observe([samples[k] for k in scored], values, own)
        for given in credit or ():
            for edge, value in given.items():
                if edge not in self.space.slot:
                    raise ConfigError(f"edge step: credit for {edge}, which is not a candidate")
                place, weight = self.space.slot[edge] + 1, 1.0 / self.credit_noise**2
                self._precision = self._precision.clone()
                self._precision[place, place] += weight
                self._weighted[place] += weight * value
        self._solve()
        self.seen += len(scored)
        after = self._chances()
        entropy = -(torch.special.xlogy(after, after) + torch.special.xlogy(1 - after, 1 - after))
        return EdgeUpdate(
            used=len(scored),
            baseline=sum(values) / len(values) if values else 0.0,
            moved=float((after - before).abs().max()) if len(after) else 0.0,
            edge_entropy=float(entropy.sum()),
        )

    def discount(self, kept: float) -> None:
        """Forget a part of the evidence, because the agents changed.

        Args:
            kept: share of it that stays, in [0, 1]; 0 is the prior again.
        """
        if not 0.0 <= kept <= 1.0:
            raise ConfigError(f"discount: the share kept must be in [0, 1], got {kept}")
        self._precision = kept * self._precision + (1.0 - kept) * self._start
        self._weighted = kept * self._weighted
        self._solve()

    def state_dict(self) -> dict[str, Tensor]:
        """The evidence so far."""
        return {
            "precision": self._precision.clone(),
            "weighted": self._weighted.clone(),
            "seen": torch.tensor(self.seen),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take up a :meth:`state_dict` of the same candidates.

        Raises:
            ConfigError: it is of another number of candidates.
        """
        if state["weighted"].shape != self._weighted.shape:
            raise ConfigError(
                f"thompson edges: state of {len(state['weighted']) - 1} candidates, "
                f"expected {len(self.candidates)}"
            )
        self._precision = state["precision"].clone()
        self._weighted = state["weighted"].clone()
        self.seen = int(state["seen"])
        self._solve()

    def _observe(
        self, samples: Sequence[EdgeSample], values: Sequence[float], groups: list[object] | None
    ) -> None:
        drawn = self.space.chosen([sample.useful for sample in samples])
        x = torch.ones(len(samples), len(self.candidates) + 1, dtype=torch.double)
        x[:, 1:] = 2.0 * drawn.double() - 1.0
        y = torch.tensor(values, dtype=torch.double)
        members: dict[object, list[int]] = {}
        for k, group in enumerate(groups or ()):
            members.setdefault(group, []).append(k)
        for places in members.values():
            # A group's own intercept, with a flat prior, is integrated out by centring.
            x[places] = x[places] - x[places].mean(0)
            y[places] = y[places] - y[places].mean()
        self._precision = self._precision + x.T @ x / self.noise**2
        self._weighted = self._weighted + x.T @ y / self.noise**2

    def _solve(self) -> None:
        factor = torch.linalg.cholesky(self._precision)
        self._covariance = torch.cholesky_inverse(factor)
        self._mean = self._covariance @ self._weighted
        self._root = torch.linalg.cholesky(self._covariance)

    def _chances(self) -> Tensor:
        return torch.tensor(list(self.marginals().values()), dtype=torch.double)

    def _best(self, worths: Tensor) -> EdgeSample:
        positive = (worths > 0).nonzero()[:, 0]
        ranked = positive[worths[positive].argsort(descending=True, stable=True)]
        slots, order = acyclic(self.space, ranked.tolist())
        return self.space.sample(order, slots, None)
