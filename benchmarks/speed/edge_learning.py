"""Problems with known useful edges, and GPTSwarm's learner of edges, written again as a reference.

A problem has agents that may send to a decision, and an expected utility of every graph; an
evaluation is one success or failure. What matters is drawn from the seed of the instance.

- *vote_k*: the decision takes the majority of what it hears from ten agents (ties are random).
  Honest agents are right with probability 0.8, independently; k adversaries always send the same
  wrong answer.
- *needle*: twenty edges; success has probability 0.9 if four given edges are present and two given
  edges are absent, else 0.1; the other fourteen have no effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample
from swarm_ui.topology import predecessors, topological

HONEST = 0.8
Baseline = Literal["none", "half", "average"]


class Problem(NamedTuple):
    """One instance of a problem."""

    graph: CandidateGraph
    value: Callable[[Tensor], Tensor]
    """Expected utility of graphs ``[B, E]`` (bool), ``[B]``."""
    optimum: float
    evaluate: Callable[[EdgeSample, torch.Generator], float]
    """The utility of one evaluation. Equal generator states give the same task."""

    def mean(self, samples: Sequence[EdgeSample]) -> float:
        """Mean expected utility of some graphs."""
        return float(self.value(self.graph.mask(samples)).mean())


def vote(adversaries: int, seed: int) -> Problem:
    """The problem *vote*, which the module describes."""
    agents, graph = 10, _star(10)
    bad = _mixed(agents, seed)[:adversaries]
    table = torch.zeros(agents + 1, agents + 1)
    for honest in range(agents + 1):
        for wrong in range(agents + 1):
            table[honest, wrong] = sum(
                math.comb(honest, right) * HONEST**right * (1.0 - HONEST) ** (honest - right)
                * _win(right, honest + wrong)
                for right in range(honest + 1)
            )  # fmt: skip
    mask = torch.zeros(agents, dtype=torch.bool).index_fill(0, bad, True)

    def value(chosen: Tensor) -> Tensor:
        return table[(chosen & ~mask).sum(1), (chosen & mask).sum(1)]

    def evaluate(sample: EdgeSample, draw: torch.Generator) -> float:
        own = torch.rand(agents + 1, generator=draw)
        honest = ((own[:-1] < HONEST) & ~mask).tolist()
        right = dict(zip(graph.names, honest, strict=False))
        heard = [right[a] for a, _ in sample.edges]
        return float(float(own[-1]) < _win(sum(heard), len(heard)))

    return Problem(graph, value, float(table[: agents - adversaries + 1, 0].max()), evaluate)


def needle(seed: int) -> Problem:
    """The problem *needle*, which the module describes."""
    graph, mixed = _star(20), _mixed(20, seed)

    def value(chosen: Tensor) -> Tensor:
        hit = chosen[:, mixed[:4]].all(1) & ~chosen[:, mixed[4:6]].any(1)
        return 0.1 + 0.8 * hit.float()

    def evaluate(sample: EdgeSample, draw: torch.Generator) -> float:
        chance = float(value(graph.mask([sample.edges])))
        return float(float(torch.rand(1, generator=draw)) < chance)

    return Problem(graph, value, 0.9, evaluate)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    **{f"vote_{count}": partial(vote, count) for count in (3, 5, 7)},
    "needle": needle,
}


def _star(agents: int) -> CandidateGraph:
    names = [f"a{k:02}" for k in range(agents)]
    return CandidateGraph([*names, "z"], [(name, "z") for name in names], "z")


def _mixed(count: int, seed: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def _win(right: int, voters: int) -> float:
    """Probability that the majority is right; a vote without voters is a tie."""
    return 1.0 if 2 * right > voters else 0.5 if 2 * right == voters else 0.0


class GPTSwarmEdges(nn.Module):
    """GPTSwarm's distribution over DAGs, with a probability of 0.5 for every edge.

    Candidates are visited in sorted sequence. One that would close a cycle with the edges chosen so
    far is skipped; any other is chosen with its own probability ``p = sigmoid(logit)``, so that
    ``log P(edges) = sum over candidates not skipped of log p or log(1 - p)``.
    """

    def __init__(self, graph: CandidateGraph) -> None:
        super().__init__()
        self.graph = graph
        self.logits = nn.Parameter(torch.zeros(len(graph.edges)))

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]:
        """``batch`` independent DAGs."""
        uniform = torch.rand(batch, len(self.graph.edges), generator=generator)
        wanted = (uniform < self.logits.detach().sigmoid()).tolist()
        return [self._made([k for k in self._visit(row) if row[k]]) for row in wanted]

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
        edges = [self.graph.edges[k] for k in chosen]
        return EdgeSample.of(topological(predecessors(self.graph.names, edges)), edges, None)


class GPTSwarm:
    """GPTSwarm's own update: Adam with learning rate 0.1 on all log-odds.

    ``baseline`` is ``"none"`` as in its code for MMLU; ``"half"`` as in the rest of its code, which
    resets the moving average at every step, so that it stays at 0.5; or ``"average"``, the moving
    average that was probably intended.
    """

    def __init__(self, graph: CandidateGraph, baseline: Baseline) -> None:
        self.edges, self.baseline = GPTSwarmEdges(graph), baseline
        self._adam = torch.optim.Adam(self.edges.parameters(), lr=0.1)
        self._average: float | None = None

    def step(self, samples: Sequence[EdgeSample], utilities: Sequence[float]) -> None:
        """One update from graphs and their utilities."""
        values = torch.tensor(utilities)
        mean = float(values.mean())
        known = mean if self._average is None else self._average
        self._average = 0.9 * known + 0.1 * mean
        subtracted = {"none": 0.0, "half": 0.5, "average": known}[self.baseline]
        self._adam.zero_grad()
        loss = -((values - subtracted) * self.edges.log_prob(samples)).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
