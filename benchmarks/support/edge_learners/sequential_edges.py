"""A distribution over DAGs without an order of the nodes: edge by edge, without cycles.

Candidates are visited in a sequence. One that would close a cycle with the edges chosen so far is
skipped; any other is chosen with its own probability ``p = sigmoid(logit)``. So

    log P(edges | sequence) = sum over candidates not skipped of  log p  or  log(1 - p),

which sums to 1 over all DAGs of candidates, for every sequence. With ``sequence="listed"`` the
candidates are visited in sorted sequence. This is the distribution of GPTSwarm's ``realize``, in
which an edge late in the list is rarer than one early in it. With ``sequence="shuffled"``, the
default, every sample has its own uniformly random sequence, so that no position in the list is
favoured. The distribution of the edges is then the mean over all sequences, and the
log-probability is that *given the sequence*. Its gradient is also an unbiased score function of the
distribution of the edges, because the sequence does not depend on the parameters.

The nodes that each node reaches are kept as the bits of an integer, so one operation tells whether
a candidate closes a cycle. Only an edge between two nodes that are not yet connected changes the
bits: this happens at most n(n-1)/2 times in a sample, at n operations each. So a sample costs O(E +
n^3).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample
from swarm_ui.trace.records import EdgeName

Bools = NDArray[np.bool_]


class SequentialDraws(NamedTuple):
    """A batch of DAGs as tensors."""

    chosen: Tensor
    """Mask of the candidates that are edges of the sample, ``[B, E]`` bool."""
    free: Tensor
    """Mask of the candidates that closed no cycle when visited, ``[B, E]`` bool."""
    enumerations: list[int | None]
    """Seed of each sequence; ``None``: the sorted one."""


class SequentialSample(EdgeSample, frozen=True, kw_only=True, omit_defaults=True):
    """A DAG with the sequence in which its candidates were visited."""

    enumeration: int | None = None
    """Seed of the sequence; ``None``: the sorted one."""


class SequentialEdges(nn.Module):
    """Edge by edge, without cycles; the module describes the distribution.

    Attributes:
        names, candidates, decision, delays, graph: the same as in
            :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
        logits: log-odds of each candidate, given that it closes no cycle, ``[E]``.
    """

    def __init__(
        self,
        names: Iterable[str],
        *,
        density: float = 0.5,
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
        sequence: str = "shuffled",
        delays: Mapping[EdgeName, int] = MappingProxyType({}),
    ) -> None:
        """
        Args:
            names, density, candidates, decision, delays: the same as in
                :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
            sequence: ``"shuffled"`` or ``"listed"``.

        Raises:
            ConfigError: as in ``EdgeDistribution``, or another value of ``sequence``.
        """
        super().__init__()
        if sequence not in ("shuffled", "listed"):
            raise ConfigError(
                f"edge distribution: sequence must be 'shuffled' or 'listed', got {sequence!r}"
            )
        self.graph = CandidateGraph(names, candidates, decision, delays)
        self.names, self.candidates = self.graph.names, self.graph.edges
        self.sequence = sequence
        odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), odds))
        self._senders = self.graph.senders.numpy()
        self._listeners = self.graph.listeners.numpy()
        self._cyclic = self.graph.order_dependent.numpy()

    @property
    def delays(self) -> Mapping[EdgeName, int]:
        """For delayed candidates, how many rounds later they deliver a message."""
        return self.graph.delays

    def extra_repr(self) -> str:
        return str(self.graph)

    @torch.no_grad()
    def draw(self, batch: int, generator: torch.Generator) -> SequentialDraws:
        """``batch`` independent DAGs as tensors; equal generator states give equal DAGs."""
        enumerations: list[int | None] = [None] * batch
        if self.sequence == "shuffled":
            seeds = torch.randint(2**62, (batch,), generator=generator)
            enumerations = list(seeds.tolist())
        uniform = torch.rand(batch, len(self.candidates), generator=generator)
        wanted = (uniform < self.logits.sigmoid()).numpy()
        if not self._cyclic.any():
            everything = torch.ones(wanted.shape, dtype=torch.bool)
            return SequentialDraws(torch.from_numpy(wanted), everything, enumerations)
        free = self._free(wanted, enumerations)
        return SequentialDraws(torch.from_numpy(wanted) & free, free, enumerations)

    def log_prob_draws(self, draws: SequentialDraws) -> Tensor:
        """Log-probability (nats) given the sequences, ``[B]``, with gradient."""
        kind = self.logits.dtype
        total = draws.chosen.to(kind) @ self.logits - draws.free.to(kind) @ softplus(self.logits)
        possible = (draws.chosen <= draws.free).all(1)
        return total if bool(possible.all()) else torch.where(possible, total, -math.inf)

    @torch.no_grad()
    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent DAGs by name; ``order`` is one in which all edges go forward."""
        draws = self.draw(batch, generator)
        log_probs = self.log_prob_draws(draws).tolist()
        samples: list[EdgeSample] = []
        for row, log_prob, seed in zip(draws.chosen, log_probs, draws.enumerations, strict=True):
            chosen = row.nonzero()[:, 0].tolist()
            order = _order(self.graph, chosen)
            drawn = self.graph.sample(order, chosen, log_prob)
            samples.append(
                SequentialSample(
                    order=drawn.order, edges=drawn.edges, log_prob=log_prob, enumeration=seed
                )
            )
        return samples

    def log_prob(self, dags: Sequence[EdgeSample]) -> Tensor:
        """Log-probability (nats) of each DAG given its sequence, ``[B]``, with gradient.

        A DAG without an enumeration was drawn in the sorted sequence.
        """
        seeds = [getattr(dag, "enumeration", None) for dag in dags]
        chosen = self.graph.mask(dags)
        return self.log_prob_draws(
            SequentialDraws(chosen, self._free(chosen.numpy(), seeds), seeds)
        )

    @torch.no_grad()
    def mode(self) -> EdgeSample:
        """Add the edges with a probability above 1/2, the most probable first, unless they close a
        cycle.

        This is a greedy choice. Of equally probable edges, the one whose name sorts first comes
        first.
        """
        logits = self.logits.tolist()
        likely = sorted((k for k, x in enumerate(logits) if x > 0), key=lambda k: -logits[k])
        chosen, order = acyclic_subset(self.graph, likely)
        return self.graph.sample(order, chosen, None)

    @torch.no_grad()
    def marginals(
        self, draws: int = 4096, generator: torch.Generator | None = None
    ) -> dict[EdgeName, float]:
        """Probability of each candidate, estimated from samples: there is no closed form.

        The standard error of each is below ``0.5 / draws ** 0.5``. The default generator has seed
        0, so that equal parameters give equal numbers.
        """
        drawn = self.draw(draws, generator or torch.Generator().manual_seed(0))
        return dict(zip(self.candidates, drawn.chosen.float().mean(0).tolist(), strict=True))

    def _free(self, wanted: Bools, enumerations: Sequence[int | None]) -> Tensor:
        """Mask of the candidates that close no cycle, ``[B, E]`` bool.

        The candidates are visited in order. A ``wanted`` candidate that closes no cycle is added
        to the graph before the next one is visited.
        """
        rows = zip(wanted, enumerations, strict=True)
        return torch.from_numpy(np.stack([self._visit(row, seed) for row, seed in rows]))

    def _visit(self, wanted: Bools, enumeration: int | None) -> Bools:
        visited = np.arange(len(wanted))
        if enumeration is not None:
            visited = np.random.default_rng(enumeration).permutation(len(wanted))
        # No other candidate can be part of a cycle.
        visited = visited[self._cyclic[visited]]
        rows = zip(
            visited.tolist(), self._senders[visited].tolist(), self._listeners[visited].tolist(),
            wanted[visited].tolist(), strict=True,
        )  # fmt: skip
        reach = [1 << i for i in range(len(self.names))]  # bit j of reach[i]: node i reaches j
        skipped: list[int] = []
        sender, grown, known = 0, 1, 1
        for edge, a, b, picked in rows:
            # Edges of one sender do not affect its next one, so they are entered together.
            if a != sender:
                if grown != known:
                    _connect(reach, sender, grown)
                sender, grown = a, reach[a]
                known = grown
            if reach[b] >> a & 1:
                skipped.append(edge)
            elif picked:
                grown |= reach[b]
        free = np.ones(len(wanted), dtype=np.bool_)
        free[skipped] = False
        return free


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
