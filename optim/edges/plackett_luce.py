"""The law of a random DAG: an order of the nodes x Bernoulli edges, for a whole batch at once.

Draw an order of the nodes (Plackett-Luce: next is node i with probability proportional to
``exp(score_i)`` among those left of its level), then each candidate that points forward in it with
its own probability. So every draw is acyclic, whatever the parameters, and log-probabilities are
exact. The sampler is that of differentiable DAG sampling (arXiv 2203.08509).

Only inside a level of :class:`~swarm_ui.optim.edges.space.EdgeSpace` does the order decide what may
occur: a candidate between levels always points forward and simply has its own probability.

With a decision, a draw keeps what leads to it: from the last node back, node i is used if it has an
edge to a used node behind it, and edges into unused nodes are dropped. Given the order, those kept
are again independent, which makes the log-probability of what is *kept* exact too: the sum over
all i before j, with j used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.permutations import (
    MAX_EXACT,
    best_order,
    edge_set_log_prob,
    order_entropy,
)
from swarm_ui.optim.edges.space import EdgeSample, EdgeSpace, Knot
from swarm_ui.trace.records import EdgeName


class Draws(NamedTuple):
    """A batch of graphs as tensors."""

    orders: Tensor
    """Places of the nodes, first speaker first, ``[B, n]``."""
    chosen: Tensor
    """Which candidates occur, ``[B, E]`` bool."""
    counted: Tensor | None = None
    """Which candidates had a say, ``[B, E]`` bool: those that point forward, into a used node. It
    follows from the rest; a draw remembers it."""


class PlackettLuceEdges:
    """A distribution over DAGs, given by tensors that may carry gradients."""

    def __init__(self, space: EdgeSpace, scores: Tensor, logits: Tensor) -> None:
        """``scores``: of the order, ``[n]``; ``logits``: log-odds of each candidate, given that
        its sender comes first, ``[E]``."""
        self.space, self.scores, self.logits = space, scores, logits

    @torch.no_grad()
    def draw(self, batch: int, generator: torch.Generator) -> Draws:
        """``batch`` independent graphs; equal generator states give equal graphs."""
        space = self.space
        uniform = torch.rand(batch, len(space.names), generator=generator).clamp_min(1e-20)
        # Gumbel noise on the scores makes the sorted order a Plackett-Luce draw.
        orders = (self.scores - torch.log(-torch.log(uniform))).argsort(1, descending=True)
        if len(space.levels) > 1:
            orders = orders.gather(1, space.level_of[orders].argsort(dim=1, stable=True))
        chosen = torch.rand(batch, len(space.edges), generator=generator) < self.logits.sigmoid()
        counted = self.forward(orders)
        chosen &= counted
        used = space.used(chosen)
        if used is not None:
            counted &= used[:, space.listeners]
            chosen &= counted
        return Draws(orders, chosen, counted)

    def forward(self, orders: Tensor) -> Tensor:
        """Which candidates point forward in each order, ``[B, E]`` bool."""
        batch, n = orders.shape
        # Ranks as small numbers: the two look-ups below are most of the work on large graphs.
        rank = torch.empty(batch, n, dtype=torch.int16)
        rank.scatter_(1, orders, torch.arange(n, dtype=torch.int16).expand(batch, n))
        first, second = self.space.senders, self.space.listeners
        return rank.index_select(1, first) < rank.index_select(1, second)

    def log_prob(self, draws: Draws) -> Tensor:
        """Joint log-probability (nats) of orders and edges, ``[B]``, with gradient.

        ``-inf`` where an edge points backwards, or into a node that is not used.
        """
        chosen, counted = draws.chosen, draws.counted
        kind = self.logits.dtype
        possible = None
        if counted is None:
            counted = self._counted(draws)
            possible = (chosen <= counted).all(1)
        edges = chosen.to(kind) @ self.logits - counted.to(kind) @ softplus(self.logits)
        total = self._order_log_prob(draws.orders) + edges
        if possible is None or bool(possible.all()):
            return total
        return torch.where(possible, total, -math.inf)

    def _counted(self, draws: Draws) -> Tensor:
        forward = self.forward(draws.orders)
        used = self.space.used(draws.chosen)
        return forward if used is None else forward & used[:, self.space.listeners]

    def _order_log_prob(self, orders: Tensor) -> Tensor:
        ranked, start = self.scores[orders], 0
        total = ranked.new_zeros(len(orders))
        for level in self.space.levels:
            part = ranked[:, start : start + len(level)]
            start += len(level)
            if len(level) > 1:
                total = total + (part - part.flip(1).logcumsumexp(1).flip(1)).sum(1)
        return total

    @property
    def exact(self) -> bool:
        """Whether orders can be summed out."""
        return all(len(knot.nodes) <= MAX_EXACT for knot in self.space.knots)

    def log_prob_sets(self, chosen: Tensor) -> Tensor:
        """Log-probability (nats) of edge sets under all orders, ``[B]``, with gradient.

        Exact by dynamic programming over the subsets of each knot; ``-inf`` for a cycle.

        Raises:
            ConfigError: a knot of more than :data:`~swarm_ui.optim.edges.permutations.MAX_EXACT`
            nodes.
        """
        self._check_exact("log_prob_edges")
        space = self.space
        terms = torch.where(chosen, logsigmoid(self.logits), logsigmoid(-self.logits))
        used = space.used(chosen)
        lost = torch.zeros(len(chosen), dtype=torch.bool)
        if used is not None:
            lost = (chosen & ~used[:, space.listeners]).any(1)
            terms = torch.where(used[:, space.listeners], terms, 0.0)
        total = (terms * ~space.tied).sum(1)
        for knot in space.knots:
            total = total + edge_set_log_prob(
                self.scores[knot.nodes],
                _spread(knot, terms[:, knot.slots]),
                _spread(knot, chosen[:, knot.slots]),
            )
        return torch.where(lost, -math.inf, total) if bool(lost.any()) else total

    @torch.no_grad()
    def sample(
        self, batch: int, generator: torch.Generator, condition: tuple[float, ...] | None = None
    ) -> list[EdgeSample]:
        """``batch`` independent graphs by name; ``condition`` is noted on them."""
        return self.records(self.draw(batch, generator), condition)

    @torch.no_grad()
    def records(self, draws: Draws, condition: tuple[float, ...] | None = None) -> list[EdgeSample]:
        """Graphs by name."""
        log_probs = self.log_prob(draws).tolist()
        slots: list[list[int]] = [[] for _ in log_probs]
        for row, slot in draws.chosen.nonzero().tolist():
            slots[row].append(slot)
        return [
            self.space.sample(order, picked, log_prob, condition=condition)
            for order, picked, log_prob in zip(draws.orders.tolist(), slots, log_probs, strict=True)
        ]

    @torch.no_grad()
    def mode(self, condition: tuple[float, ...] | None = None) -> EdgeSample:
        """The most probable (order, edges); ties go to the name that sorts first, and to no edge.

        With a decision, what leads to it is kept. In a level of more than
        :data:`~swarm_ui.optim.edges.permutations.MAX_EXACT` nodes: the most probable order, then
        the most probable edges given it.
        """
        n, space = len(self.space.names), self.space
        best = torch.maximum(logsigmoid(self.logits), logsigmoid(-self.logits))
        terms = self.logits.new_zeros(n, n)
        terms[space.senders[space.tied], space.listeners[space.tied]] = best[space.tied]
        order: list[int] = []
        for level in space.levels:
            if len(level) <= MAX_EXACT:
                found = best_order(self.scores[level], terms[level][:, level])
                order += [level[i] for i in found]
            else:
                order += sorted(level, key=lambda i: -float(self.scores[i]))
        orders = torch.tensor([order])
        chosen = (self.logits > 0)[None] & self.forward(orders)
        used = space.used(chosen)
        if used is not None:
            chosen &= used[:, space.listeners]
        return self.records(Draws(orders, chosen), condition)[0]

    @torch.no_grad()
    def marginals(self) -> dict[EdgeName, float]:
        """Probability that each candidate is drawn, over all orders (closed form).

        With a decision: before edges that do not lead to it are dropped.
        """
        chance = self._sender_first() * self.logits.sigmoid()
        return dict(zip(self.space.edges, chance.tolist(), strict=True))

    def entropy(self) -> Tensor:
        """Entropy (nats) of the *joint* of order and edges, a scalar with gradient.

        That of the edge set alone is lower: many orders give the same edges. With a decision:
        before edges that do not lead to it are dropped.

        Raises:
            ConfigError: a level of more than :data:`~swarm_ui.optim.edges.permutations.MAX_EXACT`
            nodes.
        """
        self._check_exact("entropy", max(map(len, self.space.levels), default=0))
        total = self.edge_entropy()
        for level in self.space.levels:
            if len(level) > 1:
                total = total + order_entropy(self.scores[level])
        return total

    def edge_entropy(self) -> Tensor:
        """Expected entropy (nats) of the edges once the order is known; any number of nodes."""
        p = self.logits.sigmoid()
        each = -(p * logsigmoid(self.logits) + (1 - p) * logsigmoid(-self.logits))
        return (self._sender_first() * each).sum()

    def names_log_prob(self, order: Sequence[str], edges: Iterable[EdgeName]) -> Tensor:
        """:meth:`log_prob` of one graph by name, a scalar."""
        draws = Draws(self.space.orders([order]), self.space.chosen([edges]))
        backward = self.space.level_of[draws.orders].diff(dim=1) < 0
        if bool(backward.any()):
            return self.logits.sum() * 0.0 - math.inf
        return self.log_prob(draws)[0]

    def sample_log_probs(self, samples: Sequence[EdgeSample]) -> Tensor:
        """Log-probability of each sample, ``[B]``: of its edges, where orders can be summed out,
        else of its order and edges."""
        chosen = self.space.chosen([sample.edges for sample in samples])
        if self.exact:
            return self.log_prob_sets(chosen)
        return self.log_prob(Draws(self.space.orders([s.order for s in samples]), chosen))

    def _sender_first(self) -> Tensor:
        """Probability that the sender of each candidate precedes its listener, ``[E]``."""
        space = self.space
        first = torch.sigmoid(self.scores[space.senders] - self.scores[space.listeners])
        return torch.where(space.tied, first, 1.0)

    def _check_exact(self, what: str, nodes: int | None = None) -> None:
        if nodes is None:
            nodes = max((len(knot.nodes) for knot in self.space.knots), default=0)
        if nodes > MAX_EXACT:
            raise ConfigError(
                f"{what} is exact up to {MAX_EXACT} nodes that may all hear each other, this "
                f"distribution has {nodes}; use log_prob(order, edges) and edge_entropy() instead"
            )


def _spread(knot: Knot, values: Tensor) -> Tensor:
    """Values of a knot's candidates as ``[B, m, m]``, 0 elsewhere."""
    m = len(knot.nodes)
    flat = values.new_zeros(len(values), m * m)
    return flat.index_copy(1, knot.ends[0] * m + knot.ends[1], values).view(-1, m, m)
