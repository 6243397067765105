"""Synthetic problems with known useful edges, on which the edge learners are compared.

A problem has agents, perhaps a decision node, candidate edges, and an expected utility of every
graph; an evaluation is one success or failure. ``credit`` is the score that a critic without
errors would give to each message.

- *vote*: ten agents may send to the decision, which takes the majority (ties are random). Honest
  agents are right with probability 0.8, independently; k adversaries always send the same wrong
  answer.
- *xor*: ten edges in five pairs; each pair adds 0.2 if exactly one of its two edges is present.
- *needle*: twenty edges; success has probability 0.9 if four given edges are present and two given
  edges are absent, else 0.1; the other fourteen have no effect.
- *influence*: eight agents, any DAG among them, k adversaries. An honest agent has an answer of its
  own, right with probability 0.7, and sends the majority of this answer and the received ones
  (ties: its own). Adversaries always send the wrong answer. All eight vote, ties are random.

The adversaries, and the edges that matter in *needle*, are drawn from the seed of the instance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from swarm_ui.optim.edges.candidates import CandidateGraph, EdgeSample

HONEST = 0.8
OWN = 0.7


class Outcome(NamedTuple):
    """The result of one evaluation."""

    utility: float
    right: dict[str, bool]
    """Whether each agent's message was right; empty where messages are not scored."""


class Problem(NamedTuple):
    """One instance of a problem."""

    graph: CandidateGraph
    value: Callable[[Tensor], Tensor]
    """Expected utility of graphs ``[B, E]`` (bool, acyclic), ``[B]``."""
    optimum: float
    evaluate: Callable[[EdgeSample, torch.Generator], Outcome]
    """One evaluation. Equal generator states give the same task."""
    scored: bool
    """Whether single messages can be scored."""

    def mean(self, samples: Sequence[EdgeSample]) -> float:
        """Mean expected utility of some graphs."""
        return float(self.value(self.graph.mask(samples)).mean())


def vote(adversaries: int, seed: int, agents: int = 10) -> Problem:
    """The problem *vote*, which the module describes."""
    graph, bad = _star(agents), _drawn(agents, adversaries, seed)
    table = torch.zeros(agents + 1, agents + 1)
    for honest in range(agents + 1):
        for wrong in range(agents + 1):
            table[honest, wrong] = sum(
                _binomial(honest, right) * _win(2 * right, honest + wrong)
                for right in range(honest + 1)
            )
    mask = torch.tensor([graph.edges[k][0] in bad for k in range(agents)])

    def value(chosen: Tensor) -> Tensor:
        return table[(chosen & ~mask).sum(1), (chosen & mask).sum(1)]

    def evaluate(sample: EdgeSample, draw: torch.Generator) -> Outcome:
        own = torch.rand(agents + 1, generator=draw).tolist()
        right = {a: a not in bad and own[k] < HONEST for k, a in enumerate(graph.names[:agents])}
        heard = [right[a] for a, _ in sample.edges]
        return Outcome(float(own[-1] < _win(2 * sum(heard), len(heard))), right)

    return Problem(graph, value, float(table[: agents - adversaries + 1, 0].max()), evaluate, True)


def xor(seed: int) -> Problem:
    """The problem *xor*, which the module describes."""
    graph = _star(10)
    mixed = torch.randperm(10, generator=torch.Generator().manual_seed(seed))

    def value(chosen: Tensor) -> Tensor:
        pairs = chosen[:, mixed].view(-1, 5, 2)
        return (pairs[..., 0] != pairs[..., 1]).float().mean(1)

    return Problem(graph, value, 1.0, _coin(graph, value), False)


def needle(seed: int) -> Problem:
    """The problem *needle*, which the module describes."""
    graph = _star(20)
    mixed = torch.randperm(20, generator=torch.Generator().manual_seed(seed))

    def value(chosen: Tensor) -> Tensor:
        hit = chosen[:, mixed[:4]].all(1) & ~chosen[:, mixed[4:6]].any(1)
        return 0.1 + 0.8 * hit.float()

    return Problem(graph, value, 0.9, _coin(graph, value), False)


def influence(seed: int, agents: int = 8, adversaries: int = 3, tasks: int = 512) -> Problem:
    """The problem *influence* (see the module). Values are means over fixed tasks. The optimum is
    taken to be the full DAG of the honest agents; some sparser graphs are better by a tenth.
    """
    names = [f"a{k}" for k in range(agents)]
    graph, bad = CandidateGraph(names), _drawn(agents, adversaries, seed)
    honest = torch.tensor([name not in bad for name in graph.names])
    draw = torch.Generator().manual_seed(10_000 + seed)
    private = (torch.rand(tasks, agents, generator=draw) < OWN) & honest

    def said(chosen: Tensor, own: Tensor) -> Tensor:
        """Whether each agent is right, ``[B, T, n]`` (0 or 1).

        Takes graphs, ``[B, E]``, and the agents' own answers, ``[T, n]``.
        """
        heard = torch.zeros(len(chosen), agents, agents)
        heard[:, graph.senders, graph.listeners] = chosen.float()
        voices, answers = heard.sum(1)[:, None], own.float()
        right = answers.expand(len(chosen), -1, -1)
        # After k rounds, the answers of all agents with no longer incoming path than k are final.
        for _ in range(agents):
            balance = 2 * right @ heard - voices + 2 * answers - 1
            now = torch.where(balance == 0, answers, (balance > 0).float()) * honest
            if torch.equal(now, right):
                break
            right = now
        return right

    def value(chosen: Tensor) -> Tensor:
        votes = 2 * said(chosen, private).sum(2)
        return ((votes > agents).float() + 0.5 * (votes == agents).float()).mean(1)

    def evaluate(sample: EdgeSample, draw: torch.Generator) -> Outcome:
        own = (torch.rand(1, agents, generator=draw) < OWN) & honest
        coin = float(torch.rand(1, generator=draw))
        right = said(graph.mask([sample.edges]), own)[0, 0].bool().tolist()
        won = coin < _win(2 * sum(right), agents)
        return Outcome(float(won), dict(zip(graph.names, right, strict=True)))

    full = torch.zeros(1, len(graph.edges), dtype=torch.bool)
    for k, (a, b) in enumerate(graph.edges):
        full[0, k] = a not in bad and b not in bad and a < b
    return Problem(graph, value, float(value(full)), evaluate, True)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "vote_3": lambda seed: vote(3, seed),
    "vote_5": lambda seed: vote(5, seed),
    "vote_7": lambda seed: vote(7, seed),
    "xor": xor,
    "needle": needle,
    "influence": influence,
}


def _star(agents: int) -> CandidateGraph:
    names = [f"a{k:02}" for k in range(agents)]
    return CandidateGraph([*names, "z"], [(name, "z") for name in names], "z")


def _drawn(agents: int, count: int, seed: int) -> set[str]:
    wide = agents > 8
    places = torch.randperm(agents, generator=torch.Generator().manual_seed(seed))[:count]
    return {f"a{k:02}" if wide else f"a{k}" for k in places.tolist()}


def _binomial(n: int, right: int) -> float:
    return math.comb(n, right) * HONEST**right * (1.0 - HONEST) ** (n - right)


def _win(twice_right: int, voters: int) -> float:
    """Probability that the majority is right; a vote without voters is a tie."""
    return 1.0 if twice_right > voters else 0.5 if twice_right == voters else 0.0


def _coin(
    graph: CandidateGraph, value: Callable[[Tensor], Tensor]
) -> Callable[[EdgeSample, torch.Generator], Outcome]:
    def evaluate(sample: EdgeSample, draw: torch.Generator) -> Outcome:
        chance = float(value(graph.mask([sample.edges])))
        return Outcome(float(float(torch.rand(1, generator=draw)) < chance), {})

    return evaluate
