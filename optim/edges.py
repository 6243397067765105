"""A learnable distribution over who talks to whom: random order x Bernoulli edges.

A sample draws an order of the nodes (Plackett-Luce: next is node i with probability proportional
to ``exp(score_i)`` among those left), then every candidate edge that points forward in that order
with its own probability. So every sample is acyclic, whatever the parameters, and the
log-probability is exact. The sampler is that of differentiable DAG sampling (arXiv 2203.08509).

Parameters belong to *names*: nodes are kept sorted inside, so the order in which names are listed
changes nothing, and files are matched by edge name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError
from swarm_ui.optim.orders import MAX_EXACT, best_order, edge_set_log_prob, order_entropy
from swarm_ui.trace import EdgeName


class EdgeSample(msgspec.Struct, frozen=True, kw_only=True):
    """One drawn graph."""

    order: tuple[str, ...]
    """Nodes, first speaker first."""
    edges: tuple[EdgeName, ...]
    """(sender, listener), sorted by listener's then sender's place in ``order``."""
    log_prob: float
    """Joint log-probability (nats) of order and edges when they were drawn."""


class EdgeDistribution(nn.Module):
    """Distribution over DAGs on named nodes.

    Attributes:
        names: the nodes, sorted, length ``n``.
        candidates: edges that may occur, sorted, length ``E``.
        scores: Plackett-Luce scores, shape ``[n]``, in the order of ``names``.
        logits: log-odds of each candidate *given that its sender comes first*, shape ``[E]``.
    """

    names: tuple[str, ...]
    candidates: tuple[EdgeName, ...]

    def __init__(
        self,
        names: Iterable[str],
        *,
        density: float = 0.5,
        candidates: Iterable[EdgeName] | None = None,
    ) -> None:
        """All orders equally likely, every candidate with probability ``density``.

        Args:
            names: nodes; their order does not matter.
            density: in (0, 1); also the chance that two nodes are joined at all, if both
                directions are candidates.
            candidates: edges that may occur; default: every ordered pair.

        Raises:
            ConfigError: a repeated or unknown name, a self-loop, or a density outside (0, 1).
        """
        super().__init__()
        listed = list(names)
        self.names = tuple(sorted(set(listed)))
        if len(self.names) != len(listed):
            raise ConfigError(f"edge distribution: node names must be distinct, got {listed}")
        if not 0.0 < density < 1.0:
            raise ConfigError(f"edge distribution: density must be in (0, 1), got {density}")
        pairs = [(a, b) for a in self.names for b in self.names if a != b]
        self.candidates = tuple(pairs) if candidates is None else tuple(sorted(set(candidates)))
        unknown = set(self.candidates) - set(pairs)
        if unknown:
            raise ConfigError(
                f"edge distribution: {sorted(unknown)} are not edges between two of {self.names}"
            )
        self._place = {name: i for i, name in enumerate(self.names)}
        self._slot = {edge: k for k, edge in enumerate(self.candidates)}
        self._senders = [self._place[a] for a, _ in self.candidates]
        self._listeners = [self._place[b] for _, b in self.candidates]
        self.scores = nn.Parameter(torch.zeros(len(self.names)))
        log_odds = math.log(density / (1.0 - density))
        self.logits = nn.Parameter(torch.full((len(self.candidates),), log_odds))

    @torch.no_grad()
    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent graphs; equal generator states give equal graphs."""
        n = len(self.names)
        uniform = torch.rand(batch, n, generator=generator).clamp_min(1e-20)
        # Gumbel noise on the scores makes the sorted order a Plackett-Luce draw.
        orders = (self.scores - torch.log(-torch.log(uniform))).argsort(1, descending=True)
        open_ = torch.rand(batch, len(self.candidates), generator=generator) < self.logits.sigmoid()
        return [self._drawn(o, k) for o, k in zip(orders.tolist(), open_.tolist(), strict=True)]

    def log_prob(self, order: Sequence[str], edges: Iterable[EdgeName]) -> Tensor:
        """Joint log-probability (nats) of an order and an edge set, a scalar with gradient.

        ``-inf`` if an edge points backwards in ``order``.

        Raises:
            ConfigError: not an order of ``names``, or an edge that is not a candidate.
        """
        if sorted(order) != list(self.names):
            raise ConfigError(f"edge distribution: {list(order)} is not an order of {self.names}")
        chosen = self._chosen(edges)
        rank = {name: r for r, name in enumerate(order)}
        forward = torch.tensor([rank[a] < rank[b] for a, b in self.candidates], dtype=torch.bool)
        if bool((chosen & ~forward).any()):
            return self.logits.sum() * 0.0 - math.inf
        ranked = self.scores[[self._place[name] for name in order]]
        remaining = ranked.flip(0).logcumsumexp(0).flip(0)
        return (ranked - remaining).sum() + self._bernoulli(chosen)[forward].sum()

    def log_prob_edges(self, edges: Iterable[EdgeName]) -> Tensor:
        """Log-probability (nats) of an edge set under all orders; ``-inf`` for a cycle.

        Exact by dynamic programming over the 2^n sets of nodes.

        Raises:
            ConfigError: more than :data:`~swarm_ui.optim.orders.MAX_EXACT` nodes, or an edge that
                is not a candidate.
        """
        self._check_exact("log_prob_edges")
        n = len(self.names)
        chosen = self._chosen(edges)
        terms = self.logits.new_zeros(n, n)
        terms = terms.index_put(self._index(), self._bernoulli(chosen))
        present = torch.zeros(n, n, dtype=torch.bool).index_put(self._index(), chosen)
        return edge_set_log_prob(self.scores, terms, present)

    @torch.no_grad()
    def mode(self) -> EdgeSample:
        """The most probable (order, edges); ties go to the name that sorts first, and to no edge.

        Above :data:`~swarm_ui.optim.orders.MAX_EXACT` nodes: the most probable order, then the
        most probable edges given it.
        """
        n = len(self.names)
        if n <= MAX_EXACT:
            best = torch.maximum(nn.functional.logsigmoid(self.logits), self._absent())
            terms = self.logits.new_zeros(n, n).index_put(self._index(), best)
            order = best_order(self.scores, terms)
        else:
            order = sorted(range(n), key=lambda i: -float(self.scores[i]))
        return self._drawn(order, (self.logits > 0).tolist())

    @torch.no_grad()
    def marginals(self) -> dict[EdgeName, float]:
        """Probability of each candidate edge, over all orders (closed form)."""
        first = self._sender_first()
        return dict(zip(self.candidates, (first * self.logits.sigmoid()).tolist(), strict=True))

    def entropy(self) -> Tensor:
        """Entropy (nats) of the *joint* of order and edges, a scalar with gradient.

        That of the edge set alone is lower: many orders give the same edges.

        Raises:
            ConfigError: more than :data:`~swarm_ui.optim.orders.MAX_EXACT` nodes.
        """
        self._check_exact("entropy")
        return order_entropy(self.scores) + self.edge_entropy()

    def edge_entropy(self) -> Tensor:
        """Expected entropy (nats) of the edges once the order is known; any number of nodes."""
        p = self.logits.sigmoid()
        each = -(p * nn.functional.logsigmoid(self.logits) + (1 - p) * self._absent())
        return (self._sender_first() * each).sum()

    def _sender_first(self) -> Tensor:
        """Probability that the sender of each candidate precedes its listener, ``[E]``."""
        return torch.sigmoid(self.scores[self._senders] - self.scores[self._listeners])

    def _absent(self) -> Tensor:
        return nn.functional.logsigmoid(-self.logits)

    def _bernoulli(self, chosen: Tensor) -> Tensor:
        return torch.where(chosen, nn.functional.logsigmoid(self.logits), self._absent())

    def _index(self) -> tuple[Tensor, Tensor]:
        index = torch.tensor([self._senders, self._listeners], dtype=torch.long)
        return index[0], index[1]

    def _chosen(self, edges: Iterable[EdgeName]) -> Tensor:
        mask = torch.zeros(len(self.candidates), dtype=torch.bool)
        for edge in edges:
            slot = self._slot.get(edge)
            if slot is None:
                raise ConfigError(f"edge distribution: {edge} is not a candidate edge")
            mask[slot] = True
        return mask

    def _drawn(self, order: Sequence[int], open_: Sequence[bool]) -> EdgeSample:
        rank = {node: r for r, node in enumerate(order)}
        picked = [
            (rank[b], rank[a], k)
            for k, (a, b) in enumerate(zip(self._senders, self._listeners, strict=True))
            if open_[k] and rank[a] < rank[b]
        ]
        names = tuple(self.names[i] for i in order)
        edges = tuple(self.candidates[k] for _, _, k in sorted(picked))
        return EdgeSample(order=names, edges=edges, log_prob=float(self.log_prob(names, edges)))

    def _check_exact(self, what: str) -> None:
        if len(self.names) > MAX_EXACT:
            raise ConfigError(
                f"{what} is exact up to {MAX_EXACT} nodes, this distribution has "
                f"{len(self.names)}; use log_prob(order, edges) and edge_entropy() instead"
            )
