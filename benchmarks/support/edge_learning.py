"""Number of evaluations that each edge learner needs on the families of edge_families.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple, Protocol

import torch

from benchmarks.support.edge_families import FAMILIES, Family, Outcome
from benchmarks.support.edge_learners.score_function import GPTSwarmRule, ScoreFunction
from benchmarks.support.edge_learners.sequential_edges import SequentialEdges
from benchmarks.support.edge_learners.thompson_edges import ThompsonEdges
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution

EVERY = 16
"""Evaluations between two looks."""
HOLD = 6
"""Number of consecutive checks at which the 95 % criterion must hold."""
GOOD = 0.95


class Source(Protocol):
    """The distribution that is measured."""

    def sample(self, batch: int, generator: torch.Generator) -> list[EdgeSample]: ...

    def mode(self) -> EdgeSample: ...


Learner = ScoreFunction | GPTSwarmRule | ThompsonEdges


class Method(NamedTuple):
    """An edge learner with its settings."""

    make: Callable[[Family], tuple[Source, Learner]]
    batch: int
    same_task: bool
    """Whether all graphs of a batch are evaluated on one task, and compared with each other."""
    credit: bool = False


def _given(family: Family) -> dict[str, Any]:
    graph = family.graph
    return {"candidates": graph.edges, "decision": graph.decision}


def _gptswarm(baseline: Any) -> Method:
    def make(family: Family) -> tuple[Source, Learner]:
        edges = SequentialEdges(family.graph.names, **_given(family), sequence="listed")
        return edges, GPTSwarmRule(edges, baseline)

    return Method(make, 4, False)


def _posterior(family: Family) -> tuple[Source, Learner]:
    edges = ThompsonEdges(family.graph.names, **_given(family))
    return edges, edges


def _score(family: Family) -> tuple[Source, Learner]:
    edges = EdgeDistribution(family.graph.names, **_given(family))
    adam = torch.optim.Adam(edges.parameters(), lr=0.3)
    return edges, ScoreFunction(edges, adam, warmup=(0.15, 400))


def _score_credit(family: Family) -> tuple[Source, Learner]:
    edges = EdgeDistribution(family.graph.names, **_given(family))
    adam = torch.optim.Adam(edges.parameters(), lr=0.3)
    return edges, ScoreFunction(edges, adam, credit_weight=2.0)


METHODS = {
    "gptswarm_none": _gptswarm("none"),
    "gptswarm_half": _gptswarm("half"),
    "gptswarm_average": _gptswarm("average"),
    "score": Method(_score, 8, True),
    "posterior": Method(_posterior, 4, True),
    "score_credit": Method(_score_credit, 4, True, True),
    "posterior_credit": Method(_posterior, 4, True, True),
}
THEIRS = ("gptswarm_none", "gptswarm_half", "gptswarm_average")


class Reached(NamedTuple):
    """Evaluations until 95 % of the optimum; ``None``: not within the budget."""

    graph: int | None
    """Evaluations until the thresholded graph is good enough."""
    policy: int | None
    """Evaluations until the mean over sampled graphs is good enough."""


class _Watch:
    """Detects when a value first stayed above a threshold."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.looks = 0

    def look(self, good: bool, at: int) -> None:
        if self.looks >= HOLD:
            return
        if not good:
            self.since, self.looks = None, 0
            return
        self.since = at if self.since is None else self.since
        self.looks += 1

    @property
    def found(self) -> int | None:
        return self.since if self.looks >= HOLD else None


def learn(name: str, method: str, seed: int, budget: int) -> Reached:
    """One run of a learner on one instance."""
    family, how = FAMILIES[name](seed), METHODS[method]
    source, learner = how.make(family)
    draw = torch.Generator().manual_seed(seed)
    looks = torch.Generator().manual_seed(seed + 1)
    graph, policy = _Watch(), _Watch()
    draws = 32 if name == "influence" else 128
    for done in range(how.batch, budget + 1, how.batch):
        samples = source.sample(how.batch, draw)
        outcomes = _tried(family, samples, seed * 1_000_003 + done, how.same_task)
        learner.step(
            samples,
            [outcome.utility for outcome in outcomes],
            [_credit(s, o) for s, o in zip(samples, outcomes, strict=True)] if how.credit else None,
            groups=[done] * len(samples) if how.same_task else None,
        )
        if done % EVERY == 0:
            least = GOOD * family.optimum - 1e-6
            graph.look(_value(family, [source.mode()]) >= least, done)
            if policy.found is None:
                policy.look(_policy(family, source, draws, looks) >= least, done)
            if graph.found is not None and policy.found is not None:
                break
    return Reached(graph.found, policy.found)


def _tried(family: Family, samples: Sequence[EdgeSample], seed: int, same: bool) -> list[Outcome]:
    return [
        family.evaluate(sample, torch.Generator().manual_seed(seed + (0 if same else 7919 * k)))
        for k, sample in enumerate(samples)
    ]


def _credit(sample: EdgeSample, outcome: Outcome) -> dict[tuple[str, str], float]:
    """Advantage of the message that each edge carried."""
    return {edge: float(outcome.right[edge[0]]) - 0.5 for edge in sample.edges}


def _value(family: Family, samples: Sequence[EdgeSample]) -> float:
    return float(family.value(family.graph.mask([s.edges for s in samples])).mean())


def _policy(family: Family, source: Source, draws: int, draw: torch.Generator) -> float:
    """Mean value of sampled graphs."""
    if isinstance(source, EdgeDistribution | SequentialEdges):  # no records
        return float(family.value(source.draw(draws, draw).chosen).mean())
    return _value(family, source.sample(draws, draw))


def applies(family: str, method: str) -> bool:
    """Whether a method can be used: credit needs a family whose messages can be scored."""
    return not METHODS[method].credit or family not in ("xor", "needle")


def summary(runs: Sequence[Reached], budget: int) -> dict[str, Any]:
    """Means with standard errors. A run that did not reach the threshold counts as the budget, so
    the mean is then a lower bound, and ``reached`` is below 1."""
    out: dict[str, Any] = {}
    for what in ("graph", "policy"):
        found = [getattr(run, what) for run in runs]
        values = [budget if f is None else f for f in found]
        error = stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
        out[what] = {
            "mean": round(fmean(values), 1),
            "se": round(error, 1),
            "reached": round(sum(f is not None for f in found) / len(found), 3),
        }
    return out
