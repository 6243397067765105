"""Learns which agents have to send messages to the acting agent, from success minus a price on
tokens.

One distribution over graphs is learned for each acting app, with the acting agent as its decision:
edges that do not lead to it are dropped. Every agent's screen shows which app acts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
import torch

from benchmarks.support.edge_learners.cost_limit import CostLimit
from benchmarks.support.edge_learners.score_function import ScoreFunction
from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import SplitTeams, tokens
from swarm_ui.graph.topology import Edge
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD
from swarm_ui.rollout import Job, rollout_many
from swarm_ui.trace.records import EdgeName, Episode

AGENTS = 10
Tried = tuple[Job, EdgeSample]
Graphs = Mapping[str, tuple[Edge, ...]]
"""The most probable graph, by acting app."""


class EdgeCredit(Protocol):
    """A source of credit for the edges of a sampled graph."""

    async def __call__(self, episode: Episode, sample: EdgeSample) -> Mapping[EdgeName, float]:
        """Credit of the sample's edges.

        Args:
            episode: played on the sampled graph.
            sample: the graph.
        """
        ...


class Played(NamedTuple):
    """One episode of learning."""

    success: float | None
    """``None``: masked."""
    tokens: float
    calls: int
    """Of agents."""
    credit: Mapping[EdgeName, float]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of edge learning. They were chosen in a simulation without agents, in which an
    episode succeeds if all needed edges are there."""

    steps: int = 40
    """In each step, every training template is played once with every sampled graph."""
    graphs: int = 8
    """Graphs that are tried on each task and seed, so that its difficulty cancels."""
    lr: float = 1.0
    normalise: bool = False
    """Whether utilities are divided by the standard deviation over the same task and seed."""
    credit_weight: float = 0.1
    """Weight of the credit of edges, where there is a source of it."""
    limit: float = 2600.0
    """Mean tokens of an episode above which the price of tokens rises."""
    cost_lr: float = 0.02

    @property
    def episodes(self) -> int:
        return self.steps * len(split_tasks("train")) * self.graphs


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run of edge learning."""

    seed: int
    edges: dict[str, tuple[Edge, ...]]
    """The most probable graph, by acting app."""
    success: tuple[float, ...]
    """Mean success of each step, while learning."""
    tokens: tuple[float, ...]
    """Mean tokens of an episode in each step."""
    price: float
    """Price of the token limit at the end."""
    calls: int = 0
    """Calls of agents in the episodes; 0 in records of older runs."""
    seconds: float
    """CPU time."""


class _App:
    """The distribution of one acting app, and its learner."""

    def __init__(self, app: str, plan: Plan) -> None:
        self.edges = EdgeDistribution(SPLIT_APPS, decision=app)
        self.learner = ScoreFunction(
            self.edges,
            ProbabilitySGD(self.edges, lr=plan.lr),
            normalise=plan.normalise,
            credit_weight=plan.credit_weight,
        )


def learn(
    plan: Plan,
    seed: int,
    *,
    credit: EdgeCredit | None = None,
    after: Callable[[int, Graphs], None] | None = None,
) -> Learned:
    """Learn one graph for each acting app on training templates and training parameters.

    Args:
        plan: the settings.
        seed: decides the episodes and the sampled graphs.
        credit: what edges learn from in addition to the outcome of an episode.
        after: called after each step, with the number of finished steps and the graphs so far.
    """
    began = time.process_time()
    phone, names = SplitPhone(agents=AGENTS), split_tasks("train")
    teams = SplitTeams(phone)
    apps = {app: _App(app, plan) for app in sorted({phone.spec(name).acting for name in names})}
    limit = CostLimit(plan.limit, lr=plan.cost_lr)
    generator = torch.Generator().manual_seed(seed)
    jobs = draw_jobs(names, plan.steps * len(names), 1000 + seed, seeds=TRAIN_SEEDS)
    success, spent, calls = [], [], 0
    for step in range(plan.steps):
        batch = jobs[step * len(names) : (step + 1) * len(names)]
        tried = {app: _drawn(phone, app, one.edges, batch, plan, generator)
                 for app, one in apps.items()}  # fmt: skip
        played = asyncio.run(_play(teams, [pair for pairs in tried.values() for pair in pairs],
                                   credit))  # fmt: skip
        rewards, costs = [one.success for one in played], [one.tokens for one in played]
        charged = iter(zip(limit.charge(rewards, costs), played, strict=True))
        for app, pairs in tried.items():
            own = [next(charged) for _ in pairs]
            apps[app].learner.step(
                [sample for _, sample in pairs],
                [utility for utility, _ in own],
                [one.credit for _, one in own] if credit else None,
                groups=[job for job, _ in pairs],
            )
        known = [reward for reward in rewards if reward is not None]
        success.append(round(sum(known) / max(1, len(known)), 4))
        spent.append(round(sum(costs) / len(costs), 1))
        calls += sum(one.calls for one in played)
        if after is not None:
            after(step + 1, _graphs(apps))
    return Learned(
        seed=seed,
        edges=dict(_graphs(apps)),
        success=tuple(success),
        tokens=tuple(spent),
        price=limit.price,
        calls=calls,
        seconds=time.process_time() - began,
    )


def _graphs(apps: Mapping[str, _App]) -> Graphs:
    return {app: one.edges.mode().edges for app, one in apps.items()}


def _drawn(
    phone: SplitPhone,
    app: str,
    edges: EdgeDistribution,
    batch: Sequence[Job],
    plan: Plan,
    generator: torch.Generator,
) -> list[Tried]:
    """The jobs of a batch that end in an app, each with a number of sampled graphs."""
    own = [job for job in batch if phone.spec(job[0]).acting == app for _ in range(plan.graphs)]
    return list(zip(own, edges.sample(len(own), generator), strict=True))


async def _play(
    teams: SplitTeams, tried: Sequence[Tried], credit: EdgeCredit | None
) -> list[Played]:
    make = partial(SplitPhone, agents=AGENTS)

    async def one(job: Job, sample: EdgeSample) -> Played:
        policy = teams.policy("learning", lambda task, seed: sample.edges)
        (episode,) = await rollout_many(make, policy, [job])
        return Played(
            success=None if episode.success is None else float(episode.success),
            tokens=float(tokens(episode)),
            calls=sum(len(step.trace.calls) for step in episode.steps),
            credit={} if credit is None else await credit(episode, sample),
        )

    return [await one(job, sample) for job, sample in tried]
