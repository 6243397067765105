"""Stage 2: a team learns from its own rollouts, weights and edges both.

    draw edges -> roll out -> credit -> pairs -> update adapters -> update edges -> checkpoint

After CollabUIAgents (arXiv 2502.14496), section on multi-agent learning with credit
re-assignment; what the paper leaves open is a setting of :class:`TeamConfig`. Everything that
acts is handed in, so the loop knows neither the agents' kind nor the world's.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch

from swarm_ui.credit import CreditAssigner
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError, ModelUnavailable
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.assigners.critic import OutcomeCredit
from swarm_ui.optim.credit.assigners.mixture import TrustedCritic
from swarm_ui.optim.credit.trust import CriticTrust
from swarm_ui.optim.edges.credit import episode_edge_credit
from swarm_ui.optim.edges.distribution import EdgeDistribution, EdgeSample
from swarm_ui.optim.edges.optimizer import EdgeOptimizer, EdgeUpdate
from swarm_ui.optim.metrics import (
    GraphMetrics,
    IterationMetrics,
    decision_credit,
    episode_figures,
    pair_figures,
    peak_memory_mb,
    success_rate,
)
from swarm_ui.optim.preferences.advantages import ScoredReply, scored_replies
from swarm_ui.optim.preferences.adversary import Adversary
from swarm_ui.optim.preferences.pairs import PreferencePair, make_pairs
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.retry import Played, play_through
from swarm_ui.optim.rollout_supervisor import RolloutSupervisor
from swarm_ui.optim.state import TeamState, TeamStore
from swarm_ui.optim.tensorboard import TensorBoard
from swarm_ui.optim.training_progress import Pace, Progress
from swarm_ui.optim.update.adapter_groups import given_adapters, speaking_with
from swarm_ui.optim.update.team_update import Rehearse, update_team
from swarm_ui.rollout.episodes import Job, MakeEnvironment, rollout_many
from swarm_ui.rollout.episodes import OnEpisode as Count
from swarm_ui.rollout.policy import GraphPolicy
from swarm_ui.trace.records import Episode

SampleJobs = Callable[[int, int, random.Random], Sequence[Job]]
"""``(iteration, how many, rng) -> jobs``: the training episodes of an iteration."""


class TeamResult(NamedTuple):
    """Where training ended. The weights are in the model that was handed in."""

    history: tuple[IterationMetrics, ...]
    """Of all iterations, those before a resume too."""
    edges: EdgeDistribution


class TeamTrainer:
    """Trains the adapters, and if so set the edges, of one team."""

    def __init__(
        self,
        model: Trainable,
        graph: CollabGraph,
        make_environment: MakeEnvironment,
        sample_jobs: SampleJobs,
        *,
        config: TeamConfig | None = None,
        critic: CreditAssigner | None = None,
        trust: CriticTrust | None = None,
        adversary: Adversary | None = None,
        rehearse: Rehearse | None = None,
        adapters: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: Callable[[Progress], None] | None = None,
        on_episodes: Callable[[int, Sequence[Episode]], None] | None = None,
        tensorboard: bool = False,
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        """
        Args:
            model: holds the adapters; missing ones are added. It must be the model that the
                graph's agents ask.
            graph: the team, with the temperatures, rounds and vote of the rollouts. In
                ``trainer.graph`` its agents speak with the adapters that are trained.
            make_environment: see :func:`swarm_ui.rollout.episodes.rollout_many`.
            sample_jobs: training episodes; must not be those of a test.
            config: settings.
            critic: gives credit to each message; ``None``: the outcome is everybody's credit
                ("w/o CR"), and rollouts are not guided.
            trust: learns how far to trust the critic; default: a new one. Used for credit with
                ``critic_trust="learned"``, else for the record only.
            adversary: writes negatives; ``None``: only real mistakes are rejected.
            rehearse: hands in examples of what the agents could do before, for
                ``TeamConfig.rehearsal``.
            adapters: adapter by agent, instead of what ``config.adapters`` says.
            folder: for checkpoints and ``metrics.jsonl``; ``None``: nothing is written.
            progress: told where training stands.
            on_episodes: given (iteration, graded episodes) before the update.
            tensorboard: draw the metrics in ``tensorboard/`` of the folder, too.
            warn: told about damaged checkpoints and outages of models.

        Raises:
            ConfigError: the adapters do not fit the team.
        """
        self.config = _checked(config or TeamConfig(), rehearse)
        self._adapters = given_adapters(graph, adapters, self.config.adapters)
        self.model, self.graph = model, speaking_with(graph, self._adapters)
        self._make_environment, self._sample_jobs = make_environment, sample_jobs
        self._critic, self._adversary, self._rehearse = critic, adversary, rehearse
        self._trusted = None if critic is None else TrustedCritic(trust)
        self._progress, self._on_episodes, self._warn = progress, on_episodes, warn
        self.edges = EdgeOptimizer(
            EdgeDistribution(graph.agents, density=self.config.density),
            lr=self.config.edge_lr,
            normalise=True,
        )
        self._folder, self._store = folder, self._store_in(folder)
        self._curves = folder / "tensorboard" if tensorboard and folder is not None else None

    def _store_in(self, folder: Path | None) -> TeamStore | None:
        if folder is None:
            return None
        return TeamStore(folder, self.config, adapters=self._adapters, warn=self._warn)

    @property
    def adapters(self) -> Mapping[str, str]:
        """The adapter of each agent."""
        return self._adapters

    async def run(self, *, resume: bool = False) -> TeamResult:
        """All iterations, or those that are left of a run that was interrupted.

        Raises:
            ConfigError: the folder holds a run and ``resume`` is not set; or it is, and that run
                had other settings.
            ModelUnavailable: a model could not be reached for ``config.patience`` seconds.
            ModelError: the models failed in all episodes of an iteration, for good.
            LearningError: a loss or a gradient was not a number. What the last checkpoint holds is
                kept, and the same run can go on with a lower rate in a folder of its own.
        """
        state = self._start(resume)
        with ExitStack() as stack:
            curves = None
            if self._curves is not None:
                curves = stack.enter_context(TensorBoard(self._curves, start=state.iteration))
            await self._rest(state, curves)
        return TeamResult(tuple(state.history), self.edges.distribution)

    async def _rest(self, state: TeamState, curves: TensorBoard | None) -> None:
        """The iterations that are left."""
        pace = Pace(self.config.iterations, self._progress)
        for iteration in range(state.iteration, self.config.iterations):
            pace.start()
            metrics = await self._iterate(iteration, pace)
            state.iteration = iteration + 1
            state.history.append(metrics)
            pace.tell(iteration, "checkpoint", 0, 1)
            if self._store is not None:
                self._store.save(state, self.model, self.edges, self._trusted)
            if curves is not None:
                curves.write(metrics)
            pace.finish(iteration)

    def _start(self, resume: bool) -> TeamState:
        if self._store is not None and self._store.begun and not resume:
            raise ConfigError(
                "the folder holds checkpoints of a run already; resume it, or choose another folder"
            )
        state = None
        if self._store is not None and resume:
            state = self._store.load(self.model, self.edges, self._trusted)
        for name in dict.fromkeys(self._adapters.values()):
            if name not in self.model.adapters:
                # New adapters draw their weights from torch's global stream.
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(self.config.seed, "adapter", name))
                    self.model.add_adapter(name, self.config.rank, self.config.alpha)
        return state or TeamState()

    async def _iterate(self, iteration: int, pace: Pace) -> IterationMetrics:
        began, cpu = time.perf_counter(), time.process_time()
        played = await self._play(iteration, pace)
        episodes = [episode for group in played for episode in group.episodes]
        if self._on_episodes is not None:
            self._on_episodes(iteration, episodes)
        examples = self._examples(iteration, played)
        rolled = time.perf_counter()
        pace.tell(iteration, "update", 0, len(set(self._adapters.values())))
        updates = update_team(
            self.model, examples, self._adapters, self.config, iteration,
            rehearse=self._rehearse,
            done=lambda done, total: pace.tell(iteration, "update", done, total),
        )  # fmt: skip
        edge_update = self._update_edges(iteration, played)
        by_node, by_source = pair_figures(examples)
        figures = episode_figures(episodes)
        return IterationMetrics(
            iteration=iteration,
            shared=iteration < self.config.shared_iterations,
            graphs=tuple(group.metrics() for group in played),
            episodes=figures.episodes,
            masked=figures.masked,
            replayed=sum(group.again for group in played),
            success=figures.success,
            guided=figures.guided,
            credit=figures.credit,
            credit_source=self._credit_source,
            unscored=figures.unscored,
            critic_weights=self._weights(),
            pairs=by_node,
            sources=by_source,
            updates=tuple(updates),
            edge_update=edge_update,
            edge_probabilities=None if edge_update is None else self._probabilities(),
            rollout_seconds=rolled - began,
            update_seconds=time.perf_counter() - rolled,
            cpu_seconds=time.process_time() - cpu,
            peak_memory_mb=peak_memory_mb(),
        )

    async def _play(self, iteration: int, pace: Pace) -> list[_Played]:
        """Roll out all graphs of an iteration, one after the other."""
        samples = self._draw(iteration)
        shares = self._shares(iteration, len(samples))
        total, before = sum(map(len, shares)), 0
        played: list[_Played] = []
        for number, (sample, jobs) in enumerate(zip(samples, shares, strict=True)):
            referee = RolloutSupervisor(
                self._critic,
                self._adversary,
                guide=0.0 if self._critic is None else self.config.guide,
                trust=self._guidance_trust(),
                seed=derive(self.config.seed, "referee", iteration, number),
                thresholds=self.config.pairs,
            )
            done = await self._whole(
                iteration,
                self._policy(sample),
                jobs,
                referee,
                pace.counting(iteration, before, total),
            )
            played.append(_Played(sample, self.graph.talk, done.episodes, referee, done.again))
            before += len(jobs)
        return await self._settled(played)

    async def _whole(
        self,
        iteration: int,
        policy: GraphPolicy,
        jobs: Sequence[Job],
        referee: RolloutSupervisor,
        progress: Count,
    ) -> Played:
        """The episodes of one graph, those that an outage of a model spoilt played again."""

        async def play(some: Sequence[Job]) -> list[Episode]:
            return await rollout_many(
                self._make_environment,
                policy,
                some,
                concurrency=self.config.concurrency,
                progress=progress if some is jobs else None,
                intervention=referee,
                max_steps=self.config.max_steps,
            )

        try:
            return await play_through(
                play, jobs, patience=self.config.patience,
                tell=lambda text: self._warn(f"iteration {iteration + 1}: {text}"),
            )  # fmt: skip
        except BudgetExceeded:
            raise
        except ModelError as error:
            kind = ModelUnavailable if isinstance(error, ModelUnavailable) else ModelError
            raise kind(
                f"iteration {iteration + 1} of {self.config.iterations}: {error}. Nothing of this "
                f"iteration was learned. {self._kept(iteration)}"
            ) from error

    def _kept(self, iteration: int) -> str:
        """What is not lost when the run ends in an iteration, and how to go on."""
        if self._folder is None:
            return "The weights are those of the iterations before it"
        if iteration == 0:
            return "To do: start the same run again when the model answers"
        return (
            f"The iterations before it are in '{self._folder}'. To do: resume the run when the "
            "model answers"
        )

    async def _settled(self, played: Sequence[_Played]) -> list[_Played]:
        """The same with the credit that is learned from, weighed over all graphs' episodes."""
        if self._trusted is None:
            outcome = OutcomeCredit()
            return [g._replace(episodes=[outcome.credit(e) for e in g.episodes]) for g in played]
        episodes = [episode for group in played for episode in group.episodes]
        if self.config.critic_trust == "full":
            self._trusted.trust.learn_from(episodes)
            return list(played)
        settled = iter(await self._trusted.settle(episodes))
        return [g._replace(episodes=list(islice(settled, len(g.episodes)))) for g in played]

    def _guidance_trust(self) -> float:
        """The critic's weight in the last round, whose proposals are voted on."""
        if self._trusted is None or self.config.critic_trust == "full":
            return 1.0
        return max(0.0, self._trusted.trust.weight(self.graph.rounds - 1))

    def _weights(self) -> tuple[float, ...] | None:
        if self._trusted is None:
            return None
        return tuple(self._trusted.trust.weight(k) for k in range(self.graph.rounds))

    @property
    def _credit_source(self) -> str:
        if self._critic is None:
            return OutcomeCredit.name
        if self.config.critic_trust == "full":
            return self._critic.name
        return f"{self._critic.name} and {OutcomeCredit.name}, weight learned"

    def _draw(self, iteration: int) -> list[EdgeSample | None]:
        """The graphs of an iteration; ``None``: the team's own edges."""
        if self.config.edges == "fixed":
            return [None]
        draw = torch.Generator().manual_seed(derive(self.config.seed, "edges", iteration))
        return list(self.edges.distribution.sample(self.config.graphs, draw))

    def _shares(self, iteration: int, graphs: int) -> list[list[Job]]:
        """Which episodes each graph plays: to learn edges the same ones, else each its own."""
        rng = random.Random(derive(self.config.seed, "jobs", iteration))
        if self.config.edges == "learned":
            each = max(1, self.config.episodes // graphs)
            return [list(self._sample_jobs(iteration, each, rng))] * graphs
        jobs = list(self._sample_jobs(iteration, self.config.episodes, rng))
        return [jobs[k::graphs] for k in range(graphs)]

    def _policy(self, sample: EdgeSample | None) -> GraphPolicy:
        if sample is None:
            return GraphPolicy(self.graph, name="training team")
        drawn = (self.graph.with_edges(sample.edges), sample.log_prob)
        return GraphPolicy(lambda task, seed: drawn, name="training team")

    def _examples(
        self, iteration: int, played: Sequence[_Played]
    ) -> list[PreferencePair] | list[ScoredReply]:
        """What the adapters learn from."""
        if self.config.update.method == "pg":
            episodes = [episode for group in played for episode in group.episodes]
            return scored_replies(episodes, by=self.config.advantage)
        rng = random.Random(derive(self.config.seed, "pairs", iteration))
        pairs: list[PreferencePair] = []
        for group in played:
            pairs += make_pairs(
                group.episodes, rng, config=self.config.pairs, negatives=group.referee.negatives
            )
        return pairs

    def _update_edges(self, iteration: int, played: Sequence[_Played]) -> EdgeUpdate | None:
        if self.config.edges != "learned" or (iteration + 1) % self.config.edge_update_interval:
            return None
        samples = [group.sample for group in played if group.sample is not None]
        decisions = self.config.edge_utility == "decision" and self._critic is not None
        worth = decision_credit if decisions else success_rate
        utilities = [worth(group.episodes) for group in played]
        if not self.config.edge_credit or self._critic is None:
            return self.edges.step(samples, utilities)
        credit = [
            episode_edge_credit(group.episodes, edges=sample.edges)
            for group, sample in zip(played, samples, strict=True)
        ]
        return self.edges.step(samples, utilities, credit)

    def _probabilities(self) -> dict[str, float]:
        return {f"{a}>{b}": p for (a, b), p in self.edges.distribution.marginals().items()}


def _checked(config: TeamConfig, rehearse: Rehearse | None) -> TeamConfig:
    if config.rehearsal and rehearse is None:
        raise ConfigError(
            f"team training: rehearsal is {config.rehearsal}, but nobody hands in what to "
            "rehearse: give TeamTrainer(rehearse=...), or set rehearsal=0"
        )
    return config


class _Played(NamedTuple):
    """The episodes of one graph."""

    sample: EdgeSample | None
    own_edges: tuple[tuple[str, str], ...]
    episodes: list[Episode]
    referee: RolloutSupervisor
    again: int

    def metrics(self) -> GraphMetrics:
        sample = self.sample
        return GraphMetrics(
            edges=self.own_edges if sample is None else sample.edges,
            log_prob=None if sample is None else sample.log_prob,
            success=success_rate(self.episodes),
            right=decision_credit(self.episodes),
        )
