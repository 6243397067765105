"""Which edges a distribution is about, and what of their order is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import networkx as nx
import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.graph.topology import descendants
from swarm_ui.trace.records import EdgeName


class EdgeSample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One drawn graph."""

    order: tuple[str, ...]
    """Nodes, first speaker first."""
    edges: tuple[EdgeName, ...]
    """(sender, listener), sorted by listener's then sender's place in ``order``."""
    log_prob: float | None
    """Log-probability (nats) when it was drawn, of what its distribution says it draws; ``None``
    where there is none (a fixed graph, a draw from a posterior over weights)."""
    used: tuple[str, ...] | None = None
    """Nodes from which a path leads to the decision, and the decision, sorted; ``None`` if the
    distribution knows no decision: then all are."""
    enumeration: int | None = None
    """Seed of the sequence in which a sequential distribution looked at its candidates."""
    condition: tuple[float, ...] | None = None
    """Features the graph was drawn for."""

    @property
    def useful(self) -> tuple[EdgeName, ...]:
        """The edges between nodes that are used."""
        if self.used is None:
            return self.edges
        used = set(self.used)
        return tuple(edge for edge in self.edges if edge[1] in used)


class Knot(NamedTuple):
    """Nodes whose order decides which of the candidates between them may occur."""

    nodes: list[int]
    slots: list[int]
    """Candidates between two of them."""
    ends: tuple[Tensor, Tensor]
    """Sender and listener of each slot, as places in ``nodes``."""


class EdgeSpace:
    """Named nodes and candidate edges.

    Nodes stand in *levels*: a candidate from one level to a later one never closes a cycle, so
    only inside a level does the order matter. Two nodes that may talk in both directions, directly
    or through others, are in the same level; one that only listens, such as a final decision, is
    in a later level than those it hears.

    Attributes:
        names: nodes, sorted.
        edges: candidates, sorted.
        decision: the node all others must reach to be used, or ``None``.
        levels: places in ``names`` by level, first level first.
        knots: nodes of one level with candidates between them.
    """

    def __init__(
        self,
        names: Iterable[str],
        candidates: Iterable[EdgeName] | None = None,
        decision: str | None = None,
    ) -> None:
        """
        Raises:
            ConfigError: a repeated or unknown name, a self-loop, or a decision that speaks.
        """
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
            self.edges = tuple(sorted(edge for edge in pairs if edge[0] != decision))
        else:
            self.edges = tuple(sorted(set(candidates)))
        unknown = set(self.edges) - pairs
        if unknown:
            raise ConfigError(
                f"edge distribution: {sorted(unknown)} are not edges between two of {self.names}"
            )
        if any(sender == decision for sender, _ in self.edges):
            raise ConfigError(f"edge distribution: the decision {decision!r} only listens")
        self.decision = decision
        self.place = {name: i for i, name in enumerate(self.names)}
        self.slot = {edge: k for k, edge in enumerate(self.edges)}
        ends = [(self.place[a], self.place[b]) for a, b in self.edges]
        self.senders = torch.tensor([a for a, _ in ends], dtype=torch.long)
        self.listeners = torch.tensor([b for _, b in ends], dtype=torch.long)
        self.levels, self.knots = self._layout(ends)
        level_of = torch.zeros(len(self.names), dtype=torch.long)
        for number, level in enumerate(self.levels):
            level_of[level] = number
        self.level_of = level_of
        self.tied = level_of[self.senders] == level_of[self.listeners]
        """Candidates that only an order decides about, ``[E]`` bool."""

    def _layout(self, ends: list[tuple[int, int]]) -> tuple[list[list[int]], list[Knot]]:
        graph = nx.DiGraph(ends)
        graph.add_nodes_from(range(len(self.names)))
        parts = nx.condensation(graph)
        levels = [
            sorted(node for part in parts_ for node in parts.nodes[part]["members"])
            for parts_ in nx.topological_generations(parts)
        ]
        level_of = {node: k for k, level in enumerate(levels) for node in level}
        inner: dict[int, list[int]] = {}
        for slot, (a, b) in enumerate(ends):
            if level_of[a] == level_of[b]:
                inner.setdefault(level_of[a], []).append(slot)
        knots = []
        for _, slots in sorted(inner.items()):
            nodes = sorted({node for slot in slots for node in ends[slot]})
            here = {node: i for i, node in enumerate(nodes)}
            first = torch.tensor([here[ends[slot][0]] for slot in slots])
            second = torch.tensor([here[ends[slot][1]] for slot in slots])
            knots.append(Knot(nodes, slots, (first, second)))
        return levels, knots

    def chosen(self, sets: Sequence[Iterable[EdgeName]]) -> Tensor:
        """Edge sets as ``[B, E]`` bool. Raises ``ConfigError`` for one that is no candidate."""
        mask = torch.zeros(len(sets), len(self.edges), dtype=torch.bool)
        for row, edges in enumerate(sets):
            try:
                slots = [self.slot[edge] for edge in edges]
            except KeyError as missing:
                raise ConfigError(
                    f"edge distribution: {missing.args[0]} is not a candidate edge"
                ) from None
            mask[row, slots] = True
        return mask

    def orders(self, orders: Sequence[Sequence[str]]) -> Tensor:
        """Orders as ``[B, n]``. Raises ``ConfigError`` for one that is not of these names."""
        for order in orders:
            if sorted(order) != list(self.names):
                raise ConfigError(
                    f"edge distribution: {list(order)} is not an order of {self.names}"
                )
        rows = [[self.place[name] for name in order] for order in orders]
        return torch.tensor(rows, dtype=torch.long).view(len(orders), len(self.names))

    def used(self, chosen: Tensor) -> Tensor | None:
        """Which nodes reach the decision, ``[B, n]`` bool; ``None`` without a decision."""
        if self.decision is None:
            return None
        used = torch.zeros(len(chosen), len(self.names), dtype=torch.bool)
        used[:, self.place[self.decision]] = True
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
        slots: Sequence[int],
        log_prob: float | None,
        *,
        enumeration: int | None = None,
        condition: tuple[float, ...] | None = None,
    ) -> EdgeSample:
        """A record of a graph given by places and slots."""
        rank = {node: r for r, node in enumerate(order)}
        ends = [self.edges[k] for k in slots]
        ranked = sorted((rank[self.place[b]], rank[self.place[a]], a, b) for a, b in ends)
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
            condition=condition,
        )
