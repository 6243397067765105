"""Learns which agents have to send messages to the acting agent, from success minus a price on
tokens.

One distribution over graphs is learned for each acting app, with the acting agent as its decision:
edges that do not lead to it are dropped. Every agent's screen shows which app acts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import torch

from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.experiment.split_facts import SplitTeams, tokens
from swarm_ui.graph.topology import Edge
from swarm_ui.optim.edges.candidate_graph import EdgeSample
from swarm_ui.optim.edges.cost_limit import CostLimit
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optimizer import EdgeOptimizer
from swarm_ui.rollout.episodes import Job, rollout_many

AGENTS = 10
Tried = tuple[Job, EdgeSample]
Played = tuple[float | None, float]
"""Success (``None``: masked) and tokens of an episode."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of edge learning. They were chosen in a simulation without agents, in which an
    episode succeeds if all needed edges are there."""

    steps: int = 40
    """In each step, every training template is played once with every sampled graph."""
    graphs: int = 8
    """Graphs that are tried on each task and seed, so that its difficulty cancels."""
    lr: float = 1.0
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
    seconds: float
    """CPU time."""


class _App:
    """The distribution of one acting app, and its learner."""

    def __init__(self, app: str, plan: Plan) -> None:
        self.edges = EdgeDistribution(SPLIT_APPS, decision=app)
        self.learner = EdgeOptimizer(self.edges, lr=plan.lr)


def learn(plan: Plan, seed: int, *, progress: Callable[[int], None] | None = None) -> Learned:
    """Learn one graph for each acting app on training templates and training parameters.

    Args:
        plan: the settings.
        seed: decides the episodes and the sampled graphs.
        progress: called with the number of finished steps.
    """
    began = time.process_time()
    phone, names = SplitPhone(agents=AGENTS), split_tasks("train")
    teams = SplitTeams(phone)
    apps = {app: _App(app, plan) for app in sorted({phone.spec(name).acting for name in names})}
    limit = CostLimit(plan.limit, lr=plan.cost_lr)
    generator = torch.Generator().manual_seed(seed)
    jobs = draw_jobs(names, plan.steps * len(names), 1000 + seed, seeds=TRAIN_SEEDS)
    success, spent = [], []
    for step in range(plan.steps):
        batch = jobs[step * len(names) : (step + 1) * len(names)]
        tried = {app: _drawn(phone, app, one.edges, batch, plan, generator)
                 for app, one in apps.items()}  # fmt: skip
        played = asyncio.run(_play(teams, [pair for pairs in tried.values() for pair in pairs]))
        rewards, costs = [reward for reward, _ in played], [cost for _, cost in played]
        charged = iter(limit.charge(rewards, costs))
        for app, pairs in tried.items():
            utilities = [next(charged) for _ in pairs]
            samples, groups = [sample for _, sample in pairs], [job for job, _ in pairs]
            apps[app].learner.step(samples, utilities, groups=groups)
        known = [reward for reward in rewards if reward is not None]
        success.append(round(sum(known) / max(1, len(known)), 4))
        spent.append(round(sum(costs) / len(costs), 1))
        if progress is not None:
            progress(step + 1)
    return Learned(
        seed=seed,
        edges={app: one.edges.mode().edges for app, one in apps.items()},
        success=tuple(success),
        tokens=tuple(spent),
        price=limit.price,
        seconds=time.process_time() - began,
    )


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


async def _play(teams: SplitTeams, tried: Sequence[Tried]) -> list[Played]:
    make = partial(SplitPhone, agents=AGENTS)

    async def one(job: Job, sample: EdgeSample) -> Played:
        policy = teams.policy("learning", lambda task, seed: sample.edges)
        (episode,) = await rollout_many(make, policy, [job])
        value = None if episode.success is None else float(episode.success)
        return value, float(tokens(episode))

    return [await one(job, sample) for job, sample in tried]
