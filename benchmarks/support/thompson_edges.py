"""Thompson sampling over edges: a Gaussian posterior over the weight of each edge.

The utility of a graph is modelled as linear in its edges (+1 present, -1 absent), with Gaussian
noise and a Gaussian prior around 0. To sample a graph, the weights are sampled from the posterior,
and the edges of positive weight are taken in descending sequence; an edge that closes a cycle is
skipped. So exploration decreases as evidence grows. The linear model captures only the mean effect
of interactions between edges.

Samples of one group (same task and seed) are compared only with each other, so the difficulty of
the task cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample


class ThompsonEdges:
    """A posterior over the weight of every edge; it samples graphs and learns from them."""

    def __init__(self, names: Iterable[str], *, noise: float = 0.3, prior: float = 1.0) -> None:
        """
        Args:
            names: the nodes.
            noise: standard deviation of a utility around the linear model.
            prior: standard deviation of an edge's weight before the first step.
        """
        self.graph, self.noise = CandidateGraph(names), noise
        # In double precision: the precision of thousands of samples is added to the prior's.
        size = len(self.graph.edges) + 1
        self._precision = torch.eye(size, dtype=torch.double) / prior**2
        self._weighted = torch.zeros(size, dtype=torch.double)
        self._solve()

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` graphs, each from its own sample of the weights; equal generator states give
        equal graphs. They have no log-probability."""
        noise = torch.randn(batch, len(self._mean), generator=generator, dtype=torch.double)
        weights = self._mean + noise @ self._root.T
        return [self._best(row) for row in weights[:, 1:]]

    def mode(self) -> EdgeSample:
        """The graph of the mean weights."""
        return self._best(self._mean[1:])

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Sequence[float | None],
        *,
        groups: Sequence[object],
    ) -> None:
        """One update, from graphs of any source; a utility that is ``None`` does not count."""
        scored = [k for k, utility in enumerate(utilities) if utility is not None]
        drawn = self.graph.mask([samples[k] for k in scored])
        x = torch.ones(len(scored), len(self.graph.edges) + 1, dtype=torch.double)
        x[:, 1:] = 2.0 * drawn.double() - 1.0
        y = torch.tensor([utilities[k] for k in scored], dtype=torch.double)
        for own in {groups[k] for k in scored}:
            rows = [at for at, k in enumerate(scored) if groups[k] == own]
            # Centring integrates out an intercept of the group with a flat prior.
            x[rows] = x[rows] - x[rows].mean(0)
            y[rows] = y[rows] - y[rows].mean()
        self._precision = self._precision + x.T @ x / self.noise**2
        self._weighted = self._weighted + x.T @ y / self.noise**2
        self._solve()

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
    which each of them points forward."""
    reach = [1 << i for i in range(len(graph.names))]
    kept: list[int] = []
    for k in edges:
        first, second = int(graph.senders[k]), int(graph.listeners[k])
        if reach[second] >> first & 1:
            continue
        kept.append(k)
        reach = [mine | reach[second] if mine >> first & 1 else mine for mine in reach]
    heard = predecessors(graph.names, [graph.edges[k] for k in kept])
    return kept, [graph.node_index[name] for name in topological(heard)]
