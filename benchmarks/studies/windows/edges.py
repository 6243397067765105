"""Learning the edges of a team with windows from episode success alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import msgspec
import torch

from benchmarks.studies.windows.agent import MEMORY
from benchmarks.studies.windows.arms import NAMES, WindowArm, tuning_jobs
from benchmarks.studies.windows.long_phone import LongPhone
from benchmarks.support.edge_learners.score_function import ScoreFunction
from benchmarks.support.edge_learners.thompson_edges import ThompsonEdges
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.model import ChatModel
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.rollout import GraphPolicy, Job, rollout_many
from swarm_ui.stats import outcomes

BUDGET = 800
"""Episodes that one run of edge learning may play."""
GRAPHS = 4
"""Graphs tried on each task and seed, so that its difficulty cancels."""
BATCH = 80
_NOISE = 0.5
"""Standard deviation of the success of one episode around the mean success of its graph."""
Method = Literal["thompson", "score"]
METHODS: dict[Method, str] = {"thompson": "Thompson", "score": "score function"}


class LearnedEdges(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run of edge learning."""

    method: Method
    seed: int
    edges: tuple[Edge, ...]
    episodes: int
    success: tuple[float, ...]
    """Mean success of each batch, while learning."""
    chances: dict[str, float]
    """Probability of each edge at the end."""
    seconds: float
    """CPU time."""


def learned_name(method: Method, seed: int) -> str:
    """The name of the arm of a learned graph."""
    return f"learned-{method}-{seed}"


def learn(
    model: ChatModel,
    method: Method,
    seed: int,
    *,
    budget: int = BUDGET,
    progress: Callable[[int], None] | None = None,
) -> LearnedEdges:
    """Learn a graph on tuning episodes.

    Args:
        budget: episodes, a multiple of ``BATCH``.
        progress: called with the number of played episodes.
    """
    began = time.process_time()
    edges: EdgeDistribution | ThompsonEdges
    learner: ScoreFunction | ThompsonEdges
    if method == "thompson":
        edges = learner = ThompsonEdges(NAMES, noise=_NOISE)
    else:
        edges = EdgeDistribution(NAMES)
        learner = ScoreFunction(edges, normalise=True)
    generator = torch.Generator().manual_seed(seed)
    jobs = tuning_jobs(budget // GRAPHS, seed + 1)
    team = WindowArm(name="learning", label="learning").graph(model)
    success: list[float] = []
    each = BATCH // GRAPHS
    for at in range(0, len(jobs), each):
        batch = jobs[at : at + each]
        samples = edges.sample(len(batch) * GRAPHS, generator)
        sets = [samples[g * len(batch) : (g + 1) * len(batch)] for g in range(GRAPHS)]
        utilities = asyncio.run(_try(model, team, batch, sets))
        learner.step(samples, utilities, groups=[job for _ in range(GRAPHS) for job in batch])
        known = [value for value in utilities if value is not None]
        success.append(sum(known) / max(1, len(known)))
        if progress is not None:
            progress((at + len(batch)) * GRAPHS)
    return LearnedEdges(
        method=method,
        seed=seed,
        edges=edges.mode().edges,
        episodes=len(jobs) * GRAPHS,
        success=tuple(success),
        chances={f"{a} -> {b}": round(p, 4) for (a, b), p in edges.marginals().items()},
        seconds=time.process_time() - began,
    )


async def _try(
    model: ChatModel, team: CollabGraph, jobs: Sequence[Job], sets: Sequence[Sequence[EdgeSample]]
) -> list[float | None]:
    """Success of each graph on its episode; the episodes are played concurrently."""
    make = partial(LongPhone, memory=MEMORY)

    async def play(samples: Sequence[EdgeSample]) -> list[float | None]:
        graphs = {job: team.with_edges(s.edges) for job, s in zip(jobs, samples, strict=True)}
        policy = GraphPolicy(lambda task, seed: (graphs[task, seed], None), name="learning")
        episodes = await rollout_many(make, policy, jobs, concurrency=len(jobs))
        return [o.value for o in outcomes(episodes)]

    found = await asyncio.gather(*(play(samples) for samples in sets))
    return [value for values in found for value in values]
