"""Plays the episodes of a training iteration and gives their messages credit."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch

from swarm_ui.credit import Credit, Critic, credited
from swarm_ui.engine.scheduler import together
from swarm_ui.errors import Failure, ModelUnavailable
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim.config import GUIDE, TeamConfig
from swarm_ui.optim.credit.critic import credit_of, judge_of, name_of
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.metrics import GraphMetrics, decision_credit, success_rate
from swarm_ui.optim.retry import FIRST_PAUSE, LONGEST_PAUSE, Played, play_with_retries
from swarm_ui.optim.rollout_actors import RolloutActors
from swarm_ui.optim.rollout_supervisor import Guidance, RolloutSupervisor
from swarm_ui.optim.training_progress import ProgressReporter
from swarm_ui.rollout import GraphPolicy, Job, MakeEnvironment, rollout_many
from swarm_ui.trace.records import EdgeName, Episode

SampleJobs = Callable[[int, int, random.Random], Sequence[Job]]
"""``(iteration, count, rng) -> jobs``: the training episodes of an iteration."""


_NAME = "training team"


class PlannedRollout(NamedTuple):
    """The episodes of one graph before they are played."""

    iteration: int
    sample: EdgeSample | None
    """``None``: the edges were not drawn."""
    jobs: list[Job]
    policy: GraphPolicy
    supervisor: RolloutSupervisor


class GraphRollout(NamedTuple):
    """The episodes that were played with one graph."""

    edges: tuple[EdgeName, ...]
    sample: EdgeSample | None
    """``None``: the edges were not drawn."""
    episodes: list[Episode]
    supervisor: RolloutSupervisor
    """Holds the adversary's negatives."""
    replayed: int
    """Episodes that were played again because a model could not be reached."""

    def metrics(self) -> GraphMetrics:
        """The metrics of the episodes that were played with this graph."""
        return GraphMetrics(
            edges=self.edges,
            log_prob=None if self.sample is None else self.sample.log_prob,
            success=success_rate(self.episodes),
            right=decision_credit(self.episodes),
        )


class Collector:
    """Draws graphs, plays their episodes with guidance, and gives them credit."""

    def __init__(
        self,
        graph: CollabGraph,
        environments: MakeEnvironment | RolloutActors,
        sample_jobs: SampleJobs,
        config: TeamConfig,
        critic: Critic | None = None,
        guidance: Guidance | None = None,
        on_warning: Callable[[str], None] = lambda _: None,
    ) -> None:
        """See :class:`~swarm_ui.optim.trainer.TeamTrainer` for all arguments."""
        self._graph, self._config = graph, config
        self._environments, self._sample_jobs = environments, sample_jobs
        self._critic = critic or Outcome(abstentions=config.pairs.abstentions > 0)
        self._judge, self._adversary, self._teacher = guidance or Guidance()
        self._on_warning = on_warning
        self.trust = critic if isinstance(critic, Trust) else None
        """The critic, if its weight is learned."""

    def plan(self, iteration: int, edges: EdgeDistribution) -> list[PlannedRollout]:
        """Plan the rollouts of an iteration with the present weights, edges and trust in the
        critic.

        Graphs are drawn from ``edges``, unless the edges are fixed. If other processes play, the
        current weights are published.
        """
        samples, team = self._draw(iteration, edges), self._graph
        if isinstance(self._environments, RolloutActors):
            team = _at_versions(team, self._environments.publisher.publish())
        shares = self._shares(iteration, len(samples))
        return [
            PlannedRollout(
                iteration, sample, jobs, _policy(team, sample), self._supervisor(iteration, number)
            )
            for number, (sample, jobs) in enumerate(zip(samples, shares, strict=True))
        ]

    async def play(
        self,
        plan: Sequence[PlannedRollout],
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[GraphRollout]:
        """Play the rollouts of an iteration; their credit is not yet final.

        All graphs are played at once, in this process each with an equal share of the concurrent
        episodes.

        ``on_progress`` gets (episodes done, episodes in all). Raises ``ModelError`` as
        :func:`~swarm_ui.optim.retry.play_with_retries` does.
        """
        total, done = sum(len(planned.jobs) for planned in plan), [0] * len(plan)
        places = max(1, self._config.concurrency // len(plan))
        free = asyncio.Semaphore(
            len(plan) if self.elsewhere else self._config.concurrency // places
        )

        async def play(number: int, planned: PlannedRollout) -> GraphRollout:
            def count(finished: int) -> None:
                done[number] = finished
                on_progress(sum(done), total)

            async with free:
                played = await self._play(planned, places, count)
            sample = planned.sample
            edges = self._graph.communication_edges if sample is None else sample.edges
            return GraphRollout(edges, sample, played.episodes, planned.supervisor, played.again)

        return await together([play(k, planned) for k, planned in enumerate(plan)])

    @property
    def elsewhere(self) -> bool:
        """Whether episodes are played in other processes."""
        return isinstance(self._environments, RolloutActors)

    @property
    def credit_source(self) -> str:
        """Name of the source of the credit."""
        return name_of(self._critic)

    @property
    def critic_weights(self) -> tuple[float, ...] | None:
        """The critic's weight in each round, or ``None`` if it is not learned."""
        if self.trust is None:
            return None
        return tuple(self.trust.weight(k) for k in range(self._graph.rounds))

    def _draw(self, iteration: int, edges: EdgeDistribution) -> list[EdgeSample | None]:
        """The graphs of an iteration. ``None`` in the list stands for the team's own edges."""
        if self._config.edges == "fixed":
            return [None]
        draw = torch.Generator().manual_seed(derive(self._config.seed, "edges", iteration))
        return list(edges.sample(self._config.drawn_graphs, draw))

    def _shares(self, iteration: int, graphs: int) -> list[list[Job]]:
        """The episodes of each graph.

        If edges are learned, all graphs play the same tasks and seeds, so that the graphs can be
        compared. Otherwise each graph plays different ones.
        """
        rng = random.Random(derive(self._config.seed, "jobs", iteration))
        if self._config.edges == "learned":
            each = max(1, self._config.episodes // graphs)
            return [list(self._sample_jobs(iteration, each, rng))] * graphs
        jobs = list(self._sample_jobs(iteration, self._config.episodes, rng))
        return [jobs[k::graphs] for k in range(graphs)]

    def _supervisor(self, iteration: int, number: int) -> RolloutSupervisor:
        """The supervisor that guides the episodes of one graph; each graph has its own seed."""
        return RolloutSupervisor(
            self._judge,
            self._adversary,
            teacher=self._teacher,
            guide=self._guide,
            grade_negatives=self._config.grade_negatives,
            trust=self._guidance_trust(),
            # The word is part of the seed: changing it would change every seeded run.
            seed=derive(self._config.seed, "referee", iteration, number),
            thresholds=self._config.pairs,
        )

    async def _play(
        self, planned: PlannedRollout, places: int, count: Callable[[int], None]
    ) -> Played:
        """The episodes of one graph, in this process up to ``places`` at the same time. Episodes in
        which a model was unreachable are played again."""
        iteration, jobs = planned.iteration, planned.jobs
        actors = self._environments

        async def play(some: Sequence[Job]) -> list[Episode]:
            if isinstance(actors, RolloutActors):
                try:
                    await actors.publisher.prepare()
                except ModelUnavailable as error:
                    return [_unplayed(job, error) for job in some]
            episodes = await rollout_many(
                actors.rollouts if isinstance(actors, RolloutActors) else actors,
                planned.policy,
                some,
                concurrency=places,
                progress=(lambda done, _, __: count(done)) if some is jobs else None,
                intervention=planned.supervisor,
                max_steps=self._config.max_steps,
            )
            planned.supervisor.keep_notes(episodes)
            return episodes

        return await play_with_retries(
            play,
            jobs,
            patience=self._config.patience,
            on_wait=lambda text: self._on_warning(f"iteration {iteration + 1}: {text}"),
        )

    @property
    def _guide(self) -> float:
        """The configured probability of guidance, before it is multiplied by the trust in the
        critic."""
        default = 0.0 if self._judge is None else GUIDE
        return default if self._config.guide is None else self._config.guide

    def _guidance_trust(self) -> float:
        """The factor by which the probability of guidance is multiplied.

        It is the critic's weight in the last round, because the vote decides on the proposals of
        that round.
        """
        if self.trust is None or self._judge is not judge_of(self.trust):
            return 1.0
        return max(0.0, self.trust.weight(self._graph.rounds - 1))

    async def settle(self, rollouts: Sequence[GraphRollout]) -> list[GraphRollout]:
        """Give all episodes the credit that the team learns from.

        The episodes of all graphs are one batch. Returns the rollouts with these episodes.
        """
        episodes = [episode for rollout in rollouts for episode in rollout.episodes]
        credit = await self._credit(episodes)
        rest = iter([credited(e, c) for e, c in zip(episodes, credit, strict=True)])
        return [r._replace(episodes=list(islice(rest, len(r.episodes)))) for r in rollouts]

    async def _credit(self, episodes: Sequence[Episode]) -> list[Credit]:
        """The critic's credit. A model that cannot be reached is waited for, as in rollouts."""
        clock = asyncio.get_running_loop().time
        began, pause = clock(), FIRST_PAUSE
        while True:
            try:
                return await credit_of(self._critic, episodes)
            except ModelUnavailable as error:
                left = self._config.patience - (clock() - began)
                if left <= 0:
                    raise
                self._on_warning(f"the credit waits for a model (at most {left:.0f} s): {error}")
                await asyncio.sleep(min(pause, left))
                pause = min(LONGEST_PAUSE, 2.0 * pause)


def _unplayed(job: Job, error: ModelUnavailable) -> Episode:
    """A masked episode for a job that could not begin, because its model could not be reached."""
    return Episode(environment="", task=job[0], seed=job[1], policy=_NAME, fault=Failure.of(error))


def _policy(team: CollabGraph, sample: EdgeSample | None) -> GraphPolicy:
    if sample is None:
        return GraphPolicy(team, name=_NAME)
    return GraphPolicy(_Drawn(team.with_edges(sample.edges), sample.log_prob), name=_NAME)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A function that returns the same drawn graph for every episode; it can be sent to other
    processes."""

    graph: CollabGraph
    log_prob: float | None

    def __call__(self, task: str, seed: int) -> tuple[CollabGraph, float | None]:
        return self.graph, self.log_prob


def _at_versions(team: CollabGraph, versions: Mapping[str, str]) -> CollabGraph:
    """The team, in which each agent names the published version of its adapter."""
    named = {agent: getattr(team.nodes[agent], "adapter", None) for agent in team.agents}
    return with_adapters(
        team, {agent: versions.get(name, name) for agent, name in named.items() if name}
    )


def adapters_by_agent(graph: CollabGraph) -> dict[str, str]:
    """The adapter of each agent, in the graph's order: the one that it names, or else one that has
    its own name. Agents that name one adapter share it."""
    return {agent: getattr(graph.nodes[agent], "adapter", None) or agent for agent in graph.agents}


def with_adapters(graph: CollabGraph, adapters: Mapping[str, str]) -> CollabGraph:
    """The team, in which each agent uses the adapter that is given for it.

    Agents that are not dataclasses with a field ``adapter`` are not changed: they are defined
    outside the library and choose their adapter themselves.
    """
    for agent, adapter in adapters.items():
        node = graph.nodes[agent]
        own = "adapter" in getattr(type(node), "__dataclass_fields__", {})
        if own and getattr(node, "adapter", None) != adapter:
            graph = graph.with_node(dataclasses.replace(node, adapter=adapter), name=agent)  # type: ignore[type-var]
    return graph


class PlayedRollouts(NamedTuple):
    """The rollouts of an iteration with their final credit."""

    rollouts: list[GraphRollout]
    staleness: int
    """Number of updates that were made after the weights that played the rollouts."""
    seconds: float
    """Duration of the rollouts, which may overlap with an update."""


class _Ahead(NamedTuple):
    """Rollouts that were started ahead of time."""

    iteration: int
    updates: int
    """Number of updates that had been made when the rollouts began."""
    task: asyncio.Task[tuple[list[GraphRollout], float]]


class RolloutSchedule:
    """Plays the episodes of the iterations, one iteration after another.

    :meth:`begin` starts those of the next iteration with the present weights, edges and trust in
    the critic, before the update that changes them. If other processes play, update and rollouts
    run at the same time. In one process the rollouts are played first, with the same result.
    """

    def __init__(self, collector: Collector, progress: ProgressReporter) -> None:
        self._collector, self._progress = collector, progress
        self._ahead: _Ahead | None = None
        self._current = -1

    @property
    def begun(self) -> int | None:
        """The iteration whose rollouts were started ahead of time, if any."""
        return None if self._ahead is None else self._ahead.iteration

    @property
    def playing(self) -> bool:
        """Whether episodes are being played now."""
        return self._ahead is not None and not self._ahead.task.done()

    async def begin(self, iteration: int, edges: EdgeDistribution, *, updates: int) -> None:
        """Start the rollouts of an iteration.

        A failure is raised by :meth:`episodes`, so that the update before it is not lost.

        Args:
            iteration: counted from 0.
            edges: the distribution from which graphs are drawn now.
            updates: number of updates that the present weights have had.
        """
        # The plan holds everything that an update changes.
        plan = self._collector.plan(iteration, edges)
        task = asyncio.create_task(self._play(iteration, plan))
        self._ahead = _Ahead(iteration, updates, task)
        if not self._collector.elsewhere:
            await asyncio.wait({task})

    async def episodes(self, iteration: int, edges: EdgeDistribution) -> PlayedRollouts:
        """The episodes of an iteration: those that :meth:`begin` started, or new ones. Raises
        ``ModelError`` as :meth:`Collector.play` does."""
        self._current = iteration
        ahead, updates = self._ahead, iteration
        if ahead is not None and ahead.iteration == iteration:
            rollouts, seconds = await ahead.task
            updates, self._ahead = ahead.updates, None
        else:
            rollouts, seconds = await self._play(iteration, self._collector.plan(iteration, edges))
        began = time.perf_counter()
        rollouts = await self._collector.settle(rollouts)
        seconds += time.perf_counter() - began
        return PlayedRollouts(rollouts, iteration - updates, seconds)

    async def stop(self) -> None:
        """Cancel rollouts that have begun and are not needed."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.task.cancel()
            await asyncio.gather(ahead.task, return_exceptions=True)

    async def _play(
        self, iteration: int, plan: Sequence[PlannedRollout]
    ) -> tuple[list[GraphRollout], float]:
        began = time.perf_counter()

        def report(done: int, total: int) -> None:
            if iteration == self._current:
                self._progress.report(iteration, "rollout", done, total)

        rollouts = await self._collector.play(plan, report)
        return rollouts, time.perf_counter() - began
