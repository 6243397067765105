"""Do messages and learned edges help scripted agents of which each sees one app?"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import torch

from benchmarks.arms import TEST_DRAW, calls_of
from benchmarks.cell import Cell
from benchmarks.study import Arm, Study
from benchmarks.support.origin import origin_here
from swarm_ui.agent_view import Pane
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environments.phone import TEST_SEEDS, TRAIN_SEEDS
from swarm_ui.environments.phone.split import SPLIT_APPS, SplitPhone, split_tasks
from swarm_ui.environments.phone.split_agents import ScriptedAgents
from swarm_ui.node import derive
from swarm_ui.nodes import AgentNode
from swarm_ui.optim import EdgeDistribution, EdgeSample, ProbabilitySGD, edge_loss
from swarm_ui.rollout import GraphPolicy, Job, Policy, rollout_many, spread_jobs
from swarm_ui.stats import outcomes
from swarm_ui.topology import Edge, descendants, random_dag
from swarm_ui.trace.records import Episode

AGENTS, SIZES = 10, (4, 6, 8)
SENDERS, DENSITY = 3, 0.5
"""Of the controls with random edges: the senders, or the probability that two are joined."""
STEPS, GRAPHS, EACH = 40, 8, 12
"""Steps of learning; graphs that are tried on each episode, so that its difficulty cancels; test
episodes of each template. All settings were chosen in a simulation without agents."""
LIMIT, PRICE_RATE = 2600.0, 0.02
"""Mean tokens of an episode above which the price of tokens rises, and its learning rate."""
KNOWN: Mapping[str, str] = {"known templates": "train", "new templates": "new_templates"}
Tried = tuple[Job, EdgeSample]
Edges = Callable[[str, int], Iterable[Edge]]
"""``(task, seed) -> edges`` between apps."""


class SplitTeams:
    """Makes the team of an episode: one agent for each app, and the acting agent decides.

    An agent without a path to the acting agent is not called.
    """

    def __init__(self, phone: SplitPhone) -> None:
        """``phone`` names the apps of each episode."""
        self.phone, model = phone, ScriptedAgents()
        self._nodes = {app: AgentNode(app, model, view=Pane(name=app)) for app in SPLIT_APPS}
        self.one = CollabGraph.solo(model)
        """One agent that sees the whole screen."""

    def team(self, task: str, seed: int, edges: Iterable[Edge]) -> CollabGraph:
        """The team of this episode: the agents with a path to the acting agent, and the edges among
        them."""
        acting, present = self.phone.spec(task).acting, set(self.phone.team(task, seed))
        inside = [edge for edge in edges if present.issuperset(edge)]
        used = descendants([acting], [(listener, sender) for sender, listener in inside])
        nodes = [self._nodes[app] for app in SPLIT_APPS if app in used]
        joined = [edge for edge in inside if edge[1] in used]
        return CollabGraph(nodes, joined, output=acting)

    def policy(self, name: str, edges: Edges) -> GraphPolicy:
        """A team whose edges may depend on the episode."""
        return GraphPolicy(lambda task, seed: self.team(task, seed, edges(task, seed)), name=name)

    def broadcast(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges from every agent to every later one; the acting agent is the last."""
        acting = self.phone.spec(task).acting
        order = [*(app for app in SPLIT_APPS if app != acting), acting]
        return [(a, b) for k, b in enumerate(order) for a in order[:k]]

    def star(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges from every other agent to the acting one."""
        acting = self.phone.spec(task).acting
        return [(app, acting) for app in SPLIT_APPS if app != acting]

    def random(self, task: str, seed: int) -> Sequence[Edge]:
        """Random edges, drawn again for each episode."""
        return random_dag(SPLIT_APPS, DENSITY, random.Random(derive(seed, "split", task)))

    def oracle(self, task: str, seed: int) -> Sequence[Edge]:
        """Edges to the acting agent from only those agents whose facts the task needs."""
        spec = self.phone.spec(task)
        return [(app, spec.acting) for app in spec.sources]


def tokens(episode: Episode) -> int:
    """Tokens of all prompts and replies; with :class:`ScriptedAgents` their words."""
    used = [call.usage for step in episode.steps for call in step.trace.calls]
    return sum(usage.prompt_tokens + usage.completion_tokens for usage in used)


def played(
    arm: str, policies: Iterable[tuple[str, str, int, Policy]], *, quick: bool,
    seed: int | None = None, training: Mapping[str, float] | None = None,
) -> Cell:  # fmt: skip
    """The cell of an arm; ``policies``: split, templates, number of agents, and the policy."""
    found, work = {}, dict[str, Mapping[str, float]]()
    for split, templates, agents, policy in policies:
        names = split_tasks(templates)  # type: ignore[arg-type]
        jobs = spread_jobs(names, EACH * len(names), TEST_DRAW, TEST_SEEDS)
        make = partial(SplitPhone, agents=agents)
        chosen = jobs[: 4 if quick else None]
        episodes = asyncio.run(rollout_many(make, policy, chosen, concurrency=64))
        found[split] = outcomes(episodes, seed or 0)
        work[split] = {"tokens": fmean(map(tokens, episodes))}
    if training is not None:
        work["training"] = training
    return Cell(arm=arm, seed=seed, outcomes=found, work=work, origin=origin_here())


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """A team in which nothing is learned, or one agent."""

    edges: Callable[[SplitTeams], Edges] | None = None
    """``None``: one agent."""
    sized: bool = False
    """Whether it is also played with other numbers of agents."""
    seeded: bool = False

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        places = [(split, templates, AGENTS) for split, templates in KNOWN.items()]
        places += [(f"known templates, {n} agents", "train", n) for n in SIZES if self.sized]
        policies = [(*place, self._policy(place[2])) for place in places]
        yield played(name, policies, quick=quick)

    def _policy(self, agents: int) -> Policy:
        teams = SplitTeams(SplitPhone(agents=agents))
        if self.edges is None:
            return GraphPolicy(teams.one)
        return teams.policy("fixed", self.edges(teams))


def few(teams: SplitTeams) -> Edges:
    """A few random senders to the acting agent."""

    def edges(task: str, seed: int) -> Sequence[Edge]:
        acting = teams.phone.spec(task).acting
        others = [app for app in SPLIT_APPS if app != acting]
        chosen = random.Random(derive(seed, "few", task)).sample(others, SENDERS)
        return [(app, acting) for app in chosen]

    return edges


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Edges that are learned from success minus a price on tokens, a graph for each acting app."""

    seeded: bool = True

    def play(self, name: str, seed: int | None, *, quick: bool, folder: Path) -> Iterable[Cell]:
        """See :class:`benchmarks.study.Arm`."""
        assert seed is not None
        began = time.process_time()
        graphs, calls = learned(seed, 2 if quick else STEPS, 2 if quick else GRAPHS)
        work = {"cpu_s": round(time.process_time() - began, 1), "calls": calls}
        teams = SplitTeams(SplitPhone(agents=AGENTS))
        policy = teams.policy("learned", lambda task, seed: graphs[teams.phone.spec(task).acting])
        places = [(split, templates, AGENTS, policy) for split, templates in KNOWN.items()]
        yield played(name, places, quick=quick, seed=seed, training=work)


def learned(seed: int, steps: int, graphs: int) -> tuple[dict[str, Sequence[Edge]], int]:
    """The most probable graph of each acting app, and the calls of the agents."""
    phone, names = SplitPhone(agents=AGENTS), split_tasks("train")
    teams = SplitTeams(phone)
    acting = sorted({phone.spec(name).acting for name in names})
    edges = {app: EdgeDistribution(SPLIT_APPS, decision=app) for app in acting}
    optimizers = {app: ProbabilitySGD(edges[app], lr=1.0) for app in acting}
    generator, price, calls = torch.Generator().manual_seed(seed), 0.0, 0
    jobs = spread_jobs(names, steps * len(names), 1000 + seed, TRAIN_SEEDS)
    for at in range(0, len(jobs), len(names)):
        tried: dict[str, list[Tried]] = {}
        for app in acting:
            own = [job for job in jobs[at : at + len(names)] if phone.spec(job[0]).acting == app]
            many = [job for job in own for _ in range(graphs)]
            tried[app] = list(zip(many, edges[app].sample(len(many), generator), strict=True))
        every = [pair for pairs in tried.values() for pair in pairs]
        results = asyncio.run(_play(teams, every))
        calls += sum(each for *_, each in results)
        charged = iter([success - price * spent / LIMIT for success, spent, _ in results])
        for app, pairs in tried.items():
            optimizers[app].zero_grad()
            edge_loss(
                edges[app],
                [sample for _, sample in pairs],
                [next(charged) for _ in pairs],
                normalise=False,
                groups=[job for job, _ in pairs],
            ).backward()  # type: ignore[no-untyped-call]
            optimizers[app].step()
        excess = fmean(spent for _, spent, _ in results) / LIMIT - 1.0
        price = max(0.0, price + PRICE_RATE * excess)
    return {app: edges[app].mode().edges for app in acting}, calls


async def _play(teams: SplitTeams, tried: Sequence[Tried]) -> list[tuple[float, float, int]]:
    """Success, tokens and calls of each episode on its graph."""
    found = []
    for (task, seed), sample in tried:
        policy = teams.policy("learning", lambda task, seed, edges=sample.edges: edges)  # type: ignore[misc]
        make = partial(SplitPhone, agents=AGENTS)
        (episode,) = await rollout_many(make, policy, [(task, seed)])
        found.append((float(bool(episode.success)), float(tokens(episode)), calls_of([episode])))
    return found


ARMS: Mapping[str, Arm] = {
    "no talk": Fixed(edges=lambda teams: lambda task, seed: ()),
    "broadcast": Fixed(edges=lambda teams: teams.broadcast, sized=True),
    "all to the acting agent": Fixed(edges=lambda teams: teams.star),
    "random DAG": Fixed(edges=lambda teams: teams.random),
    "3 random senders": Fixed(edges=few),
    "oracle router": Fixed(edges=lambda teams: teams.oracle, sized=True),
    "one agent, all screens": Fixed(),
    "learned edges": Learned(),
}

STUDY = Study(
    arms=ARMS,
    named=(
        ("broadcast", "no talk"), ("learned edges", "broadcast"),
        ("learned edges", "3 random senders"),
    ),
    named_on=("known templates", "new templates"),
    seeds=(0, 1, 2, 3, 4),
    note="Scripted agents on a simulated phone: no evidence about language models.",
)  # fmt: skip
