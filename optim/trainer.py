"""Stage 2: a team learns its weights and its edges from its own rollouts.

    draw edges -> roll out -> credit -> pairs -> update adapters -> update edges -> checkpoint

After CollabUIAgents (arXiv 2502.14496), section on multi-agent learning with credit
re-assignment. What the paper leaves open is a setting of
:class:`~swarm_ui.optim.config.TeamConfig`. Guidance, the teacher and learned edges are ours. For
another loop, copy this file, or begin with the functions that it calls.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec
import torch

from swarm_ui.credit import Critic, Judge, credited
from swarm_ui.environment import check_factory
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError, ModelUnavailable
from swarm_ui.files import only_writer
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.node import derive
from swarm_ui.optim import checkpoint
from swarm_ui.optim.adversary import Adversary, Teacher
from swarm_ui.optim.checkpoint import Edges, TeamState
from swarm_ui.optim.config import GUIDE, POLICY_GRADIENT, TeamConfig
from swarm_ui.optim.credit.critic import judge_of, name_of
from swarm_ui.optim.credit.outcome import Outcome
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.optim.distributed import Processes
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.credit import episode_edge_credit
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
from swarm_ui.optim.examples import Trainable
from swarm_ui.optim.guidance import Guidance
from swarm_ui.optim.losses import Loss
from swarm_ui.optim.metrics import (
    Metrics,
    decision_credit,
    episode_metrics,
    numbers,
    success_rate,
    update_metrics,
    why_nothing_was_learned,
)
from swarm_ui.optim.playing import GraphRollout, Patience, credit_with_retries, play_graphs
from swarm_ui.optim.preferences import preference_pairs, scored_replies
from swarm_ui.optim.update import (
    Examples,
    Rehearse,
    UpdateStats,
    follow,
    untrained,
    update_team,
)
from swarm_ui.rollout import Job, MakeEnvironment, Rollouts
from swarm_ui.storage.run_directory import expect_no_links_out
from swarm_ui.trace.records import Episode

T = TypeVar("T")


class SampleJobs(Protocol):
    """Draws training episodes, such as ``phone.training_jobs``."""

    def __call__(self, count: int, /, *, seed: int) -> Sequence[Job]: ...


class TeamResult(NamedTuple):
    """The result of a training run. The weights are in the team's model."""

    history: tuple[Metrics, ...]
    """Metrics of all iterations, including those before a resume."""
    edges: EdgeDistribution


class _Begun(NamedTuple):
    """The rollouts of an iteration, which are being played."""

    graphs: list[GraphRollout]
    updates: int
    """Number of updates that their weights have had."""
    task: asyncio.Task[float]
    """Plays them; gives its duration in seconds."""


class TeamTrainer:
    """Trains the adapters of one team, and its edges if ``config.edges`` is ``learned``.

    These attributes may be set before the run:

    - ``loss``: a function of (model, batch) instead of ``config.update.method``, which still says
      whether pairs or scored replies are learned from;
    - ``rehearse``: draws earlier examples for each update, in its thread, so that the agents do
      not forget what they could do before: a function of their number and a random generator;
    - ``edge_optimizer``: makes the steps of learned edges; default: ``ProbabilitySGD``;
    - ``max_steps``: maximum number of steps of an episode; default: the environment's limit;
    - ``log``: called with the numbers of each iteration, such as ``wandb.log``;
    - ``on_progress``: called with (iteration, ``"rollout"``, ``"update"`` or ``"checkpoint"``,
      done, total); for the update in its thread;
    - ``on_episodes``: called with an iteration and its episodes with their credit, before the
      update;
    - ``warn``: called with a text when a model cannot be reached, nothing was learned, or ``log``
      fails; default: ``warnings.warn``.
    """

    max_steps: int | None = None
    _processes: Processes | None = None
    _fresh: Sequence[str] = ()

    def __init__(
        self,
        team: CollabGraph,
        make_environment: MakeEnvironment | Rollouts,
        sample_jobs: SampleJobs,
        *,
        critic: Critic | None = None,
        judge: Judge | None = None,
        adversary: Adversary | None = None,
        teacher: Teacher | None = None,
        edges: EdgeDistribution | None = None,
        config: TeamConfig | None = None,
        folder: Path | None = None,
    ) -> None:
        """
        Args:
            team: the agents and their model. An adapter is added for each agent that names none of
                the model's; agents that name one adapter share it.
            make_environment: see :func:`swarm_ui.rollout.rollout_many`; or open rollouts of other
                processes, to which judge and adversary are then sent. There the agents need a model
                that publishes its versions, such as ``swarm_ui.nodes.PublishedModel``.
            sample_jobs: gives training episodes, which must not be episodes of a test.
            critic: gives credit to the messages of an iteration's episodes, after they were played.
                ``None``: the outcome is the credit ("w/o CR").
            judge: grades single actions for guidance and for negatives. ``None``: the critic, if it
                can; without a judge rollouts are not guided, and all actions of the adversary are
                taken as wrong.
            adversary: writes negatives. ``None``: only real mistakes are rejected.
            teacher: shows a right action where no agent proposed one; the judge grades it.
            edges: the distribution that graphs are drawn from; ``None``: over all edges between
                agents, each with probability 0.5.
            config: settings.
            folder: where checkpoints and ``metrics.jsonl`` are written; ``None``: nowhere.

        Raises:
            ConfigError: the team cannot be trained, or a needed argument is missing.
        """
        if not isinstance(make_environment, Rollouts):
            check_factory(make_environment)
        self.model, self._acting = _models_of(team)
        self.config = (config or TeamConfig()).filled(self.model)
        self.adapters = {a: getattr(team.nodes[a], "adapter", None) or a for a in team.agents}
        self.team = _with_adapters(team, self.adapters)
        self._judge = judge or judge_of(critic)
        self._critic = critic or Outcome()
        self._compares = not isinstance(self._critic, Outcome)
        scores = critic if self._compares else None
        _check_roles(self.config, scores, self._judge, teacher)
        self._environments, self._sample_jobs = make_environment, sample_jobs
        self._adversary, self._teacher, self._folder = adversary, teacher, folder
        self.edges = EdgeDistribution(team) if edges is None else edges
        self.edge_optimizer: torch.optim.Optimizer = ProbabilitySGD(self.edges)
        self.loss: Loss | None = None
        self.log: Callable[[Mapping[str, float]], object] | None = None
        self.rehearse: Rehearse | None = None
        self.on_progress: Callable[[int, str, int, int], None] = lambda *_: None
        self.on_episodes: Callable[[int, Sequence[Episode]], None] = lambda *_: None
        self.warn: Callable[[str], object] = warnings.warn
        self._iteration, self._ahead = 0, list[_Begun]()

    def run_sync(self, *, resume: bool = False, processes: Processes | None = None) -> TeamResult:
        """:meth:`run` where no event loop runs."""
        return asyncio.run(self.run(resume=resume, processes=processes))

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
            await asyncio.to_thread(follow, self.model, processes, self.loss)
            return TeamResult((), self.edges)
        if folder is not None:
            expect_no_links_out(folder)
        with nullcontext() if folder is None else only_writer(folder, "training"):
            state = self._start(resume)
            try:
                for iteration in range(state.iteration, self.config.iterations):
                    state.history.append(await self._iterate(iteration))
                    state.iteration = iteration + 1
                    self._save(state)
                return TeamResult(tuple(state.history), self.edges)
            finally:
                for begun in self._ahead:  # not needed any more
                    begun.task.cancel()
                    await asyncio.gather(begun.task, return_exceptions=True)
                self._ahead.clear()
                if processes is not None:
                    processes.end()

    # -- an iteration -------------------------------------------------------------------------

    async def _iterate(self, iteration: int) -> Metrics:
        """Rollout, credit, pairs, update of adapters and edges."""
        self._iteration, cpu = iteration, time.process_time()
        begun = self._ahead.pop() if self._ahead else self._begin(iteration, iteration)
        seconds = await self._answered(begun.task)
        credit_began = time.perf_counter()
        episodes = await self._answered(self._credited(begun.graphs))
        self.on_episodes(iteration, episodes)
        examples = self._examples(begun.graphs, iteration, iteration - begun.updates)
        seconds += time.perf_counter() - credit_began
        if self.config.overlap and iteration + 1 < self.config.iterations:
            self._ahead.append(self._begin(iteration + 1, iteration))
            if not isinstance(self._environments, Rollouts):
                # Here the agents and the update would use one network at the same time.
                await asyncio.wait({self._ahead[-1].task})
        began = time.perf_counter()
        shared = iteration < self.config.shared_iterations and bool(self._fresh)
        updates = await self._updated(examples, iteration, self._fresh if shared else ())
        edges = self._update_edges(begun.graphs)
        trust = self._trust
        return {
            "kind": "iteration",
            "iteration": iteration,
            "staleness": iteration - begun.updates,
            "shared": shared,
            **episode_metrics(episodes),
            "replayed": sum(graph.again for graph in begun.graphs),
            "credit_source": name_of(self._critic),
            "critic_weights": trust and [trust.weight(k) for k in range(self.team.rounds)],
            **update_metrics(examples, updates),
            "nothing_learned": self._why_nothing(episodes, updates, len(examples)),
            "graphs": [[list(e) for e in g.team.communication_edges] for g in begun.graphs],
            **edges,
            "rollout_seconds": seconds,
            "update_seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
        }

    def _begin(self, iteration: int, updates: int) -> _Begun:
        """Draw the graphs and episodes of an iteration, and begin to play them with the present
        weights and edges."""
        graphs = self._drawn(iteration, self._pinned())

        def progress(done: int, total: int) -> None:
            if iteration == self._iteration:
                self.on_progress(iteration, "rollout", done, total)

        async def play() -> float:
            began = time.perf_counter()
            await play_graphs(
                graphs,
                self._environments,
                publisher=self._acting if isinstance(self._environments, Rollouts) else None,
                concurrency=self.config.concurrency,
                max_steps=self.max_steps,
                patience=partial(self._patience, iteration),
                on_progress=progress,
            )
            return time.perf_counter() - began

        return _Begun(graphs, updates, asyncio.create_task(play()))

    def _drawn(self, iteration: int, team: CollabGraph) -> list[GraphRollout]:
        """The graphs of an iteration, each with its jobs and guidance. If edges are learned, all
        play the same episodes, so that they can be compared; otherwise each plays different ones.
        """
        config, samples = self.config, list[EdgeSample | None]([None])
        if config.edges != "fixed":
            draw = torch.Generator().manual_seed(derive(config.seed, "edges", iteration))
            samples = list(self.edges.sample(config.drawn_graphs, draw))
        seed, count = derive(config.seed, "jobs", iteration), config.episodes
        if config.edges == "learned":
            shares = [self._sample_jobs(max(1, count // len(samples)), seed=seed)] * len(samples)
        else:
            jobs = self._sample_jobs(count, seed=seed)
            shares = [jobs[k :: len(samples)] for k in range(len(samples))]
        default = 0.0 if self._judge is None else GUIDE
        return [
            GraphRollout(
                team if sample is None else team.with_edges(sample.edges),
                sample,
                share,
                Guidance(
                    self._judge,
                    self._adversary,
                    teacher=self._teacher,
                    guide=default if config.guide is None else config.guide,
                    grade_negatives=config.grade_negatives,
                    trust=self._guidance_trust(),
                    # The word is part of the seed: changing it would change every seeded run.
                    seed=derive(config.seed, "referee", iteration, number),
                ),
            )
            for number, (sample, share) in enumerate(zip(samples, shares, strict=True))
        ]

    async def _answered(self, work: Awaitable[T]) -> T:
        """Wait for rollouts or credit. An error of a model reports what the run has saved."""
        try:
            return await work
        except BudgetExceeded:
            raise
        except ModelError as error:
            kind = ModelUnavailable if isinstance(error, ModelUnavailable) else ModelError
            raise kind(
                f"iteration {self._iteration + 1} of {self.config.iterations}: {error}. Nothing of "
                "this iteration was learned; those before it are "
                f"{'in the weights' if self._folder is None else f'saved in {self._folder!s}'}. "
                "To do: resume the run, or start it again, when the model answers"
            ) from error

    async def _credited(self, graphs: Sequence[GraphRollout]) -> list[Episode]:
        """Give the episodes of all graphs, which are one batch, the critic's credit."""
        episodes = [episode for graph in graphs for episode in graph.episodes]
        patience = self._patience(self._iteration)
        credit = await credit_with_retries(self._critic, episodes, patience)
        settled = iter([credited(e, c) for e, c in zip(episodes, credit, strict=True)])
        for graph in graphs:
            graph.episodes = [next(settled) for _ in graph.episodes]
        return [episode for graph in graphs for episode in graph.episodes]

    def _examples(self, graphs: Sequence[GraphRollout], iteration: int, staleness: int) -> Examples:
        """Preference pairs of the episodes, or scored replies for a policy gradient, each with how
        many updates older the weights were that played its episode."""
        if self.config.update.method in POLICY_GRADIENT:
            replies = scored_replies([e for graph in graphs for e in graph.episodes])
            return [msgspec.structs.replace(reply, staleness=staleness) for reply in replies]
        rng = random.Random(derive(self.config.seed, "pairs", iteration))
        share = self.config.easy_share
        made = [preference_pairs(g.episodes, easy_share=share, rng=rng) for g in graphs]
        return [pair for pairs in made for pair in pairs]

    async def _updated(
        self, examples: Examples, iteration: int, together: Sequence[str]
    ) -> list[UpdateStats]:
        """Update the adapters in a thread, which a cancellation ends before its next step."""
        stop, told = threading.Event(), list[tuple[int, int]]()

        def check(done: int, total: int) -> None:
            if stop.is_set():
                raise asyncio.CancelledError
            if told[-1:] != [(done, total)]:
                told.append((done, total))
                self.on_progress(iteration, "update", done, total)

        thread = asyncio.ensure_future(
            asyncio.to_thread(
                update_team, self.model, examples, self.adapters, self.config, iteration,
                together=together, loss=self.loss, rehearse=self.rehearse,
                processes=self._processes, check=check,
            )
        )  # fmt: skip
        try:
            return await asyncio.shield(thread)
        finally:
            stop.set()
            await asyncio.wait({thread})

    def _update_edges(self, graphs: Sequence[GraphRollout]) -> Metrics:
        """Update the edge distribution, if edges are learned."""
        samples = [graph.sample for graph in graphs if graph.sample is not None]
        if self.config.edges != "learned":
            return {}
        utility = decision_credit if self._compares else success_rate
        credit = None
        if self.config.edge_credit:
            credit = [
                episode_edge_credit(g.episodes, edges=g.team.communication_edges) for g in graphs
            ]
        before = self.edges.logits.detach().sigmoid()
        self.edge_optimizer.zero_grad()
        edge_loss(
            self.edges, samples, [utility(graph.episodes) for graph in graphs], credit,
            credit_weight=self.config.edge_credit,
        ).backward()  # type: ignore[no-untyped-call]  # fmt: skip
        self.edge_optimizer.step()
        change = (self.edges.logits.detach().sigmoid() - before).abs()
        found = {f"edge/{a}>{b}": p for (a, b), p in self.edges.marginals().items()}
        found["edges_moved"] = float(change.max()) if change.numel() else 0.0
        return {**found, "edges_entropy": self.edges.entropy().item()}

    # -- what it needs ------------------------------------------------------------------------

    @property
    def _learned(self) -> Edges:
        return Edges(self.edges, self.edge_optimizer)

    @property
    def _trust(self) -> Trust | None:
        """The critic, if its weight is learned."""
        return self._critic if isinstance(self._critic, Trust) else None

    def _guidance_trust(self) -> float:
        """The factor by which the probability of guidance is multiplied: a learned weight of the
        judge in the last round, because the vote decides on the proposals of that round."""
        inner: object = None if self._trust is None else self._trust.critic
        if self._trust is None or self._judge is not inner:
            return 1.0
        return max(0.0, self._trust.weight(self.team.rounds - 1))

    def _pinned(self) -> CollabGraph:
        """The team. Where other processes play, each agent names the version of its adapter,
        because others may come while they do."""
        acting: Any = self._acting
        if not isinstance(self._environments, Rollouts) or not hasattr(acting, "publish"):
            return self.team
        versions: Mapping[str, str] = acting.publish()
        exact = {agent: versions.get(name, name) for agent, name in self.adapters.items()}
        return _with_adapters(self.team, exact)

    def _patience(self, iteration: int) -> Patience:
        """For models in the rollouts or the credit of an iteration."""

        def tell(text: str) -> None:
            self.warn(f"iteration {iteration + 1}: {text}")

        return Patience(self.config.patience, tell)

    def _why_nothing(
        self, episodes: Sequence[Episode], updates: Sequence[UpdateStats], examples: int
    ) -> str:
        """Warn if no adapter was trained; returns the reason, or nothing."""
        if any(update.steps for update in updates):
            return ""
        source = name_of(self._critic)
        reason = why_nothing_was_learned(episodes, self.config, source=source, examples=examples)
        of = f"iteration {self._iteration + 1} of {self.config.iterations}"
        self.warn(f"{of}: no adapter was trained: {reason}")
        return reason

    def _start(self, resume: bool) -> TeamState:
        """The state of the last checkpoint or of a new run, with all adapters in the model."""
        state, folder = None, self._folder
        if folder is not None and not resume and any((folder / "checkpoints").glob("iteration-*")):
            raise ConfigError(
                f"team training: '{folder}' holds checkpoints of a run already; resume it "
                "with run(resume=True), or choose another folder"
            )
        if folder is not None and resume:
            state = checkpoint.load(folder, self.model, self._learned, self.config, self.adapters)
        if state is not None and state.trust is not None and self._trust is not None:
            self._trust.load_state_dict(state.trust)
        self._add_adapters()
        if state is None:
            state = TeamState(
                untrained=untrained(self.model, dict.fromkeys(self.adapters.values()))
            )
        self._fresh = state.untrained
        return state

    def _save(self, state: TeamState) -> None:
        """Write the checkpoint and the log of the newest iteration."""
        iteration, metrics = state.iteration - 1, state.history[-1]
        self.on_progress(iteration, "checkpoint", 0, 1)
        if self._folder is not None:
            state.config, state.adapters = msgspec.to_builtins(self.config), self.adapters
            state.trust = None if self._trust is None else self._trust.state_dict()
            checkpoint.save(self._folder, state, self.model, self._learned)
        if self.log is not None:
            try:
                self.log(numbers(metrics))
            except Exception as error:
                self.log = None
                self.warn(f"log failed: {error!r}; the run continues without it")
        self.on_progress(iteration, "checkpoint", 1, 1)

    def _add_adapters(self) -> None:
        """Add the adapters that the model does not have."""
        for name in dict.fromkeys(self.adapters.values()):
            if name not in self.model.adapters:
                # New adapters draw their weights from torch's global stream.
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(self.config.seed, "adapter", name))
                    self.model.add_adapter(name, self.config.rank, 2 * self.config.rank)


def _models_of(team: CollabGraph) -> tuple[Trainable, object]:
    """The model that is trained, and the one that answers the agents with its adapters."""
    asked = {id(m): m for a in team.agents if (m := getattr(team.nodes[a], "model", None))}
    acting = next(iter(asked.values()), None)
    learner = getattr(acting, "learner", acting)
    if len(asked) != 1 or not isinstance(learner, Trainable):
        shown = ", ".join(map(repr, asked.values())) or "agents without a model"
        raise ConfigError(
            "team training: expected agents that ask one model in this process whose adapters can "
            f"be trained, such as LocalModel.load() or CausalModel.named('smollm2'), got {shown}"
        )
    return learner, acting


def _with_adapters(team: CollabGraph, adapters: Mapping[str, str]) -> CollabGraph:
    """The team, in which each agent uses the adapter that is given for it. Agents that are not
    dataclasses with a field ``adapter`` choose their adapter themselves."""
    for agent, adapter in adapters.items():
        node: Any = team.nodes[agent]
        own = "adapter" in getattr(type(node), "__dataclass_fields__", {})
        if own and node.adapter != adapter:
            team = team.with_node(dataclasses.replace(node, adapter=adapter), name=agent)
    return team


def _check_roles(config: TeamConfig, critic: object, judge: Judge | None, teacher: object) -> None:
    """Raise ``ConfigError`` for a role or a setting that needs another role."""
    needs = [name_of(teacher)] * (teacher is not None and judge is None)
    needs += ["guide"] * (bool(config.guide) and judge is None)
    needs += ["edge_credit"] * (bool(config.edge_credit) and critic is None)
    if needs:
        raise ConfigError(
            f"team training: {' and '.join(needs)} would not be used, because no critic scores "
            "messages and no judge grades actions; give TeamTrainer(critic=...) or (judge=...), or "
            f"leave {'it' if len(needs) == 1 else 'them'} out"
        )
