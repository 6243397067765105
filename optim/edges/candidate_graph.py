"""The nodes and candidate edges of a distribution over DAGs, and one sample of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import networkx as nx
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import descendants
from swarm_ui.trace.records import EdgeName


class EdgeSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A DAG that was drawn from a distribution."""

    order: tuple[str, ...]
    """All nodes, in their order in the run."""
    edges: tuple[EdgeName, ...]
    """(sender, listener), sorted by the listener's and then the sender's position in ``order``."""
    log_prob: float | None
    """Log-probability (nats) under the parameters it was sampled with; ``None`` if the
    distribution has none (a sample from a posterior over weights)."""
    used: tuple[str, ...] | None = None
    """Names of the nodes with a path to the decision, and the decision itself, sorted; ``None`` if
    the distribution has no decision, so that all nodes are used."""
    enumeration: int | None = None
    """Seed of the sequence in which a sequential distribution visited its candidates."""

    @property
    def useful(self) -> tuple[EdgeName, ...]:
        """The edges between nodes that are used."""
        if self.used is None:
            return self.edges
        used = set(self.used)
        return tuple(edge for edge in self.edges if edge[1] in used)


class CyclicBlock(NamedTuple):
    """Nodes of one level and the candidates between them, which can form cycles."""

    nodes: list[int]
    edges: list[int]
    """Indices of the candidates between two of the nodes."""
    ends: tuple[Tensor, Tensor]
    """Sender and listener of each of these edges, as positions in ``nodes``."""


class CandidateGraph:
    """Named nodes and the edges that may occur between them.

    Nodes are grouped in *levels*: the topological generations of the strongly connected components.
    A candidate from one level to a later one never closes a cycle, so the order of nodes matters
    only within a level. A delayed candidate delivers its message in a later round and never closes
    a cycle either: levels and orders disregard it.

    Attributes:
        names: nodes, sorted.
        edges: candidates, sorted.
        decision: the node that every used node reaches, or ``None``.
        delays: for delayed candidates, how many rounds later they deliver a message.
        node_index, edge_index: position in ``names`` and in ``edges``.
        senders, listeners: node indices of each candidate, ``[E]``.
        levels: node indices by level, first level first.
        level_of: level of each node, ``[n]``.
        delayed: whether a candidate has a delay, ``[E]`` bool.
        order_dependent: whether a candidate stays within a level and has no delay, ``[E]`` bool.
        blocks: the levels with candidates inside.
    """

    def __init__(
        self,
        names: Iterable[str],
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
        delays: Mapping[EdgeName, int] = MappingProxyType({}),
    ) -> None:
        """Raises ``ConfigError`` for a repeated or unknown name, a self-loop, a decision that
        sends, or a delay of an edge that is not a candidate."""
        listed = list(names)
        self.names = tuple(sorted(set(listed)))
        if len(self.names) != len(listed):
            raise ConfigError(f"edge distribution: node names must be distinct, got {listed}")
        if decision is not None and decision not in self.names:
            raise ConfigError(
                f"edge distribution: the decision {decision!r} is not one of {listed}"
            )
        pairs = {(a, b) for a in self.names for b in self.names if a != b}
        if candidates is None:
            candidates = (edge for edge in pairs if edge[0] != decision)
        self.edges = tuple(sorted(set(candidates)))
        unknown = set(self.edges) - pairs
        if unknown:
            raise ConfigError(
                f"edge distribution: {sorted(unknown)} are not edges between two of {self.names}; "
                "an edge joins two different nodes"
            )
        if decision in dict(self.edges):
            raise ConfigError(
                f"edge distribution: the decision {decision!r} cannot be a sender; "
                "leave out its outgoing edges"
            )
        self.decision = decision
        self.node_index = {name: i for i, name in enumerate(self.names)}
        self.edge_index = {edge: k for k, edge in enumerate(self.edges)}
        ends = [(self.node_index[a], self.node_index[b]) for a, b in self.edges]
        self.delays = self._delays(delays)
        self.delayed = torch.tensor([edge in self.delays for edge in self.edges], dtype=torch.bool)
        self.senders = torch.tensor([a for a, _ in ends], dtype=torch.long)
        self.listeners = torch.tensor([b for _, b in ends], dtype=torch.long)
        at_once = [
            pair for pair, edge in zip(ends, self.edges, strict=True) if edge not in self.delays
        ]
        self.levels = self._levels(at_once)
        self.level_of = torch.zeros(len(self.names), dtype=torch.long)
        for number, level in enumerate(self.levels):
            self.level_of[level] = number
        same_level = self.level_of[self.senders] == self.level_of[self.listeners]
        self.order_dependent = same_level & ~self.delayed
        self.blocks = self._blocks(ends)

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:6])
        if len(self.names) > 6:
            shown += f" and {len(self.names) - 6} more"
        edges = f"{len(self.edges)} possible edge{'s' * (len(self.edges) != 1)}"
        return f"{len(self.names)} nodes: {shown}; {edges}"

    def __reduce__(self) -> tuple[Any, ...]:
        # The mapping proxy cannot be pickled or copied.
        return CandidateGraph, (self.names, self.edges, self.decision, dict(self.delays))

    def _delays(self, delays: Mapping[EdgeName, int]) -> Mapping[EdgeName, int]:
        for (sender, listener), delay in delays.items():
            if (sender, listener) not in self.edge_index:
                raise ConfigError(
                    f"edge distribution: {sender} -> {listener} has a delay but is not a candidate"
                    "; add it to the candidates, or leave its delay out"
                )
            if not isinstance(delay, int) or delay < 0:
                raise ConfigError(
                    f"edge distribution: the delay of {sender} -> {listener} must be a whole "
                    f"number of rounds, at least 0, got {delay!r}"
                )
        return MappingProxyType({edge: delay for edge, delay in delays.items() if delay})

    def _levels(self, ends: list[tuple[int, int]]) -> list[list[int]]:
        graph = nx.DiGraph(ends)
        graph.add_nodes_from(range(len(self.names)))
        components = nx.condensation(graph)
        return [
            sorted(node for part in generation for node in components.nodes[part]["members"])
            for generation in nx.topological_generations(components)
        ]

    def _blocks(self, ends: list[tuple[int, int]]) -> list[CyclicBlock]:
        by_level: dict[int, list[int]] = {}
        for k in self.order_dependent.nonzero()[:, 0].tolist():
            by_level.setdefault(int(self.level_of[ends[k][0]]), []).append(k)
        blocks = []
        for _, edges in sorted(by_level.items()):
            nodes = sorted({node for k in edges for node in ends[k]})
            position = {node: i for i, node in enumerate(nodes)}
            first = torch.tensor([position[ends[k][0]] for k in edges])
            second = torch.tensor([position[ends[k][1]] for k in edges])
            blocks.append(CyclicBlock(nodes, edges, (first, second)))
        return blocks

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

    def orders(self, orders: Sequence[Sequence[str]]) -> Tensor:
        """Orders as node indices, ``[B, n]``. Raises ``ConfigError`` if an order does not have each
        name of the graph exactly once."""
        for order in orders:
            if sorted(order) != list(self.names):
                raise ConfigError(
                    f"edge distribution: {list(order)} is not an order of {self.names}; "
                    "an order has each of these names once"
                )
        rows = [[self.node_index[name] for name in order] for order in orders]
        return torch.tensor(rows, dtype=torch.long).view(len(orders), len(self.names))

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
        self,
        order: Sequence[int],
        chosen: Sequence[int],
        log_prob: float | None,
        enumeration: int | None = None,
    ) -> EdgeSample:
        """The record of a DAG, given by node indices and edge indices."""
        rank = {node: r for r, node in enumerate(order)}
        ends = [self.edges[k] for k in chosen]
        ranked = sorted((rank[self.node_index[b]], rank[self.node_index[a]], a, b) for a, b in ends)
        edges = tuple((a, b) for _, _, a, b in ranked)
        used = None
        if self.decision is not None:
            reaching = descendants([self.decision], [(b, a) for a, b in edges])
            used = tuple(sorted({*reaching, self.decision}))
        return EdgeSample(
            order=tuple(self.names[i] for i in order),
            edges=edges,
            log_prob=log_prob,
            used=used,
            enumeration=enumeration,
        )
