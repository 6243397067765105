"""Thompson sampling over edges: a Gaussian posterior over the weight of each edge.

The utility of a graph is modelled as linear in its edges (+1 present, -1 absent), with Gaussian
noise and a Gaussian prior around 0. To sample a graph, the weights are sampled from the posterior,
and the edges of positive weight are taken in descending sequence; an edge that closes a cycle is
skipped. So exploration decreases as evidence grows, and each edge has an interval. The linear model
captures only the mean effect of interactions between edges. The cost grows with the cube of the
number of candidates, so use it for up to a few hundred.

Samples of one group (same task and seed) are compared only with each other, so the difficulty of
the task cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample
from swarm_ui.stats import Interval
from swarm_ui.trace.records import EdgeName

_Z = 1.959964


class ThompsonEdges:
    """A posterior over the weight of every edge; it samples graphs and learns from them.

    ``names``, ``candidates``, ``decision`` and ``delays`` are those of
    :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`; ``seen`` counts the samples with a
    utility so far.
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
        delays: Mapping[EdgeName, int] = MappingProxyType({}),
    ) -> None:
        """The defaults are ours, for utilities of about 0 to 1.

        Args:
            names, candidates, decision, delays: see the class.
            noise: standard deviation of a utility around the linear model.
            prior: standard deviation of an edge's weight before the first step.
            credit_noise: standard deviation of a credit around an edge's weight.
            scale: factor on the posterior's standard deviation when sampling; below 1 explores
                less.
        """
        given = {"noise": noise, "prior": prior, "credit_noise": credit_noise, "scale": scale}
        for what, value in given.items():
            if not value > 0.0 or not math.isfinite(value):
                raise ConfigError(f"thompson edges: {what} must be above 0, got {value}")
        self.graph = CandidateGraph(names, candidates, decision, delays)
        self.names, self.candidates = self.graph.names, self.graph.edges
        self.decision = decision
        self.noise, self.prior, self.credit_noise, self.scale = noise, prior, credit_noise, scale
        self.seen = 0
        # In double precision: the precision of thousands of samples is added to the prior's.
        size = len(self.candidates) + 1
        self._precision = torch.eye(size, dtype=torch.double) / prior**2
        self._weighted = torch.zeros(size, dtype=torch.double)
        self._solve()

    @property
    def delays(self) -> Mapping[EdgeName, int]:
        """For delayed candidates, how many rounds later they deliver a message."""
        return self.graph.delays

    def __repr__(self) -> str:
        return f"ThompsonEdges({self.graph}, {self.seen} samples seen)"

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` graphs, each from its own sample of the weights; equal generator states give
        equal graphs. They have no log-probability."""
        noise = torch.randn(batch, len(self._mean), generator=generator, dtype=torch.double)
        weights = self._mean + self.scale * noise @ self._root.T
        return [self._best(row) for row in weights[:, 1:]]

    def mode(self) -> EdgeSample:
        """The graph of the mean weights."""
        return self._best(self._mean[1:])

    def marginals(self) -> dict[EdgeName, float]:
        """Probability that the sampled weight of each edge is positive; cycles are ignored."""
        spread = self.scale * self._covariance.diagonal().sqrt()
        chance = torch.special.ndtr(self._mean / spread)[1:]
        return dict(zip(self.candidates, chance.tolist(), strict=True))

    def worth(self) -> dict[EdgeName, Interval]:
        """The utility with each edge minus the utility without it, with 95 % intervals."""
        means = (2.0 * self._mean)[1:].tolist()
        spreads = (2.0 * _Z * self._covariance.diagonal().sqrt())[1:].tolist()
        return {
            edge: Interval(mean=mean, low=mean - wide, high=mean + wide, n=self.seen)
            for edge, mean, wide in zip(self.candidates, means, spreads, strict=True)
        }

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> None:
        """One update, from graphs of any source; the arguments are those of ``edge_loss``.

        Without ``groups`` the utilities are compared over all steps. ``credit`` is, for each
        sample, an observation of the weights of single edges.
        """
        credited = [pair for given in credit or () for pair in given.items()]
        unknown = [edge for edge, _ in credited if edge not in self.graph.edge_index]
        if unknown:
            raise ConfigError(
                f"edge step: credit for {unknown[0]}, which is not a candidate; "
                "give credit only to candidates"
            )
        scored = [k for k, u in enumerate(utilities) if u is not None]
        values = [u for u in utilities if u is not None]
        if scored:
            own = None if groups is None else [groups[k] for k in scored]
            self._observe([samples[k] for k in scored], values, own)
        precision = 1.0 / self.credit_noise**2
        for edge, value in credited:
            at = self.graph.edge_index[edge] + 1
            self._precision[at, at] += precision
            self._weighted[at] += precision * value
        self._solve()
        self.seen += len(scored)

    def _observe(
        self, samples: Sequence[EdgeSample], values: Sequence[float], groups: list[object] | None
    ) -> None:
        drawn = self.graph.mask(samples)
        x = torch.ones(len(samples), len(self.candidates) + 1, dtype=torch.double)
        x[:, 1:] = 2.0 * drawn.double() - 1.0
        y = torch.tensor(values, dtype=torch.double)
        for own in set(groups or ()):
            rows = [k for k, group in enumerate(groups or ()) if group == own]
            # Centring integrates out an intercept of the group with a flat prior.
            x[rows] = x[rows] - x[rows].mean(0)
            y[rows] = y[rows] - y[rows].mean()
        self._precision = self._precision + x.T @ x / self.noise**2
        self._weighted = self._weighted + x.T @ y / self.noise**2

    def _solve(self) -> None:
        factor = torch.linalg.cholesky(self._precision)
        self._covariance = torch.cholesky_inverse(factor)
        self._mean = self._covariance @ self._weighted
        self._root = torch.linalg.cholesky(self._covariance)

    def _best(self, weights: Tensor) -> EdgeSample:
        positive = (weights > 0).nonzero()[:, 0]
        ranked = positive[weights[positive].argsort(descending=True, stable=True)]
        chosen, order = acyclic_subset(self.graph, ranked.tolist())
        return self.graph.sample(order, chosen, None)


def acyclic_subset(graph: CandidateGraph, edges: Sequence[int]) -> tuple[list[int], list[int]]:
    """The edges of a sequence that close no cycle with earlier ones, and an order of the nodes in
    which each of them points forward, except delayed edges.

    Delayed edges close no cycle.
    """
    reach = [1 << i for i in range(len(graph.names))]
    kept: list[int] = []
    for k in edges:
        if graph.edges[k] in graph.delays:
            kept.append(k)
            continue
        first, second = int(graph.senders[k]), int(graph.listeners[k])
        if reach[second] >> first & 1:
            continue
        kept.append(k)
        if not reach[first] >> second & 1:
            _connect(reach, first, reach[second])
    return kept, _order(graph, kept)


def _order(graph: CandidateGraph, edges: Sequence[int]) -> list[int]:
    """An order of the nodes in which all these edges without a delay point forward."""
    ends = (graph.edges[k] for k in edges)
    heard = predecessors(graph.names, [edge for edge in ends if edge not in graph.delays])
    return [graph.node_index[name] for name in topological(heard)]


def _connect(reach: list[int], sender: int, new: int) -> None:
    """Every node that reaches ``sender`` now also reaches the nodes of ``new``."""
    reach[:] = [mine | new if mine >> sender & 1 else mine for mine in reach]
