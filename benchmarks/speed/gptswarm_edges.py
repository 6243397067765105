"""GPTSwarm's distribution over DAGs and its three update rules, written again as references.

Candidates are visited in sorted sequence. One that would close a cycle with the edges chosen so far
is skipped; any other is chosen with its own probability ``p = sigmoid(logit)``, so that ``log
P(edges) = sum over candidates not skipped of log p or log(1 - p)``. An edge late in the list is
rarer than one early in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from swarm_ui.graph.topology import predecessors, topological
from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample

Baseline = Literal["none", "half", "average"]


class GPTSwarmEdges(nn.Module):
    """The distribution that the module describes, with a probability of 0.5 for every edge."""

    def __init__(self, graph: CandidateGraph) -> None:
        super().__init__()
        self.graph = graph
        self.logits = nn.Parameter(torch.zeros(len(graph.edges)))

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent DAGs."""
        uniform = torch.rand(batch, len(self.graph.edges), generator=generator)
        wanted = (uniform < self.logits.detach().sigmoid()).tolist()
        return [self._made([k for k in self._visit(row) if row[k]]) for row in wanted]

    def mode(self) -> EdgeSample:
        """The edges with a probability above 1/2, without those that close a cycle."""
        row = (self.logits > 0).tolist()
        return self._made([k for k in self._visit(row) if row[k]])

    def log_prob(self, dags: Sequence[EdgeSample]) -> Tensor:
        """Log-probability (nats) of each DAG, ``[B]``, with gradient."""
        chosen = self.graph.mask(dags)
        free = torch.zeros_like(chosen)
        for k, row in enumerate(chosen.tolist()):
            free[k, self._visit(row)] = True
        possible = (chosen <= free).all(1)
        total = chosen.float() @ self.logits - free.float() @ softplus(self.logits)
        return torch.where(possible, total, -math.inf)

    def _visit(self, wanted: Sequence[bool]) -> list[int]:
        """The candidates that close no cycle when they are visited."""
        reach = [1 << i for i in range(len(self.graph.names))]  # bit j of reach[i]: i reaches j
        free = []
        ends = zip(self.graph.senders.tolist(), self.graph.listeners.tolist(), strict=True)
        for edge, (a, b) in enumerate(ends):
            if reach[b] >> a & 1:
                continue
            free.append(edge)
            if wanted[edge] and not reach[a] >> b & 1:
                reach = [mine | reach[b] if mine >> a & 1 else mine for mine in reach]
        return free

    def _made(self, chosen: list[int]) -> EdgeSample:
        heard = predecessors(self.graph.names, [self.graph.edges[k] for k in chosen])
        order = [self.graph.node_index[name] for name in topological(heard)]
        return self.graph.sample(order, chosen, None)


class GPTSwarmRule:
    """GPTSwarm's own update: Adam with learning rate 0.1 on all log-odds.

    ``baseline`` is ``"none"`` as in its code for MMLU; ``"half"`` as in the rest of its code, which
    resets the moving average at every step, so that it stays at 0.5; or ``"average"``, the moving
    average that was probably intended.
    """

    def __init__(self, edges: GPTSwarmEdges, baseline: Baseline) -> None:
        self.edges, self.baseline = edges, baseline
        self.optimizer = torch.optim.Adam(edges.parameters(), lr=0.1)
        self._average: float | None = None

    def step(self, samples: Sequence[EdgeSample], values: Sequence[float]) -> None:
        """One update from graphs and their utilities."""
        mean = sum(values) / len(values)
        known = mean if self._average is None else self._average
        self._average = 0.9 * known + 0.1 * mean
        subtracted = {"none": 0.0, "half": 0.5, "average": known}[self.baseline]
        advantages = torch.tensor(values) - subtracted
        self.optimizer.zero_grad()
        loss = -(advantages * self.edges.log_prob(samples)).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
