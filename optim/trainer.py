"""Stage 2: a team learns its weights and its edges from its own rollouts.

    draw edges -> roll out -> credit -> pairs -> update adapters -> update edges -> checkpoint

After CollabUIAgents (arXiv 2502.14496), section on multi-agent learning with credit
re-assignment. What the paper leaves open is a setting of
:class:`~swarm_ui.optim.config.TeamConfig`. The agents, the environment, the critic and the
adversary are arguments, so the loop does not depend on their kind.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
import torch
from msgspec.structs import replace

from swarm_ui.credit import Critic
from swarm_ui.environment import check_factory
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError, ModelUnavailable
from swarm_ui.files import only_writer
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim import checkpoint
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.checkpoint import TeamState
from swarm_ui.optim.collector import (
    Collector,
    GraphRollout,
    PlayedRollouts,
    RolloutSchedule,
    SampleJobs,
    adapters_by_agent,
    with_adapters,
)
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.critic import check_roles, judge_of
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.optim.distributed import Processes
from swarm_ui.optim.edges.credit import episode_edge_credit
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
from swarm_ui.optim.examples import Trainable
from swarm_ui.optim.loggers.logger import LoggerGroup, logging_to
from swarm_ui.optim.metrics import (
    EdgeUpdate,
    IterationMetrics,
    decision_credit,
    episode_figures,
    pair_figures,
    peak_memory_mb,
    scalars,
    success_rate,
    why_nothing_was_learned,
)
from swarm_ui.optim.preferences import PreferencePair, ScoredReply, preference_pairs, scored_replies
from swarm_ui.optim.rollout_actors import RolloutActors
from swarm_ui.optim.rollout_supervisor import Guidance
from swarm_ui.optim.training_progress import ProgressReporter
from swarm_ui.optim.update import Rehearse, UpdateStats, alike, follow, update_team
from swarm_ui.rollout import MakeEnvironment
from swarm_ui.storage.run_directory import expect_no_links_out
from swarm_ui.trace.records import Episode


class TeamResult(NamedTuple):
    """The result of a training run. The weights are in the model that was passed in."""

    history: tuple[IterationMetrics, ...]
    """Metrics of all iterations, including those before a resume."""
    edges: EdgeDistribution

    def __repr__(self) -> str:
        shares = [m.success for m in self.history]
        shown = ["-" if share is None else f"{100 * share:.1f}" for share in shares]
        told = f"; success of the rollouts {', '.join(shown)} %" if shown else ""
        plural = "s" * (len(shown) != 1)
        return f"TeamResult({len(shown)} iteration{plural}{told}; history, edges)"


class TeamTrainer:
    """Trains the adapters of one team, and its edges if ``config.edges`` is ``learned``."""

    _processes: Processes | None = None

    def __init__(
        self,
        model: Trainable,
        graph: CollabGraph,
        make_environment: MakeEnvironment | RolloutActors,
        sample_jobs: SampleJobs,
        *,
        config: TeamConfig | None = None,
        critic: Critic | None = None,
        guidance: Guidance | None = None,
        rehearse: Rehearse | None = None,
        folder: Path | None = None,
        callbacks: Callbacks | None = None,
    ) -> None:
        """
        Args:
            model: holds the adapters; missing ones are added. The agents of the graph must ask
                this model, or one that answers with its adapters (``swarm_ui.nodes.ActorModel``).
            graph: the team of the rollouts; ``trainer.graph`` uses the adapters that are trained.
            make_environment: see :func:`swarm_ui.rollout.rollout_many`; or
                :class:`~swarm_ui.optim.rollout_actors.RolloutActors` for other processes, to which
                critics and adversary are then sent.
            sample_jobs: gives training episodes, which must not be episodes of a test.
            config: settings.
            critic: gives credit to the messages of an iteration's episodes, after they were played.
                ``None``: the outcome is the credit ("w/o CR").
            guidance: a judge of single actions, an adversary and a teacher. ``None``: the critic is
                the judge, if it can.
            rehearse: draws earlier examples for ``TeamConfig.rehearsal``, in the update's thread.
            folder: where checkpoints and ``metrics.jsonl`` are written; ``None``: nowhere.
            callbacks: called while training runs, such as
                ``Callbacks(loggers=[TensorBoardLogger(folder / "tensorboard")])``.

        Raises:
            ConfigError: the adapters do not fit the team, or a needed argument is missing.
        """
        self.config = _filled(config or TeamConfig(), model, make_environment)
        roles = guidance or Guidance()
        roles = roles._replace(judge=roles.judge or judge_of(critic))
        compares = critic is not None and not isinstance(critic, Outcome)
        _check_settings(self.config, judged=roles.judge is not None, credited=compares)
        check_roles(critic, roles.judge, roles.teacher)
        if self.config.rehearsal and rehearse is None:
            raise ConfigError(
                f"team training: rehearsal is {self.config.rehearsal}, but there are no examples "
                "to rehearse: give TeamTrainer(rehearse=...), or set rehearsal=0"
            )
        self._adapters = adapters_by_agent(graph)
        self.model, self.graph = model, with_adapters(graph, self._adapters)
        self._critic, self._rehearse, self._folder = critic, rehearse, folder
        self._callbacks = callbacks or Callbacks()
        warn = self._callbacks.on_warning
        self._collector = Collector(
            self.graph, make_environment, sample_jobs, self.config, critic, roles, warn
        )
        self.edges = EdgeDistribution(graph, density=self.config.density)
        self._edge_optimizer = ProbabilitySGD(self.edges, lr=self.config.edge_lr)

    def __repr__(self) -> str:
        agents = ", ".join(f"{agent}: {name}" for agent, name in self._adapters.items())
        return (
            f"TeamTrainer({self.model!r}, adapters {agents}; {self.config.iterations} iterations "
            f"of {self.config.episodes} episodes, {self.config.edges} edges)"
        )

    @property
    def adapters(self) -> Mapping[str, str]:
        """The adapter of each agent."""
        return self._adapters

    async def run(self, *, resume: bool = False, processes: Processes | None = None) -> TeamResult:
        """Run all iterations, or the remaining ones of a run that was interrupted.

        Args:
            resume: continue from the last checkpoint of the folder, if there is one.
            processes: processes that run the same program and share the updates. The first one does
                everything else. ``None``: this process alone.

        Raises:
            ConfigError: the folder holds a run and ``resume`` is not set, that run had other
                settings, or a link leads out of the folder.
            ModelUnavailable: a model could not be reached for ``config.patience`` seconds.
            ModelError: the models failed in all episodes of an iteration, and waiting does not
                help.
            LearningError: a loss or a gradient was not a number. The last checkpoint is kept. Run
                again with a lower rate in another folder.
        """
        folder, self._processes = self._folder, processes
        if processes is not None and processes.rank:
            self._add_adapters()
            await asyncio.to_thread(follow, self.model, processes)
            return TeamResult((), self.edges)
        if folder is not None:
            expect_no_links_out(folder)
        with nullcontext() if folder is None else only_writer(folder, "training"):
            state = self._start(resume)
            try:
                with self._logging() as loggers:
                    await self._train(state, loggers)
            finally:
                if processes is not None:
                    processes.end()
            history = msgspec.convert(state.history, tuple[IterationMetrics, ...])
            return TeamResult(history, self.edges)

    async def _train(self, state: TeamState, loggers: LoggerGroup) -> None:
        """The remaining iterations, each with its checkpoint."""
        progress = ProgressReporter(self.config.iterations, self._callbacks.on_progress)
        schedule = RolloutSchedule(self._collector, progress)
        try:
            for iteration in range(state.iteration, self.config.iterations):
                progress.start_iteration()
                metrics = await self._iterate(iteration, progress, schedule)
                state.iteration = iteration + 1
                state.history.append(msgspec.to_builtins(metrics))
                progress.report(iteration, "checkpoint", 0, 1)
                self._save(state)
                loggers.log(scalars(metrics), iteration)
                if self._callbacks.on_iteration is not None:
                    self._callbacks.on_iteration(metrics)
                progress.finish_iteration(iteration)
        finally:
            await schedule.stop()

    async def _play_ahead(self, iteration: int, schedule: RolloutSchedule) -> None:
        """Begin the next iteration's rollouts before this update, if ``staleness`` allows it."""
        if self.config.overlap and iteration + 1 < self.config.iterations:
            await schedule.begin(iteration + 1, self.edges, updates=iteration)

    def _logging(self) -> AbstractContextManager[LoggerGroup]:
        """The loggers of the run. They receive the trainer's settings and ``logged_config``."""
        team = {"agents": self.graph.agents, "rounds": self.graph.rounds}
        config = {"team": team, **self._callbacks.logged_config, "train": asdict(self.config)}
        return logging_to(self._callbacks.loggers, config, self._callbacks.on_warning)

    def _start(self, resume: bool) -> TeamState:
        """The state of the last checkpoint or of a new run, with all adapters in the model."""
        state, folder = None, self._folder
        if folder is not None and not resume and any((folder / "checkpoints").glob("iteration-*")):
            raise ConfigError(
                f"team training: '{folder}' holds checkpoints of a run already; resume it "
                "with run(resume=True), or choose another folder"
            )
        if folder is not None and resume:
            state = checkpoint.load(folder, self.model, self.edges, self.config, self._adapters)
        trust = self._collector.trust
        if state is not None and trust is not None and state.trust is not None:
            trust.load_state_dict(state.trust)
        self._add_adapters()
        return state or TeamState()

    def _save(self, state: TeamState) -> None:
        if self._folder is None:
            return
        trust = self._collector.trust
        state.config, state.adapters = checkpoint.settings_of(self.config), dict(self._adapters)
        state.trust = None if trust is None else trust.state_dict()
        checkpoint.save(self._folder, state, self.model, self.edges)

    def _add_adapters(self) -> None:
        """Add the adapters that the model does not have."""
        for name in dict.fromkeys(self._adapters.values()):
            if name not in self.model.adapters:
                # New adapters draw their weights from torch's global stream.
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(self.config.seed, "adapter", name))
                    self.model.add_adapter(name, self.config.rank, 2 * self.config.rank)

    async def _iterate(
        self, iteration: int, progress: ProgressReporter, schedule: RolloutSchedule
    ) -> IterationMetrics:
        """One iteration: rollout, credit, pairs, update of adapters and edges."""
        cpu = time.process_time()
        played = await self._collect(iteration, schedule)
        received, rollouts = time.perf_counter(), played.rollouts
        episodes = [episode for rollout in rollouts for episode in rollout.episodes]
        if self._callbacks.on_episodes is not None:
            self._callbacks.on_episodes(iteration, episodes)
        examples = _examples_of(iteration, played, self.config)
        rollout_seconds = played.seconds + time.perf_counter() - received
        await self._play_ahead(iteration, schedule)
        began = time.perf_counter()
        names = list(dict.fromkeys(self._adapters.values()))
        shared = iteration < self.config.shared_iterations and bool(alike(self.model, names))
        updates = await self._update(iteration, examples, progress)
        edge_update = self._update_edges(iteration, rollouts)
        pairs, sources = pair_figures(examples)
        reason = self._why_nothing(iteration, episodes, updates, len(examples))
        return IterationMetrics(
            **episode_figures(episodes),
            iteration=iteration,
            staleness=played.staleness,
            shared=shared,
            graphs=tuple(rollout.metrics() for rollout in rollouts),
            replayed=sum(rollout.replayed for rollout in rollouts),
            credit_source=self._collector.credit_source,
            critic_weights=self._collector.critic_weights,
            pairs=pairs,
            sources=sources,
            updates=tuple(updates),
            nothing_learned=reason,
            edge_update=edge_update,
            edge_probabilities=None if edge_update is None else self._probabilities(),
            rollout_seconds=rollout_seconds,
            update_seconds=time.perf_counter() - began,
            cpu_seconds=time.process_time() - cpu,
            peak_memory_mb=peak_memory_mb(),
        )

    def _why_nothing(
        self,
        iteration: int,
        episodes: Sequence[Episode],
        updates: Sequence[UpdateStats],
        examples: int,
    ) -> str:
        """Warn if no adapter was trained; returns the reason, or nothing."""
        if any(update.steps for update in updates):
            return ""
        reason = why_nothing_was_learned(
            episodes, self.config, source=self._collector.credit_source, examples=examples,
            steps=self.config.update.steps or 0,
        )  # fmt: skip
        of = f"iteration {iteration + 1} of {self.config.iterations}"
        self._callbacks.on_warning(f"{of}: no adapter was trained: {reason}")
        return reason

    async def _update(
        self,
        iteration: int,
        examples: Sequence[PreferencePair] | Sequence[ScoredReply],
        progress: ProgressReporter,
    ) -> list[UpdateStats]:
        """Update the adapters in a thread, so that the event loop is free.

        Afterwards no thread changes weights, also after a cancellation or an error of a callback:
        the update then stops before its next step.
        """
        loop, stop = asyncio.get_running_loop(), threading.Event()
        errors: list[BaseException] = []
        told: list[tuple[int, int]] = []

        def report(count: int, total: int) -> None:
            try:
                progress.report(iteration, "update", count, total)
            except Exception as error:  # raised below: the event loop would only log it
                errors.append(error)
                stop.set()

        def check(count: int, total: int) -> None:
            if stop.is_set():
                raise asyncio.CancelledError
            if told[-1:] != [(count, total)]:
                told.append((count, total))
                loop.call_soon_threadsafe(report, count, total)

        update = partial(
            update_team, self.model, examples, self._adapters, self.config, iteration,
            rehearse=self._rehearse, processes=self._processes, check=check,
        )  # fmt: skip
        thread = loop.run_in_executor(None, copy_context().run, update)
        try:
            await asyncio.wait({thread})
        finally:
            stop.set()
            while not thread.done():
                with suppress(asyncio.CancelledError):  # the first one is raised at the end
                    await asyncio.wait({thread})
            thread.exception()  # a cancelled training does not report it
        if errors:
            raise errors[0]
        return thread.result()

    async def _collect(self, iteration: int, schedule: RolloutSchedule) -> PlayedRollouts:
        """The episodes of an iteration. An error of a model reports what the run has saved."""
        try:
            return await schedule.episodes(iteration, self.edges)
        except BudgetExceeded:
            raise
        except ModelError as error:
            kept = "To do: start the same run again when the model answers"
            if self._folder is None:
                kept = "The weights are those of the iterations before it"
            elif iteration:
                kept = (
                    f"The iterations before it are in '{self._folder}'. To do: resume the run when "
                    "the model answers"
                )
            kind = ModelUnavailable if isinstance(error, ModelUnavailable) else ModelError
            raise kind(
                f"iteration {iteration + 1} of {self.config.iterations}: {error}. Nothing of this "
                f"iteration was learned. {kept}"
            ) from error

    def _update_edges(self, iteration: int, rollouts: Sequence[GraphRollout]) -> EdgeUpdate | None:
        """Update the edge distribution. Returns ``None`` if this iteration has no update."""
        if self.config.edges != "learned":
            return None
        samples = [rollout.sample for rollout in rollouts if rollout.sample is not None]
        compares = self._critic is not None and not isinstance(self._critic, Outcome)
        utility = decision_credit if compares else success_rate
        utilities = [utility(rollout.episodes) for rollout in rollouts]
        credit = None
        if self.config.edge_credit and self._critic is not None:
            credit = [episode_edge_credit(r.episodes, edges=r.edges) for r in rollouts]
        before = self.edges.logits.detach().sigmoid()
        self._edge_optimizer.zero_grad()
        weight = self.config.edge_credit
        edge_loss(self.edges, samples, utilities, credit, credit_weight=weight).backward()  # type: ignore[no-untyped-call]
        self._edge_optimizer.step()
        change = (self.edges.logits.detach().sigmoid() - before).abs()
        return EdgeUpdate(
            used=sum(utility is not None for utility in utilities),
            moved=float(change.max()) if change.numel() else 0.0,
            entropy=self.edges.entropy().item(),
        )

    def _probabilities(self) -> dict[str, float]:
        return {f"{a}>{b}": p for (a, b), p in self.edges.marginals().items()}


def _examples_of(
    iteration: int, played: PlayedRollouts, config: TeamConfig
) -> list[PreferencePair] | list[ScoredReply]:
    """Pairs of the episodes of an iteration, or scored replies for ``update.method="pg"``.

    Each example records how many updates older the weights were that played its episode.
    """
    behind = played.staleness
    if config.update.method == "pg":
        episodes = [episode for rollout in played.rollouts for episode in rollout.episodes]
        replies = scored_replies(episodes)
        return [replace(reply, staleness=behind) for reply in replies] if behind else replies
    rng = random.Random(derive(config.seed, "pairs", iteration))
    pairs = [
        pair
        for rollout in played.rollouts
        for pair in preference_pairs(rollout.episodes, config=config.pairs, rng=rng)
    ]
    return [replace(pair, staleness=behind) for pair in pairs] if behind else pairs


def _filled(config: TeamConfig, model: object, make_environment: object) -> TeamConfig:
    """Check model and environment, and fill in the settings that depend on the model. Raises
    ``ConfigError`` if one of the two is of the wrong kind."""
    if not isinstance(model, Trainable):
        raise ConfigError(
            f"team training: expected a model in this process whose adapters can be trained, "
            f"such as LocalModel.load() or CausalModel.named('smollm2'), got {model!r}"
        )
    if not isinstance(make_environment, RolloutActors):
        check_factory(make_environment)
    return config.filled(model)


def _check_settings(config: TeamConfig, *, judged: bool, credited: bool) -> None:
    """Raise ``ConfigError`` if a setting needs a critic or a judge, and there is none."""
    needs = ["guide"] * (bool(config.guide) and not judged)
    needs += ["edge_credit"] * (bool(config.edge_credit) and not credited)
    if needs:
        raise ConfigError(
            f"team training: {' and '.join(needs)} would not be used, because there is no critic "
            "besides the outcome, or no judge; give TeamTrainer(critic=...), or leave "
            f"{'it' if len(needs) == 1 else 'them'} out"
        )
