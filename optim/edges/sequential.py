"""A distribution over DAGs without an order of the nodes: edge by edge, skipping cycles.

**The law.** Candidates are looked at in a sequence. One that would close a cycle with the edges
drawn so far is skipped; any other is drawn with its own probability ``p = sigmoid(logit)``. So

    log P(edges | sequence) = sum over candidates not skipped of  log p  or  log(1 - p),

which sums to 1 over all DAGs of candidates, for every sequence. With ``sequence="listed"`` the
sequence is the sorted one; this is the law of GPTSwarm's ``realize``, where an edge late in the
list is rarer than one early in it. With ``sequence="shuffled"``, the default, every draw has a
uniformly random sequence of its own, so no place in a list is favoured: the law of the edges is
the mean over all sequences, and the log-probability given is that *given the sequence*. Its
gradient is a score function of the former too, because the sequence has no parameters.

Who reaches whom is kept as bits, so a candidate is checked in one operation. Only an edge that
joins two nodes not yet joined changes the bits, at most n(n-1)/2 times a draw, at n operations
each: O(E + n^3) in all, whatever was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace
from swarm_ui.trace.records import EdgeName

Bools = NDArray[np.bool_]
Places = NDArray[np.int64]


class Walks(NamedTuple):
    """A batch of graphs as tensors."""

    chosen: Tensor
    """Which candidates occur, ``[B, E]`` bool."""
    free: Tensor
    """Which closed no cycle when they were looked at, ``[B, E]`` bool."""
    enumerations: list[int | None]
    """Seed of each sequence; ``None``: the listed one."""


class SequentialEdges(nn.Module):
    """Edge by edge, skipping what would close a cycle; see the module for the law.

    Attributes:
        names, candidates, decision: as of
            :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`. Samples keep all edges,
            because their
            log-probability needs them; ``EdgeSample.useful`` are those that lead to the decision.
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
    ) -> None:
        """
        Args:
            names, density, candidates, decision: as of
                :class:`~swarm_ui.optim.edges.distribution.EdgeDistribution`.
            sequence: ``"shuffled"`` or ``"listed"``.

        Raises:
            ConfigError: as there, or another word for the sequence.
        """
        super().__init__()
        if not 0.0 < density < 1.0:
            raise ConfigError(f"edge distribution: density must be in (0, 1), got {density}")
        if sequence not in ("shuffled", "listed"):
            raise ConfigError(
                f"edge distribution: sequence must be 'shuffled' or 'listed', got {sequence!r}"
            )
        self.space = EdgeSpace(names, candidates, decision)
        self.names, self.candidates = self.space.names, self.space.edges
        self.decision, self.sequence = decision, sequence
        log_odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), log_odds))
        self._senders = self.space.senders.numpy()
        self._listeners = self.space.listeners.numpy()
        self._tied = self.space.tied.numpy()

    @torch.no_grad()
    def draw(self, batch: int, generator: torch.Generator) -> Walks:
        """``batch`` independent graphs; equal generator states give equal graphs."""
        enumerations: list[int | None] = [None] * batch
        if self.sequence == "shuffled":
            seeds = torch.randint(2**62, (batch,), generator=generator)
            enumerations = list(seeds.tolist())
        uniform = torch.rand(batch, len(self.candidates), generator=generator)
        wanted = (uniform < self.logits.sigmoid()).numpy()
        if not self._tied.any():
            return Walks(
                torch.from_numpy(wanted), torch.ones(wanted.shape, dtype=torch.bool), enumerations
            )
        pairs = [self._walk(row, seed) for row, seed in zip(wanted, enumerations, strict=True)]
        chosen, free = (np.stack([p[k] for p in pairs]) for k in (0, 1))
        return Walks(torch.from_numpy(chosen), torch.from_numpy(free), enumerations)

    def log_prob_draws(self, walks: Walks) -> Tensor:
        """Log-probability (nats) given the sequences, ``[B]``, with gradient."""
        kind = self.logits.dtype
        total = walks.chosen.to(kind) @ self.logits - walks.free.to(kind) @ softplus(self.logits)
        possible = (walks.chosen <= walks.free).all(1)
        return total if bool(possible.all()) else torch.where(possible, total, -math.inf)

    @torch.no_grad()
    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent graphs by name; ``order`` is one in which all edges go forward."""
        walks = self.draw(batch, generator)
        log_probs = self.log_prob_draws(walks).tolist()
        rows = zip(walks.chosen, log_probs, walks.enumerations, strict=True)
        return [self._record(row.nonzero()[:, 0].tolist(), lp, seed) for row, lp, seed in rows]

    def log_prob(self, edges: Iterable[EdgeName], enumeration: int | None = None) -> Tensor:
        """Log-probability (nats) of edges given the sequence, a scalar with gradient.

        ``-inf`` if they cannot come out: they hold a cycle.

        Args:
            edges: all that were drawn, also those that do not lead to the decision.
            enumeration: of the sample; ``None``: the listed sequence.

        Raises:
            ConfigError: an edge that is not a candidate.
        """
        chosen = self.space.chosen([edges])
        _, free = self._walk(chosen[0].numpy(), enumeration)
        return self.log_prob_draws(Walks(chosen, torch.from_numpy(free)[None], [enumeration]))[0]

    @torch.no_grad()
    def mode(self) -> EdgeSample:
        """Edges more likely than not, the likeliest first, skipping those that close a cycle.

        Greedy: finding the most probable DAG of this law is a hard problem. Ties go to the name
        that sorts first.
        """
        logits = self.logits.tolist()
        likely = sorted((k for k, x in enumerate(logits) if x > 0), key=lambda k: -logits[k])
        slots, order = acyclic(self.space, likely)
        edges = [self.candidates[k] for k in slots]
        value = float(self.log_prob(edges)) if self.sequence == "listed" else None
        return self.space.sample(order, slots, value)

    @torch.no_grad()
    def marginals(
        self, draws: int = 4096, generator: torch.Generator | None = None
    ) -> dict[EdgeName, float]:
        """Probability of each candidate, estimated: there is no closed form.

        Args:
            draws: the standard error of each is below ``0.5 / draws ** 0.5``.
            generator: default: one with seed 0, so that equal parameters give equal figures.
        """
        walks = self.draw(draws, generator or torch.Generator().manual_seed(0))
        return dict(zip(self.candidates, walks.chosen.float().mean(0).tolist(), strict=True))

    def entropy(self, draws: int = 4096, generator: torch.Generator | None = None) -> Tensor:
        """Entropy (nats) of the edges given the sequence, estimated, a scalar with gradient.

        By the chain rule: the mean over draws of the entropies of all candidates looked at. The
        gradient is that of the estimate with the draws held fixed, so it leaves out how the
        parameters change which candidates are skipped.
        """
        walks = self.draw(draws, generator or torch.Generator().manual_seed(0))
        p = self.logits.sigmoid()
        each = softplus(self.logits) - p * self.logits
        return (walks.free.to(p.dtype).mean(0) * each).sum()

    def edge_entropy(self) -> Tensor:
        """Entropy (nats) if no candidate were skipped, an upper bound, a scalar with gradient."""
        return (softplus(self.logits) - self.logits.sigmoid() * self.logits).sum()

    def edge_logits(self, sample: EdgeSample) -> Tensor:
        """:attr:`logits`, whatever the sample."""
        return self.logits

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """:meth:`log_prob` of each sample, ``[B]``, with gradient."""
        chosen = self.space.chosen([sample.edges for sample in samples])
        enumerations = [sample.enumeration for sample in samples]
        walks = [self._walk(c.numpy(), e)[1] for c, e in zip(chosen, enumerations, strict=True)]
        return self.log_prob_draws(Walks(chosen, torch.from_numpy(np.stack(walks)), enumerations))

    def _record(
        self, slots: Sequence[int], log_prob: float | None, enumeration: int | None
    ) -> EdgeSample:
        order = _order(self.space, slots)
        return self.space.sample(order, slots, log_prob, enumeration=enumeration)

    def _walk(self, wanted: Bools, enumeration: int | None) -> tuple[Bools, Bools]:
        """What is drawn, and what closed no cycle, if ``wanted`` come up as edges."""
        if enumeration is None:
            return self._follow(wanted, None)
        return self._follow(wanted, np.random.default_rng(enumeration).permutation(len(wanted)))

    def _follow(
        self, wanted: Bools, sequence: Sequence[int] | Places | None
    ) -> tuple[Bools, Bools]:
        slots = np.arange(len(wanted)) if sequence is None else np.asarray(sequence)
        # No other candidate can be part of a cycle.
        slots = slots[self._tied[slots]]
        looked_at = zip(
            slots.tolist(), self._senders[slots].tolist(), self._listeners[slots].tolist(),
            wanted[slots].tolist(), strict=True,
        )  # fmt: skip
        reach = [1 << i for i in range(len(self.names))]  # whom each node reaches, as bits
        skipped: list[int] = []
        sender, grown, known = 0, 1, 1
        for slot, a, b, picked in looked_at:
            # Edges of one sender change nothing for its next one, so they are entered together.
            if a != sender:
                if grown != known:
                    _enter(reach, sender, grown)
                sender, grown = a, reach[a]
                known = grown
            if reach[b] >> a & 1:
                skipped.append(slot)
            elif picked:
                grown |= reach[b]
        free = np.ones(len(wanted), dtype=np.bool_)
        free[skipped] = False
        return wanted & free, free


def acyclic(space: EdgeSpace, slots: Sequence[int]) -> tuple[list[int], list[int]]:
    """Of candidates in this sequence those that close no cycle, and an order of the nodes."""
    reach = [1 << i for i in range(len(space.names))]
    kept: list[int] = []
    for slot in slots:
        a, b = space.edges[slot]
        first, second = space.place[a], space.place[b]
        if reach[second] >> first & 1:
            continue
        kept.append(slot)
        if not reach[first] >> second & 1:
            _enter(reach, first, reach[second])
    return kept, _order(space, kept)


def _order(space: EdgeSpace, slots: Sequence[int]) -> list[int]:
    """An order in which all these candidates point forward."""
    heard = predecessors(space.names, [space.edges[k] for k in slots])
    return [space.place[name] for name in topological(heard)]


def _enter(reach: list[int], sender: int, new: int) -> None:
    """Whoever reaches ``sender`` now also reaches ``new``."""
    reach[:] = [mine | new if mine >> sender & 1 else mine for mine in reach]
