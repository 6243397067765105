"""Small worlds in which it is known which edges pay: what the edge learners are tried on.

A family has agents, perhaps a decision node, candidate edges, and an expected utility of every
graph; an evaluation is one success or failure. ``credit`` is what a critic of single messages
would say.

- *vote*: ten agents may be heard by the decision, which takes the majority (ties: a coin). Honest
  ones are right with 0.8, each by itself; k adversaries always give the one wrong answer.
- *xor*: ten edges in five pairs; each pair pays a fifth if just one of its two edges is there.
- *needle*: twenty edges; success with 0.9 if four of them are there and two others are not, else
  with 0.1; fourteen do nothing.
- *influence*: eight agents, any DAG among them, k adversaries. An honest agent starts from an own
  answer, right with 0.7, and says the majority of it and what it hears (ties: its own). Adversaries
  always say the wrong one. All eight vote, ties by a coin: so the honest must agree.

Which agents are adversaries, and which edges are the needle's, is drawn from the instance's seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from swarm_ui.optim.edges.candidate_graph import CandidateGraph, EdgeSample

HONEST = 0.8
OWN = 0.7


class Outcome(NamedTuple):
    """What came of one evaluation."""

    utility: float
    right: dict[str, bool]
    """Whether each agent's message was right; empty where messages are not scored."""


class Family(NamedTuple):
    """One instance of a family."""

    graph: CandidateGraph
    value: Callable[[Tensor], Tensor]
    """Expected utility of graphs ``[B, E]`` (bool, acyclic), ``[B]``."""
    optimum: float
    evaluate: Callable[[EdgeSample, torch.Generator], Outcome]
    """One evaluation; graphs tried with equal generator states are tried on the same task."""
    scored: bool
    """Whether single messages can be scored."""


def vote(adversaries: int, seed: int, agents: int = 10) -> Family:
    """See the module."""
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

    return Family(graph, value, float(table[: agents - adversaries + 1, 0].max()), evaluate, True)


def xor(seed: int) -> Family:
    """See the module."""
    graph = _star(10)
    mixed = torch.randperm(10, generator=torch.Generator().manual_seed(seed))

    def value(chosen: Tensor) -> Tensor:
        pairs = chosen[:, mixed].view(-1, 5, 2)
        return (pairs[..., 0] != pairs[..., 1]).float().mean(1)

    return Family(graph, value, 1.0, _coin(graph, value), False)


def needle(seed: int) -> Family:
    """See the module."""
    graph = _star(20)
    mixed = torch.randperm(20, generator=torch.Generator().manual_seed(seed))

    def value(chosen: Tensor) -> Tensor:
        hit = chosen[:, mixed[:4]].all(1) & ~chosen[:, mixed[4:6]].any(1)
        return 0.1 + 0.8 * hit.float()

    return Family(graph, value, 0.9, _coin(graph, value), False)


def influence(seed: int, agents: int = 8, adversaries: int = 3, tasks: int = 512) -> Family:
    """See the module. Values are means over fixed tasks. What counts as the optimum is the full DAG
    of the honest agents; some sparser ones do a tenth better."""
    names = [f"a{k}" for k in range(agents)]
    graph, bad = CandidateGraph(names), _drawn(agents, adversaries, seed)
    honest = torch.tensor([name not in bad for name in graph.names])
    draw = torch.Generator().manual_seed(10_000 + seed)
    private = (torch.rand(tasks, agents, generator=draw) < OWN) & honest

    def said(chosen: Tensor, own: Tensor) -> Tensor:
        """Who is right: graphs ``[B, E]`` and own answers ``[T, n]`` to ``[B, T, n]`` (0 or 1)."""
        heard = torch.zeros(len(chosen), agents, agents)
        heard[:, graph.senders, graph.listeners] = chosen.float()
        voices, answers = heard.sum(1)[:, None], own.float()
        right = answers.expand(len(chosen), -1, -1)
        # After k rounds, all are right or wrong for good whom no path longer than k reaches.
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
    return Family(graph, value, float(value(full)), evaluate, True)


FAMILIES: dict[str, Callable[[int], Family]] = {
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
    """Chance that the majority is right; nobody is a tie."""
    return 1.0 if twice_right > voters else 0.5 if twice_right == voters else 0.0


def _coin(
    graph: CandidateGraph, value: Callable[[Tensor], Tensor]
) -> Callable[[EdgeSample, torch.Generator], Outcome]:
    def evaluate(sample: EdgeSample, draw: torch.Generator) -> Outcome:
        chance = float(value(graph.mask([sample.edges])))
        return Outcome(float(float(torch.rand(1, generator=draw)) < chance), {})

    return evaluate
