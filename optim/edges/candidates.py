"""The nodes and candidate edges of a distribution over DAGs, one sample, and sums over orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
import networkx as nx
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import EdgeName

MAX_EXACT = 12
"""Maximum number of nodes for exact sums over orders (4096 sets)."""


class EdgeSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A DAG that was drawn from a distribution; ``team.with_edges(sample)`` is the team on it."""

    order: tuple[str, ...]
    """All nodes, in their order in the run."""
    edges: tuple[EdgeName, ...]
    """(sender, listener), sorted by the listener's and then the sender's position in ``order``."""
    log_prob: float | None
    """Log-probability (nats) of order and edges, under the parameters it was sampled with."""

    def __iter__(self) -> Iterator[EdgeName]:
        return iter(self.edges)


class CandidateGraph:
    """Named nodes and the edges that may occur between them.

    Nodes are grouped in *levels*: the topological generations of the strongly connected components.
    A candidate from one level to a later one never closes a cycle, so the order of nodes matters
    only within a level.

    Attributes:
        names, edges: nodes and candidates, sorted.
        decision: the node that every used node reaches, or ``None``.
        node_index, edge_index: position in ``names`` and in ``edges``.
        senders, listeners: node indices of each candidate, ``[E]``.
        levels, level_of: node indices by level, first level first; the level of each node, ``[n]``.
        order_dependent: whether a candidate stays within a level, ``[E]`` bool.
        blocks: for each level with candidates inside, the nodes that have one.
    """

    def __init__(
        self,
        names: Iterable[str],
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
    ) -> None:
        self.names, self.decision = tuple(sorted(names)), decision
        pairs = {(a, b) for a in self.names for b in self.names if a != b and a != decision}
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
        ends = self._ends = [(self.node_index[a], self.node_index[b]) for a, b in self.edges]
        self.senders, self.listeners = torch.tensor(ends, dtype=torch.long).view(-1, 2).unbind(1)
        graph = nx.DiGraph(ends)
        graph.add_nodes_from(range(len(self.names)))
        components = nx.condensation(graph)
        self.levels: list[list[int]] = [
            sorted(node for part in generation for node in components.nodes[part]["members"])
            for generation in nx.topological_generations(components)
        ]
        self.level_of = torch.zeros(len(self.names), dtype=torch.long)
        for number, level in enumerate(self.levels):
            self.level_of[level] = number
        self.order_dependent = self.level_of[self.senders] == self.level_of[self.listeners]
        joined = set(
            torch.cat([self.senders, self.listeners])[self.order_dependent.repeat(2)].tolist()
        )
        blocks = [[node for node in level if node in joined] for level in self.levels]
        self.blocks = [block for block in blocks if block]

    def __repr__(self) -> str:
        return f"{len(self.names)} nodes: {', '.join(self.names)}; {len(self.edges)} possible edges"

    def inside(self, values: Tensor) -> Tensor:
        """Values of the candidates ``[B, E]`` by sender and listener, ``[B, n, n]``: those of
        order-dependent candidates; 0 elsewhere."""
        n, kept = len(self.names), self.order_dependent
        places = (self.senders * n + self.listeners)[kept]
        flat = values.new_zeros(len(values), n * n)
        return flat.index_copy(1, places, values[:, kept]).view(-1, n, n)

    def mask(self, edge_sets: Sequence[Iterable[EdgeName]]) -> Tensor:
        """Edge sets as ``[B, E]`` bool. Raises ``ConfigError`` if an edge is not a candidate."""
        mask = torch.zeros(len(edge_sets), len(self.edges), dtype=torch.bool)
        for row, edges in enumerate(edge_sets):
            try:
                mask[row, [self.edge_index[edge] for edge in edges]] = True
            except KeyError as missing:
                raise ConfigError(
                    f"edge distribution: {missing.args[0]} is not a candidate edge"
                ) from None
        return mask

    def used(self, chosen: Tensor) -> Tensor | None:
        """Mask of the nodes that reach the decision, ``[B, n]``; ``None`` without a decision."""
        if self.decision is None:
            return None
        used = torch.zeros(len(chosen), len(self.names), dtype=torch.bool)
        used[:, self.node_index[self.decision]] = True
        senders = self.senders.expand(len(chosen), -1)
        while True:
            carried = chosen & used[:, self.listeners]
            grown = used.float().scatter_reduce(1, senders, carried.float(), "amax").bool()
            if torch.equal(grown, used):
                return used
            used = grown

    def sample(
        self, order: Sequence[int], chosen: Sequence[int], log_prob: float | None
    ) -> EdgeSample:
        """The record of a DAG, given by node indices and edge indices."""
        size, rank = len(order), dict(zip(order, range(len(order)), strict=True))
        ends = self._ends
        chosen = sorted(chosen, key=lambda k: rank[ends[k][1]] * size + rank[ends[k][0]])
        return EdgeSample(
            order=tuple([self.names[node] for node in order]),
            edges=tuple([self.edges[k] for k in chosen]),
            log_prob=log_prob,
        )


# -- sums and maxima over all orders ----------------------------------------------------------
#
# By dynamic programming over the 2^n sets of nodes. A set is an integer whose bit i says that node
# i has been placed. It is a sufficient state: the next node depends on the set, not on its order.


@lru_cache(maxsize=MAX_EXACT + 1)
def _members(n: int) -> Tensor:
    """Mask of the nodes in each set, shape ``[2^n, n]``."""
    sets = torch.arange(2**n)[:, None]
    return ((sets >> torch.arange(n)) & 1).bool()


@lru_cache(maxsize=MAX_EXACT + 1)
def _layers(n: int) -> tuple[Tensor, ...]:
    """Sets by size, smallest first; element k has shape ``[binomial(n, k)]``."""
    size = _members(n).sum(1)
    return tuple((size == k).nonzero()[:, 0] for k in range(n + 1))


def _choice(scores: Tensor) -> Tensor:
    """Log-probability that node i is placed next after set S, shape ``[2^n, n]``."""
    inside = _members(len(scores))
    # The full set has no node left; its row is never read, but must not make NaN gradients.
    left = torch.where(inside, -torch.inf, scores)[:-1].logsumexp(1)
    left = torch.cat([left, left.new_zeros(1)])
    return torch.where(inside, -torch.inf, scores - left[:, None])


def _arrivals(layer: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """For each set of a layer, its members, and the sets without each member, ``[sets, size]``."""
    size = int(_members(n)[layer[0]].sum())
    last = _members(n)[layer].nonzero()[:, 1].view(-1, size)
    return last, layer[:, None] - (1 << last)


def edge_set_log_prob(scores: Tensor, terms: Tensor, present: Tensor) -> Tensor:
    """Log-probability of edge sets, summed over all orders, ``[B]``; ``-inf`` for a cycle.

    Args:
        scores: Plackett-Luce scores, ``[n]``.
        terms: Bernoulli log-probability of edge (i, j) being present or absent, given that i
            precedes j; 0 if there is no candidate; ``[B, n, n]``.
        present: whether edge (i, j) is in the set, ``[B, n, n]`` bool.
    """
    n, batch = len(scores), len(terms)
    inside = _members(n).to(scores.dtype)
    # Node i may come after S only if it sends nothing to a node already in S.
    blocked = (inside @ present.mT.to(scores.dtype)) > 0
    step = torch.where(blocked, -torch.inf, _choice(scores) + inside @ terms)
    values = scores.new_full((batch, 2**n), -torch.inf)
    values = torch.cat([scores.new_zeros(batch, 1), values[:, 1:]], 1)
    for layer in _layers(n)[1:]:
        last, before = _arrivals(layer, n)
        options = values[:, before] + step[:, before, last]
        values = values.index_copy(1, layer, _logsumexp(options))
    return values[:, -1]


def best_order(scores: Tensor, terms: Tensor) -> list[int]:
    """The order with the largest sum of its log-probability and the ``terms`` of forward pairs."""
    n = len(scores)
    step = _choice(scores) + _members(n).to(scores.dtype) @ terms
    values = scores.new_full((2**n,), -torch.inf)
    values[0] = 0.0
    came_last = torch.zeros(2**n, dtype=torch.long)
    for layer in _layers(n)[1:]:
        last, before = _arrivals(layer, n)
        options = values[before] + step[before, last]
        # Of equal options the greatest node comes last, so that ties keep the nodes sorted.
        flipped = options.flip(1).argmax(1)
        best = options.shape[1] - 1 - flipped
        row = torch.arange(len(layer))
        values[layer] = options[row, best]
        came_last[layer] = last[row, best]
    order: list[int] = []
    at = 2**n - 1
    while at:
        node = int(came_last[at])
        order.append(node)
        at -= 1 << node
    return order[::-1]


def _logsumexp(values: Tensor) -> Tensor:
    """Like ``logsumexp(-1)``, without NaN gradients for rows that are all ``-inf``."""
    empty = torch.isneginf(values).all(-1)
    safe = torch.where(empty[..., None], 0.0, values).logsumexp(-1)
    return torch.where(empty, -torch.inf, safe)
