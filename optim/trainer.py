"""Stage 2: a team learns its weights and its edges from its own rollouts.

    draw edges -> roll out -> credit -> pairs -> update adapters -> update edges -> checkpoint

After CollabUIAgents (arXiv 2502.14496). What the paper leaves open is a setting of
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import msgspec
import torch

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.credit import Critic, Judge, credited
from swarm_ui.engine.tasks import together
from swarm_ui.environment import check_factory
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError, ModelUnavailable
from swarm_ui.files import only_writer
from swarm_ui.node import derive
from swarm_ui.optim import checkpoint, metrics
from swarm_ui.optim.adversary import Adversary, Teacher
from swarm_ui.optim.checkpoint import TeamState
from swarm_ui.optim.config import GUIDE, POLICY_GRADIENT, TeamConfig
from swarm_ui.optim.credit.critic import Outcome, credit_of, judge_of, name_of
from swarm_ui.optim.credit.trust import Trust
from swarm_ui.optim.distributed import Processes
from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution, ProbabilitySGD, edge_loss
from swarm_ui.optim.examples import Trainable
from swarm_ui.optim.guidance import Guidance
from swarm_ui.optim.losses import Loss
from swarm_ui.optim.metrics import Metrics
from swarm_ui.optim.preferences import PreferencePair, preference_pairs, scored_replies
from swarm_ui.optim.update import Rehearse, UpdateStats, follow, untrained, update_team
from swarm_ui.rollout import GraphPolicy, Job, LocalWorker, MakeEnvironment, Rollouts, rollout_many
from swarm_ui.storage.run_directory import expect_no_links_out
from swarm_ui.trace.records import Episode


class SampleJobs(Protocol):
    """Draws training episodes, such as ``phone.training_jobs``."""

    def __call__(self, count: int, /, *, seed: int) -> Sequence[Job]: ...


class TeamResult(NamedTuple):
    """The result of a training run. The weights are in the team's model."""

    history: tuple[Metrics, ...]
    """Metrics of all iterations, including those before a resume."""
    edges: EdgeDistribution


class TeamTrainer:
    """Trains the adapters of one team, and its edges if ``config.edges`` is ``learned``.

    These attributes may be set before the run:

    - ``loss``: a function of (model, batch) instead of ``config.update.method``, which still says
      whether pairs or scored replies are learned from;
    - ``rehearse``: a function of a number and a random generator, which draws earlier examples for
      each update, in its thread, against forgetting;
    - ``max_steps``: maximum number of steps of an episode; default: the environment's limit;
    - ``log``: called with the numbers of each iteration, such as ``wandb.log``;
    - ``on_progress``: called with (iteration, ``"rollout"``, ``"update"`` or ``"checkpoint"``,
      done, total); for the update in its thread;
    - ``on_episodes``: called with an iteration and its credited episodes, before the update;
    - ``warn``: called with a text when nothing was learned; default: ``warnings.warn``.
    """

    max_steps: int | None = None
    loss: Loss | None = None
    rehearse: Rehearse | None = None

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
                processes, with a model that publishes versions, such as ``PublishedModel``.
            sample_jobs: gives training episodes, which must not be episodes of a test.
            critic: gives credit to the messages of an iteration's episodes. ``None``: the outcome
                is the credit ("w/o CR").
            judge: grades single actions for guidance and negatives. ``None``: the critic, if it
                can; without a judge nothing is guided, and all that the adversary writes is wrong.
            adversary: writes negatives. ``None``: only real mistakes are rejected.
            teacher: shows a right action where no agent proposed one; the judge grades it.
            edges: the distribution that graphs are drawn from; ``None``: over all edges between
                agents, each with probability 0.5.
            folder: where checkpoints and ``metrics.jsonl`` are written; ``None``: nowhere.

        Raises:
            ConfigError: the team cannot be trained, or a needed argument is missing.
        """
        if not isinstance(make_environment, Rollouts):
            check_factory(make_environment)
        self.model, self._acting = _models_of(team)
        self.config = config or TeamConfig()
        self.adapters = {a: getattr(team.nodes[a], "adapter", None) or a for a in team.agents}
        self.team = _with_adapters(team, self.adapters)
        self.edges = EdgeDistribution(team) if edges is None else edges
        self._edge_optimizer = ProbabilitySGD(self.edges)
        self._settings = {**msgspec.to_builtins(self.config), "adapters": self.adapters}
        self._critic, self._judge = critic or Outcome(), judge or judge_of(critic)
        self._trust = self._critic if isinstance(self._critic, Trust) else None
        self._environments, self._sample_jobs = make_environment, sample_jobs
        self._adversary, self._teacher, self._folder = adversary, teacher, folder
        if self._judge is None and (teacher is not None or self.config.guide):
            raise ConfigError(
                f"team training: {'guide' if teacher is None else name_of(teacher)} would not be "
                "used, because no judge grades actions; give TeamTrainer(critic=...) or "
                "(judge=...), or leave it out"
            )
        self.log: Callable[[Mapping[str, float]], object] = lambda _: None
        self.on_progress: Callable[[int, str, int, int], None] = lambda *_: None
        self.on_episodes: Callable[[int, Sequence[Episode]], None] = lambda *_: None
        self.warn: Callable[[str], object] = warnings.warn

    def run_sync(self, *, resume: bool = False, processes: Processes | None = None) -> TeamResult:
        """:meth:`run` where no event loop runs."""
        return asyncio.run(self.run(resume=resume, processes=processes))

    async def run(self, *, resume: bool = False, processes: Processes | None = None) -> TeamResult:
        """Run all iterations, or the remaining ones of a run that was interrupted.

        Args:
            resume: continue from the last checkpoint of the folder, if there is one.
            processes: share the updates; the first one does all else.

        Raises:
            ConfigError: the folder holds a run and ``resume`` is not set, that run had other
                settings, or a link leads out of the folder.
            ModelError: a model could not be reached, or failed in all episodes of an iteration.
                Resume the run when it answers.
            LearningError: a loss or a gradient was not a number. The last checkpoint is kept.
        """
        folder = self._folder
        if processes is not None and processes.rank:
            self._add_adapters()
            await asyncio.to_thread(follow, self.model, processes, self.loss)
            return TeamResult((), self.edges)
        if folder is not None:
            expect_no_links_out(folder)
        with nullcontext() if folder is None else only_writer(folder, "training"):
            try:
                state = self._start(resume)
                while state.iteration < self.config.iterations:
                    state.history.append(await self._iterate(state, processes))
                    state.iteration += 1
                    self._save(state)
                return TeamResult(tuple(state.history), self.edges)
            finally:
                if processes is not None:
                    processes.end()

    # -- an iteration -------------------------------------------------------------------------

    async def _iterate(self, state: TeamState, processes: Processes | None) -> Metrics:
        began, cpu = time.perf_counter(), time.process_time()
        config, iteration = self.config, state.iteration
        dags: list[EdgeSample] = []
        if config.edges != "fixed":
            draw = torch.Generator().manual_seed(derive(config.seed, "edges", iteration))
            dags = self.edges.sample(config.drawn_graphs, draw)
        teams = [self.team.with_edges(dag.edges) for dag in dags] or [self.team]
        played = await self._played(iteration, teams)
        episodes = [episode for each in played for episode in each]
        self.on_episodes(iteration, episodes)
        if config.update.method in POLICY_GRADIENT:
            examples = scored_replies(episodes)
        else:
            rng, share = random.Random(derive(config.seed, "pairs", iteration)), config.easy_share
            made = [preference_pairs(each, easy_share=share, rng=rng) for each in played]
            examples = [pair for pairs in made for pair in pairs]
        rolled = time.perf_counter()
        shared = state.untrained if iteration < config.shared_iterations else []
        updates = await self._updated(iteration, examples, shared, processes)
        edges = self._update_edges(dags, played) if config.edges == "learned" else {}
        source, trust, nothing = name_of(self._critic), self._trust, ""
        if not any(update.steps for update in updates):
            nothing = metrics.why_nothing_was_learned(episodes, config, source, len(examples))
            self.warn(f"iteration {iteration + 1} of {config.iterations}: no adapter was trained: "
                      f"{nothing}")  # fmt: skip
        return {
            "kind": "iteration",
            "iteration": iteration,
            "shared": bool(shared),
            **metrics.episode_metrics(episodes),
            "credit_source": source,
            "critic_weights": trust and [trust.weight(k) for k in range(self.team.rounds)],
            **metrics.update_metrics(examples, updates),
            "nothing_learned": nothing,
            "graphs": [[list(edge) for edge in team.communication_edges] for team in teams],
            **edges,
            "rollout_seconds": rolled - began,
            "update_seconds": time.perf_counter() - rolled,
            "cpu_seconds": time.process_time() - cpu,
        }

    async def _played(self, iteration: int, teams: Sequence[CollabGraph]) -> list[list[Episode]]:
        """The episodes of each graph, with the credit that the critic gives to all as one batch.
        If edges are learned, all graphs play the same episodes, so that they can be compared."""
        config, count = self.config, len(teams)
        same = config.edges == "learned"
        number = max(1, config.episodes // count) if same else config.episodes
        jobs = self._sample_jobs(number, seed=derive(config.seed, "jobs", iteration))
        shares = [jobs if same else jobs[k::count] for k in range(count)]
        try:
            played = await self._rollouts(iteration, teams, shares)
            episodes = [episode for each in played for episode in each]
            _expect_answers(episodes)
            credit = iter(await credit_of(self._critic, episodes))
        except BudgetExceeded:
            raise
        except ModelError as error:
            kind = ModelUnavailable if isinstance(error, ModelUnavailable) else ModelError
            kept = "in the weights" if self._folder is None else f"saved in {self._folder}"
            raise kind(
                f"iteration {iteration + 1} of {config.iterations}: {error}. Nothing of this "
                f"iteration was learned; those before it are {kept}. To do: resume the run, or "
                "start it again, when the model answers"
            ) from error
        return [[credited(episode, next(credit)) for episode in each] for each in played]

    async def _rollouts(
        self, iteration: int, teams: Sequence[CollabGraph], shares: Sequence[Sequence[Job]]
    ) -> list[list[Episode]]:
        places, total, done = self._environments, sum(map(len, shares)), [0] * len(teams)
        if isinstance(places, Rollouts) and hasattr(self._acting, "publish"):
            self._acting.publish()
            if hasattr(self._acting, "prepare"):
                await self._acting.prepare()

        def play(k: int, rollouts: Rollouts) -> Any:
            def count(finished: int, *_: object) -> None:
                done[k] = finished
                self.on_progress(iteration, "rollout", sum(done), total)

            policy = GraphPolicy(teams[k], name="training team")
            return rollout_many(rollouts, policy, shares[k], progress=count,
                                intervention=self._guidance(iteration, k),
                                max_steps=self.max_steps)  # fmt: skip

        async with AsyncExitStack() as stack:
            if not isinstance(places, Rollouts):
                worker = LocalWorker(places, slots=self.config.concurrency)
                places = await stack.enter_async_context(Rollouts([worker]))
            return await together([play(k, places) for k in range(len(teams))])

    def _guidance(self, iteration: int, graph: int) -> Guidance:
        config, judge, weight = self.config, cast("object", self._judge), 1.0
        if self._trust is not None and self._trust.critic is judge:
            weight = self._trust.weight(self.team.rounds - 1)  # the vote decides on that round
        default = 0.0 if self._judge is None else GUIDE
        return Guidance(
            self._judge, self._adversary, teacher=self._teacher, trust=weight,
            guide=default if config.guide is None else config.guide,
            grade_negatives=config.grade_negatives,
            # The word is part of the seed: changing it would change every seeded run.
            seed=derive(config.seed, "referee", iteration, graph),
        )  # fmt: skip

    async def _updated(
        self, iteration: int, examples: Sequence[PreferencePair], shared: Sequence[str],
        processes: Processes | None,
    ) -> list[UpdateStats]:  # fmt: skip
        """Update the adapters in a thread, which a cancellation ends before its next step."""
        stop, told = threading.Event(), (-1, 0)

        def check(done: int, total: int) -> None:
            nonlocal told
            if stop.is_set():
                raise asyncio.CancelledError
            if told != (done, total):
                told = done, total
                self.on_progress(iteration, "update", done, total)

        thread = asyncio.ensure_future(
            asyncio.to_thread(
                update_team, self.model, examples, self.adapters, self.config, iteration,
                together=shared, loss=self.loss, rehearse=self.rehearse, processes=processes,
                check=check,
            )
        )  # fmt: skip
        try:
            return await asyncio.shield(thread)
        finally:
            stop.set()
            await asyncio.wait({thread})

    def _update_edges(
        self, dags: Sequence[EdgeSample], played: Sequence[Sequence[Episode]]
    ) -> Metrics:
        """Make one step towards the graphs of high utility."""
        outcome = isinstance(self._critic, Outcome)
        utility = metrics.success_rate if outcome else metrics.decision_credit
        before = self.edges.logits.detach().sigmoid()
        self._edge_optimizer.zero_grad()
        edge_loss(self.edges, dags, list(map(utility, played))).backward()  # type: ignore[no-untyped-call]
        self._edge_optimizer.step()
        change = (self.edges.logits.detach().sigmoid() - before).abs().tolist()
        found = {f"edge/{a}>{b}": p for (a, b), p in self.edges.marginals().items()}
        return {**found, "edges_moved": max(change, default=0.0)}

    # -- between iterations -------------------------------------------------------------------

    def _start(self, resume: bool) -> TeamState:
        """The state of the last checkpoint or of a new run, with all adapters in the model."""
        state, folder = None, self._folder
        if folder is not None and resume:
            state = checkpoint.load(folder, self.model, self.edges, self._settings)
        elif folder is not None and any((folder / "checkpoints").glob("iteration-*")):
            raise ConfigError(
                f"team training: '{folder}' holds checkpoints of a run already; resume it "
                "with run(resume=True), or choose another folder"
            )
        self._add_adapters()
        if state is None:
            names = dict.fromkeys(self.adapters.values())
            return TeamState(settings=self._settings, untrained=untrained(self.model, names))
        if state.trust is not None and self._trust is not None:
            self._trust.rounds = state.trust
        return state

    def _save(self, state: TeamState) -> None:
        """Write the checkpoint and the log of the newest iteration."""
        if self._folder is not None:
            state.settings = self._settings  # a resumed run may change some
            state.trust = None if self._trust is None else self._trust.rounds
            checkpoint.save(self._folder, state, self.model, self.edges)
        self.log(metrics.numbers(state.history[-1]))
        self.on_progress(state.iteration - 1, "checkpoint", 1, 1)

    def _add_adapters(self) -> None:
        for name in dict.fromkeys(self.adapters.values()):
            if name not in self.model.adapters:
                # New adapters draw their weights from torch's global stream.
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive(self.config.seed, "adapter", name))
                    self.model.add_adapter(name, self.config.rank, 2 * self.config.rank)


def _expect_answers(episodes: Sequence[Episode]) -> None:
    """Raise ``ModelUnavailable`` if a call got no answer, which says nothing about the team, and
    ``ModelError`` if models or nodes failed in all episodes."""
    faults, expected = [episode.fault for episode in episodes], "expected a model that answers, got"
    calls = [call for e in episodes for record in e.steps for call in record.trace.calls]
    failed = [f for f in (*faults, *(call.error for call in calls)) if f is not None]
    if missed := [f for f in failed if f.kind == "unavailable"]:
        raise ModelUnavailable(f"{len(missed)} calls were left unanswered; {expected}: {missed[0]}")
    ours = [f for f in failed if f.kind in ("model", "node", "timeout")]
    if None not in faults and ours:
        raise ModelError(f"all {len(faults)} episodes were lost to faults; {expected}: {ours[0]}")


def _models_of(team: CollabGraph) -> tuple[Trainable, Any]:
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
