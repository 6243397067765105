"""The nodes and candidate edges of a distribution over DAGs, and one sample of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec
import networkx as nx
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import EdgeName


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
    only within a level. A delayed candidate delivers its message in a later round and never closes
    a cycle either: levels and orders disregard it.

    Attributes:
        names, edges: nodes and candidates, sorted.
        decision: the node that every used node reaches, or ``None``.
        delays: for delayed candidates, how many rounds later they deliver a message.
        node_index, edge_index: position in ``names`` and in ``edges``.
        senders, listeners: node indices of each candidate, ``[E]``.
        levels: node indices by level, first level first.
        level_of: level of each node, ``[n]``.
        delayed: whether a candidate has a delay, ``[E]`` bool.
        order_dependent: whether a candidate stays within a level and has no delay, ``[E]`` bool.
        blocks: for each level with candidates inside, the nodes that have one.
    """

    def __init__(
        self,
        names: Iterable[str],
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
        delays: Mapping[EdgeName, int] = MappingProxyType({}),
    ) -> None:
        self.names, self.decision = tuple(sorted(names)), decision
        pairs = {(a, b) for a in self.names for b in self.names if a != b and a != decision}
        self.edges = tuple(sorted(pairs if candidates is None else set(candidates)))
        unknown = sorted((set(self.edges) | set(delays)) - pairs | set(delays) - set(self.edges))
        known = decision is None or decision in self.names
        if unknown or not known or len(set(self.names)) < len(self.names):
            raise ConfigError(
                f"edge distribution: expected distinct names of which 'decision' is one, and edges "
                f"between two of them that do not leave it, got {self.names}, decision "
                f"{decision!r}, and the edges or delays {unknown}"
            )
        self.delays = {edge: delay for edge, delay in delays.items() if delay}
        self.node_index = {name: i for i, name in enumerate(self.names)}
        self.edge_index = {edge: k for k, edge in enumerate(self.edges)}
        ends = self._ends = [(self.node_index[a], self.node_index[b]) for a, b in self.edges]
        self.senders, self.listeners = torch.tensor(ends, dtype=torch.long).view(-1, 2).unbind(1)
        self.delayed = torch.tensor([edge in self.delays for edge in self.edges], dtype=torch.bool)
        graph = nx.DiGraph(
            [pair for pair, edge in zip(ends, self.edges, strict=True) if edge not in self.delays]
        )
        graph.add_nodes_from(range(len(self.names)))
        components = nx.condensation(graph)
        self.levels: list[list[int]] = [
            sorted(node for part in generation for node in components.nodes[part]["members"])
            for generation in nx.topological_generations(components)
        ]
        self.level_of = torch.zeros(len(self.names), dtype=torch.long)
        for number, level in enumerate(self.levels):
            self.level_of[level] = number
        same_level = self.level_of[self.senders] == self.level_of[self.listeners]
        self.order_dependent = same_level & ~self.delayed
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
