"""The nodes and candidate edges of a distribution over DAGs, one sample, and sums over orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Self

import msgspec
import networkx as nx
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.topology import Edge

MAX_EXACT = 12
"""Maximum number of nodes for exact sums over orders (4096 sets)."""


class EdgeSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A DAG that was drawn from a distribution; ``team.with_edges(sample)`` is the team on it."""

    order: tuple[str, ...]
    """All nodes, in their order in the run."""
    edges: tuple[Edge, ...]
    """(sender, listener), sorted by the listener's and then the sender's position in ``order``."""
    log_prob: float | None
    """Log-probability (nats) of order and edges, under the parameters it was sampled with."""

    @classmethod
    def of(cls, order: Sequence[str], edges: Iterable[Edge], log_prob: float | None) -> Self:
        """A sample of edges in any sequence."""
        rank = {name: place for place, name in enumerate(order)}
        ranked = sorted(edges, key=lambda edge: (rank[edge[1]], rank[edge[0]]))
        return cls(order=tuple(order), edges=tuple(ranked), log_prob=log_prob)

    def __iter__(self) -> Iterator[Edge]:
        return iter(self.edges)


class CandidateGraph:
    """Named nodes and the edges that may occur between them.

    The *parts* are the strongly connected components. A candidate from one part to a later one
    never closes a cycle, so the order of nodes matters only within a part.

    Attributes:
        names, edges: nodes and candidates, sorted.
        decision: the node that every used node reaches, or ``None``.
        node_index, edge_index: position in ``names`` and in ``edges``.
        senders, listeners: node indices of each candidate, ``[E]``.
        parts, part_of: node indices by part, in topological order; the part of each node, ``[n]``.
        between: whether a candidate leads from one part to another, ``[E]`` bool.
    """

    def __init__(
        self,
        names: Iterable[str],
        candidates: Iterable[Edge] | None = None,
        decision: str | None = None,
    ) -> None:
        self.names, self.decision = tuple(sorted(names)), decision
        pairs = {(a, b) for a, b in permutations(self.names, 2) if a != decision}
        self.edges = tuple(sorted(pairs if candidates is None else set(candidates)))
        unknown = sorted(set(self.edges) - pairs)
        known = decision is None or decision in self.names
        if unknown or not known or len(set(self.names)) < len(self.names):
            raise ConfigError(
                f"edge distribution: expected distinct names of which 'decision' is one, and edges "
                f"between two of them that do not leave it, got {self.names}, decision "
                f"{decision!r}, and the edges {unknown}"
            )
        self.node_index = {name: i for i, name in enumerate(self.names)}
        self.edge_index = {edge: k for k, edge in enumerate(self.edges)}
        ends = [(self.node_index[a], self.node_index[b]) for a, b in self.edges]
        self.senders, self.listeners = torch.tensor(ends, dtype=torch.long).view(-1, 2).unbind(1)
        graph = nx.DiGraph(ends)
        graph.add_nodes_from(range(len(self.names)))
        joined = nx.condensation(graph)
        members = {part: sorted(joined.nodes[part]["members"]) for part in joined}
        ranked = nx.lexicographical_topological_sort(joined, members.get)
        self.parts: list[list[int]] = [members[part] for part in ranked]
        self.part_of = torch.zeros(len(self.names), dtype=torch.long)
        for number, part in enumerate(self.parts):
            self.part_of[part] = number
        self.between = self.part_of[self.senders] != self.part_of[self.listeners]

    def dense(self, values: Tensor) -> Tensor:
        """Values of the candidates ``[B, E]`` by sender and listener, ``[B, n, n]``; others: 0."""
        n = len(self.names)
        flat = values.new_zeros(len(values), n * n)
        return flat.index_copy(1, self.senders * n + self.listeners, values).view(-1, n, n)

    def mask(self, edge_sets: Sequence[Iterable[Edge]]) -> Tensor:
        """Edge sets as ``[B, E]`` bool. Raises ``ConfigError`` if an edge is not a candidate."""
        mask = torch.zeros(len(edge_sets), len(self.edges), dtype=torch.bool)
        for row, edges in enumerate(edge_sets):
            try:
                mask[row, [self.edge_index[edge] for edge in edges]] = True
            except KeyError as missing:
                raise ConfigError(f"edge distribution: {missing} is not a candidate edge") from None
        return mask

    def leading(self, chosen: Tensor) -> Tensor:
        """Mask of the candidates into nodes that reach the decision by the chosen ones, ``[B, E]``;
        all without a decision."""
        if self.decision is None:
            return torch.ones_like(chosen)
        used = torch.zeros(len(chosen), len(self.names), dtype=torch.bool)
        used[:, self.node_index[self.decision]] = True
        senders = self.senders.expand(len(chosen), -1)
        while True:
            carried = chosen & used[:, self.listeners]
            grown = used.float().scatter_reduce(1, senders, carried.float(), "amax").bool()
            if torch.equal(grown, used):
                return used[:, self.listeners]
            used = grown


# -- sums and maxima over all orders ----------------------------------------------------------
#
# By dynamic programming over the 2^n sets of nodes. A set is an integer whose bit i says that node
# i has been placed. It is a sufficient state: the next node depends on the set, not on its order.


@lru_cache
def _members(n: int) -> Tensor:
    """Mask of the nodes in each set, shape ``[2^n, n]``."""
    sets = torch.arange(2**n)[:, None]
    return ((sets >> torch.arange(n)) & 1).bool()


@lru_cache
def _layers(n: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The sets of each size from 1: the sets, ``[binomial(n, size)]``, the members of each, and the
    sets without each member, ``[binomial(n, size), size]``."""
    found = []
    for size in range(1, n + 1):
        layer = (_members(n).sum(1) == size).nonzero()[:, 0]
        last = _members(n)[layer].nonzero()[:, 1].view(-1, size)
        found.append((layer, last, layer[:, None] - (1 << last)))
    return found


def _over_orders(step: Tensor, combine: Callable[[Tensor], Tensor]) -> Tensor:
    """``step``: the term of placing each node after each set, ``[B, 2^n, n]``. Returns the sums of
    the terms of each order, combined over all orders, ``[B]``."""
    batch, sets, n = step.shape
    values = torch.cat([step.new_zeros(batch, 1), step.new_full((batch, sets - 1), -torch.inf)], 1)
    for layer, last, before in _layers(n):
        options = values[:, before] + step[:, before, last]
        values = values.index_copy(1, layer, combine(options))
    return values[:, -1]


def _steps(scores: Tensor, terms: Tensor) -> Tensor:
    """Log-probability that node i is placed next after set S, and the terms of the pairs of a
    member of S and i, ``[B, 2^n, n]``."""
    inside = _members(len(scores))
    # The full set has no node left; its row is never read, but must not make NaN gradients.
    left = torch.where(inside, -torch.inf, scores)[:-1].logsumexp(1)
    left = torch.cat([left, left.new_zeros(1)])
    return torch.where(inside, -torch.inf, scores - left[:, None]) + inside.to(scores.dtype) @ terms


def edge_set_log_prob(scores: Tensor, terms: Tensor, present: Tensor) -> Tensor:
    """Log-probability of edge sets, summed over all orders, ``[B]``; ``-inf`` for a cycle.

    Args:
        scores: Plackett-Luce scores, ``[n]``.
        terms: Bernoulli log-probability of edge (i, j) being present or absent, given that i
            precedes j; 0 if there is no candidate; ``[B, n, n]``.
        present: whether edge (i, j) is in the set, ``[B, n, n]`` bool.
    """
    # Node i may come after S only if it sends nothing to a node already in S.
    blocked = (_members(len(scores)).to(scores.dtype) @ present.mT.to(scores.dtype)) > 0
    return _over_orders(torch.where(blocked, -torch.inf, _steps(scores, terms)), _logsumexp)


def best_order(scores: Tensor, terms: Tensor) -> list[int]:
    """The order with the largest sum of its log-probability and the ``terms`` of forward pairs."""
    with torch.enable_grad():
        step = _steps(scores.detach(), terms.detach()[None]).requires_grad_()
        # Of equal options the greatest node comes last, so that ties keep the nodes sorted.
        best = _over_orders(step, lambda options: options.flip(-1).max(-1).values)
        (taken,) = torch.autograd.grad(best.sum(), step)  # 1 at each step of the best order
    sets, nodes = taken[0].nonzero().unbind(1)
    return [int(node) for node in nodes[_members(len(scores))[sets].sum(1).argsort()]]


def _logsumexp(values: Tensor) -> Tensor:
    """Like ``logsumexp(-1)``, without NaN gradients for rows that are all ``-inf``."""
    empty = torch.isneginf(values).all(-1)
    safe = torch.where(empty[..., None], 0.0, values).logsumexp(-1)
    return torch.where(empty, -torch.inf, safe)
