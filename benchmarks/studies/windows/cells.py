"""Stage 2 of a team whose agents each see a window: training cells, and policies for their test.

All cells start from one window agent that was trained without edges
(:meth:`~benchmarks.studies.windows.agent.WindowAgentConfig.without_edges`), and differ in the edges
of the rollouts and in the credit. There is no guidance and no adversary, so that the outcome arm
has no part of the solver.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from benchmarks.studies.weights import digest
from benchmarks.studies.windows.agent import WindowAgentConfig, long_phone, mix_of, pool
from benchmarks.studies.windows.arms import CONCURRENCY, DENSITY, NAMES, team
from benchmarks.studies.windows.held_out import SETS
from benchmarks.studies.windows.samples import WindowStream
from benchmarks.support.origin import commit
from demos.base_agent.screens import ActionSample
from demos.base_agent.stream import Stream
from swarm_ui.environments.phone import TRAIN_SEEDS, draw_jobs
from swarm_ui.graph.topology import Edge, random_dag
from swarm_ui.node import derive
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.nodes.models.tiny_agent.vocabulary import KNOWN_WORDS
from swarm_ui.optim.config import EdgeMode, TeamConfig, UpdateConfig
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.optim.edges.optim import ProbabilitySGD
from swarm_ui.optim.metrics import Metrics
from swarm_ui.optim.preferences import PairConfig, PreferencePair
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update import rehearsal
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode

EdgeArm = Literal["none", "redrawn", "random", "learned"]
CreditArm = Literal["critic", "outcome"]
_MODES: dict[EdgeArm, EdgeMode] = {
    "none": "fixed", "redrawn": "redraw", "random": "fixed", "learned": "learned",
}  # fmt: skip
_TEMPERATURE = 0.8


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of all cells. Those of edge learning were chosen in a simulation without agents."""

    iterations: int = 3
    shared_iterations: int = 3
    """All, because an agent alone has few examples: the agents end with equal adapters."""
    shared_steps: int = 40
    own_steps: int = 10
    """Gradient steps of each adapter in an iteration that trains one for each agent."""
    lr: float = 1e-3
    rehearsal: float = 0.5
    """Share of stage-1 samples in each update: windows without messages, with abstentions."""
    rehearsed: int = 3
    """Simulated episodes of each training template for these samples."""
    max_steps: int = 10
    """Longest rollout. A team that goes in circles would fill a batch with the same screens."""
    episodes: int = 48
    """Episodes of an iteration; if several graphs are drawn, the episodes are divided among
    them."""
    graphs: int = 3
    """Graphs of an iteration, where edges are drawn."""
    edge_lr: float = 0.4
    edge_credit_weight: float = 2.0
    abstentions: float = 0.25
    """Share of the right abstentions that are learned from, as in stage 1."""
    each: int = 3
    """Test episodes of each template."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One trained team. Its adapters are beside it."""

    edges: EdgeArm
    credit: CreditArm
    seed: int
    graph: tuple[Edge, ...]
    """The edges of the test; empty if they are redrawn for each episode."""
    rollouts: tuple[float | None, ...]
    """Success of each iteration's rollouts."""
    sources: dict[str, int]
    """Examples by source, over all iterations."""
    probabilities: dict[str, float]
    """Probability of each edge at the end, if they are learned."""
    steps: int
    """Gradient steps, of all adapters."""
    episodes: int
    calls: int
    tokens: int
    """Of prompts and replies, in the rollouts."""
    digest: str
    """Digest of the adapters."""
    seconds: float
    """CPU time."""
    commit: str = ""
    """Commit of the source that trained the team."""

    @property
    def arm(self) -> str:
        return arm_name(self.edges, self.credit)


class Trained(NamedTuple):
    """A cell with its model, which holds the adapters."""

    cell: Cell
    model: LocalModel


class WindowRehearsal:
    """Draws the samples of the window agent's stage 1, for ``rehearsal``."""

    def __init__(self, episodes: int) -> None:
        """``episodes``: simulated episodes of each training template."""
        self._config = replace(WindowAgentConfig.without_edges(0), episodes=episodes)
        self._screens = pool(self._config)

    def __call__(self, count: int, rng: random.Random) -> Sequence[PreferencePair]:
        """``count`` pairs without a rejected side."""
        others = Stream(rng.getrandbits(31), KNOWN_WORDS, mix_of(self._config))
        stream = WindowStream(rng.getrandbits(31), self._screens, others, self._config.windows)
        drawn = [stream.draw(questions=0.0) for _ in range(count)]
        return [
            PreferencePair(
                node="", decision=sample.decision, chosen=sample.action, rejected=None,
                chosen_text=sample.action.json(), source="rehearsal",
            )
            for sample in drawn
            if isinstance(sample, ActionSample)
        ]  # fmt: skip


class Spent:
    """Calls and tokens of episodes."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0

    def add(self, episodes: Iterable[Episode]) -> None:
        """Count the calls of models in these episodes."""
        for trace in (step.trace for episode in episodes for step in episode.steps):
            for call in trace.calls:
                used = call.usage.prompt_tokens + call.usage.completion_tokens
                self.calls += used > 0
                self.tokens += used


def arm_name(edges: EdgeArm, credit: CreditArm) -> str:
    """Name of an arm in tables and files."""
    return f"{edges}-{credit}"


def own_graph(seed: int) -> tuple[Edge, ...]:
    """The random graph of a seed, for the arm with one random graph."""
    return random_dag(NAMES, DENSITY, random.Random(derive(seed, "window team")))


def train(plan: Plan, edges: EdgeArm, credit: CreditArm, seed: int, agent: Path) -> Trained:
    """Train one team.

    Args:
        plan: the settings of all cells.
        edges: the edges of the rollouts.
        credit: the scripted critic, which knows the solution, or the outcome of each episode.
        seed: of episodes, sampling, edges and adapters.
        agent: folder of the window agent.
    """
    began = time.process_time()
    model = LocalModel.load(agent)
    given = own_graph(seed) if edges == "random" else ()
    critic = ScriptedCritic(long_phone, abstentions=True) if credit == "critic" else None
    config = team_config(plan, edges, seed)
    if critic is None:
        config = replace(config, edge_credit=0.0)
    spent = Spent()
    trainer = TeamTrainer(
        team(model, given, temperature=_TEMPERATURE, trained=False),
        long_phone,
        training_jobs,
        config=config,
        critic=critic,
    )
    trainer.rehearse = rehearsal(WindowRehearsal(plan.rehearsed), plan.rehearsal)
    trainer.edge_optimizer = ProbabilitySGD(trainer.edges, lr=plan.edge_lr)
    trainer.max_steps = plan.max_steps
    trainer.on_episodes = lambda _, episodes: spent.add(episodes)
    result = asyncio.run(trainer.run())
    graph = result.edges.mode().edges if edges == "learned" else given
    chances = result.edges.marginals() if edges == "learned" else {}
    cell = Cell(
        edges=edges,
        credit=credit,
        seed=seed,
        graph=tuple(graph),
        rollouts=tuple(metrics["success"] for metrics in result.history),
        sources=_sources(result.history),
        probabilities={f"{a}>{b}": round(p, 4) for (a, b), p in chances.items()},
        steps=sum(m["steps"] for m in result.history),
        episodes=sum(m["episodes"] for m in result.history),
        calls=spent.calls,
        tokens=spent.tokens,
        digest=digest(model, NAMES),
        seconds=round(time.process_time() - began, 1),
        commit=commit(),
    )
    return Trained(cell, model)


def team_config(plan: Plan, edges: EdgeArm, seed: int) -> TeamConfig:
    """The settings of a cell; arms differ only in the edges."""
    return TeamConfig(
        iterations=plan.iterations,
        shared_iterations=plan.shared_iterations,
        episodes=plan.episodes,
        concurrency=min(CONCURRENCY, plan.episodes),
        guide=0.0,
        edges=_MODES[edges],
        graphs=1 if _MODES[edges] == "fixed" else plan.graphs,
        edge_credit=plan.edge_credit_weight,
        shared_steps=plan.shared_steps,
        update=UpdateConfig(method="rft", steps=plan.own_steps, lr=plan.lr),
        pairs=PairConfig(abstentions=plan.abstentions),
        seed=seed,
    )


def training_jobs(count: int, /, *, seed: int) -> Sequence[Job]:
    """Training episodes: known templates with training parameters."""
    drawn = random.Random(seed).getrandbits(31)
    return draw_jobs(SETS["known"], count, drawn, seeds=TRAIN_SEEDS)


def _sources(history: Sequence[Metrics]) -> dict[str, int]:
    total: dict[str, int] = {}
    for metrics in history:
        for name, count in metrics.items():
            if name.startswith("sources/"):
                source = name.removeprefix("sources/")
                total[source] = total.get(source, 0) + count
    return dict(sorted(total.items()))
