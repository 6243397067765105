"""Plays the episodes of a training iteration and gives their messages credit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

import torch

from swarm_ui.credit import CreditAssigner
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim.config import GUIDE, TeamConfig
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit
from swarm_ui.optim.credit.assigners.mixture import TrustedCritic
from swarm_ui.optim.credit.trust import CriticTrust
from swarm_ui.optim.edges.distribution import EdgeDistribution, EdgeSample
from swarm_ui.optim.metrics import GraphMetrics, decision_credit, success_rate
from swarm_ui.optim.preferences.adversary import Adversary
from swarm_ui.optim.retry import Played, play_with_retries
from swarm_ui.optim.rollout_supervisor import RolloutSupervisor
from swarm_ui.rollout.episodes import Job, MakeEnvironment, rollout_many
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.trace.records import EdgeName, Episode

SampleJobs = Callable[[int, int, random.Random], Sequence[Job]]
"""``(iteration, count, rng) -> jobs``: the training episodes of an iteration."""


class GraphRollout(NamedTuple):
    """The episodes that were played with one graph."""

    edges: tuple[EdgeName, ...]
    sample: EdgeSample | None
    """``None``: the edges were not drawn."""
    episodes: list[Episode]
    supervisor: RolloutSupervisor
    """It holds the negatives of the adversary."""
    replayed: int
    """Episodes that were played again because a model could not be reached."""

    def metrics(self) -> GraphMetrics:
        """The figures of this graph."""
        return GraphMetrics(
            edges=self.edges,
            log_prob=None if self.sample is None else self.sample.log_prob,
            success=success_rate(self.episodes),
            right=decision_credit(self.episodes),
        )


class Collector:
    """Draws graphs, plays their episodes with a critic, and computes the final credit."""

    def __init__(
        self,
        graph: CollabGraph,
        make_environment: MakeEnvironment,
        sample_jobs: SampleJobs,
        config: TeamConfig,
        critic: CreditAssigner | None = None,
        adversary: Adversary | None = None,
        judge: CreditAssigner | None = None,
        on_warning: Callable[[str], None] = lambda _: None,
    ) -> None:
        """See :class:`~swarm_ui.optim.trainer.TeamTrainer` for all arguments."""
        self._graph, self._config = graph, config
        self._make_environment, self._sample_jobs = make_environment, sample_jobs
        self._critic, self._adversary, self._on_warning = critic, adversary, on_warning
        self._judge = judge or critic
        self.trust = None if critic is None else CriticTrust(config.trust)
        """The learned weight of the critic; ``None``: there is no critic."""

    async def collect(
        self,
        iteration: int,
        edges: EdgeDistribution,
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> list[GraphRollout]:
        """The episodes of an iteration with their credit, by graph.

        Graphs are drawn from ``edges``, unless the edges are fixed. ``on_progress`` gets (episodes
        done, episodes in all). Raises ``ModelError`` as
        :func:`~swarm_ui.optim.retry.play_with_retries` does.
        """
        samples = self._draw(iteration, edges)
        shares = self._shares(iteration, len(samples))
        total, before = sum(map(len, shares)), 0
        rollouts: list[GraphRollout] = []
        for number, (sample, jobs) in enumerate(zip(samples, shares, strict=True)):
            supervisor = RolloutSupervisor(
                self._critic,
                self._adversary,
                judge=self._judge,
                guide=self._guide,
                grade_negatives=self._config.grade_negatives is not False,
                trust=self._guidance_trust(),
                # The word is part of the seed: changing it would change every seeded run.
                seed=derive(self._config.seed, "referee", iteration, number),
                thresholds=self._config.pairs,
            )

            def count(done: int, before: int = before) -> None:
                on_progress(before + done, total)

            played = await self._play(iteration, sample, jobs, supervisor, count)
            edges_played = self._graph.talk if sample is None else sample.edges
            rollouts.append(
                GraphRollout(edges_played, sample, played.episodes, supervisor, played.again)
            )
            before += len(jobs)
        return await self._settled(rollouts)

    @property
    def credit_source(self) -> str:
        """Name of the source of the credit."""
        if self._critic is None:
            return OutcomeCredit.name
        learned = self._config.critic_trust != "full"
        return self._critic.name + f" and {OutcomeCredit.name}, weight learned" * learned

    @property
    def critic_weights(self) -> tuple[float, ...] | None:
        """The critic's weight in each round; ``None``: there is no critic."""
        if self.trust is None:
            return None
        return tuple(self.trust.weight(k) for k in range(self._graph.rounds))

    def _draw(self, iteration: int, edges: EdgeDistribution) -> list[EdgeSample | None]:
        """The graphs of an iteration; ``None``: the team's own edges."""
        if self._config.edges == "fixed":
            return [None]
        draw = torch.Generator().manual_seed(derive(self._config.seed, "edges", iteration))
        return list(edges.sample(self._config.graphs, draw))

    def _shares(self, iteration: int, graphs: int) -> list[list[Job]]:
        """The episodes of each graph.

        Learned edges are compared on the same episodes; else each graph has its own.
        """
        rng = random.Random(derive(self._config.seed, "jobs", iteration))
        if self._config.edges == "learned":
            each = max(1, self._config.episodes // graphs)
            return [list(self._sample_jobs(iteration, each, rng))] * graphs
        jobs = list(self._sample_jobs(iteration, self._config.episodes, rng))
        return [jobs[k::graphs] for k in range(graphs)]

    async def _play(
        self,
        iteration: int,
        sample: EdgeSample | None,
        jobs: Sequence[Job],
        supervisor: RolloutSupervisor,
        count: Callable[[int], None],
    ) -> Played:
        """The episodes of one graph. Episodes in which a model was unreachable are played again."""
        policy = self._policy(sample)

        async def play(some: Sequence[Job]) -> list[Episode]:
            return await rollout_many(
                self._make_environment,
                policy,
                some,
                concurrency=self._config.concurrency,
                progress=(lambda done, _, __: count(done)) if some is jobs else None,
                intervention=supervisor,
                max_steps=self._config.max_steps,
            )

        return await play_with_retries(
            play,
            jobs,
            patience=self._config.patience,
            on_wait=lambda text: self._on_warning(f"iteration {iteration + 1}: {text}"),
        )

    def _policy(self, sample: EdgeSample | None) -> GraphPolicy:
        if sample is None:
            return GraphPolicy(self._graph, name="training team")
        drawn = (self._graph.with_edges(sample.edges), sample.log_prob)
        return GraphPolicy(lambda task, seed: drawn, name="training team")

    @property
    def _guide(self) -> float:
        """The probability of guidance, before the trust in a critic."""
        default = 0.0 if self._judge is None else GUIDE
        return default if self._config.guide is None else self._config.guide

    def _guidance_trust(self) -> float:
        """Factor of the guidance probability: the critic's weight in the last round.

        The vote decides on the proposals of the last round.
        """
        if self.trust is None or self._config.critic_trust == "full":
            return 1.0
        return max(0.0, self.trust.weight(self._graph.rounds - 1))

    async def _settled(self, rollouts: Sequence[GraphRollout]) -> list[GraphRollout]:
        """The rollouts with the credit to learn from; the episodes of all graphs are one batch."""
        episodes = [episode for rollout in rollouts for episode in rollout.episodes]
        if self.trust is None:
            settled = [OutcomeCredit().credit(episode) for episode in episodes]
        elif self._config.critic_trust == "full":
            self.trust.learn_from(episodes)
            settled = episodes
        else:
            settled = await TrustedCritic(self.trust).settle(episodes)
        rest = iter(settled)
        return [r._replace(episodes=list(islice(rest, len(r.episodes)))) for r in rollouts]
