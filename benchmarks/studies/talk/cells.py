"""Cells of the study: one trained team, and what it decides with and without its edges."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import msgspec

from benchmarks.studies.talk.plan import Plan
from benchmarks.studies.weights import digest
from benchmarks.support.origin import commit
from demos.base_agent.stream import rehearsal_for
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import VALIDATION_SEEDS, PhoneEnvironment, draw_jobs, tasks
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.settings import plain
from swarm_ui.experiment.teams import agent_names, trained_arms
from swarm_ui.experiment.training.stage2 import TrainingEnvironment, train_team
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.graph.topology import Edge
from swarm_ui.nodes.models.tiny_agent.local_model import BASE_AGENT, LocalModel
from swarm_ui.optim.credit.scripted import ScriptedCritic
from swarm_ui.rollout import GraphPolicy, Intervention, rollout_many
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.records import Trace


class Seen(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The last round of one decision; 1 is right, and 0 wrong."""

    right: list[int]
    """Each agent's proposal."""
    alike: bool
    """Whether all agents say the same."""
    vote: int


class Decision(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One screen, on which the team decided twice."""

    task: str
    seed: int
    silent: Seen
    talking: Seen


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One team."""

    seed: int
    commit: str
    edges: list[Edge]
    """The edges over which the team sends messages."""
    graph: str
    """How the DAG was chosen."""
    digest: str
    """Digest of the trained weights."""
    decisions: list[Decision]
    training_seconds: float
    seconds: float
    """CPU time of training and of the decisions."""


class Watch:
    """Lets the team with edges also decide on every screen of the team without edges."""

    def __init__(self, team: CollabGraph) -> None:
        self.found: list[Decision] = []
        self._team, self._critic = team, ScriptedCritic(PhoneEnvironment)

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        assert isinstance(environment, PhoneEnvironment)
        state = environment.snapshot()
        talk = await self._team.run(trace.observation, seed=trace.seed, run_id=trace.run)
        task, seed, _ = trace.run.rsplit("/", 2)
        self.found.append(
            Decision(
                task=task, seed=int(seed), silent=await self._seen(trace, state),
                talking=await self._seen(talk, state),
            )
        )  # fmt: skip
        return None

    async def _seen(self, trace: Trace, state: object) -> Seen:
        last = {m.sender: m.action for m in trace.messages if m.round == trace.rounds - 1}
        asked = [last.get(agent) for agent in trace.agents] + [trace.action]
        known = [action for action in asked if action is not None]
        marks = iter(await self._critic.grade(trace.observation, known, state))
        *right, vote = [0 if action is None else int((next(marks) or 0.0) > 0) for action in asked]
        said = {action.key for action in asked[:-1] if action is not None}
        return Seen(right=right, alike=len(said) == 1, vote=vote)


def play(folder: Path, seed: int, plan: Plan, display: ProgressDisplay) -> Cell:
    """Train a team as the demo does, and let it decide with and without its edges.

    Args:
        folder: run directory of the training, which goes on there if it was interrupted.
        seed: of the training.
        plan: the sizes.
        display: shows the progress.
    """
    began, settings = time.process_time(), plan.settings(seed)
    model = LocalModel.load(BASE_AGENT)
    if (folder / "config.json").exists():
        run = RunDirectory.open_existing(folder)
    else:
        run = RunDirectory.create(folder, name=folder.name, config=plain(settings))
    environment = TrainingEnvironment(
        PhoneEnvironment,
        lambda count, *, seed: phone.training_jobs(settings, count, random.Random(seed)),
        phone.scripted_critic(settings),
        phone.CONCURRENCY,
        rehearse=rehearsal_for(model),
    )
    with display.bar(f"team {seed}: stage 2", settings.iterations) as bar:
        trained = asyncio.run(train_team(settings, run, model, environment, bar))
    arms = {arm.name: arm for arm in trained_arms(settings, trained.edges, trained.edges_label)}
    watch = Watch(arms["trained-team"].graph(model))
    jobs = draw_jobs(tasks("train"), plan.watched, phone.TEST_DRAW, seeds=VALIDATION_SEEDS)
    asyncio.run(
        rollout_many(
            PhoneEnvironment, GraphPolicy(arms["trained-vote"].graph(model)), jobs,
            concurrency=phone.CONCURRENCY, intervention=watch,
        )
    )  # fmt: skip
    return Cell(
        seed=seed, commit=commit(), edges=list(trained.edges), graph=trained.edges_label,
        digest=digest(model, agent_names(settings.agents)),
        decisions=sorted(watch.found, key=lambda d: (d.task, d.seed)),
        training_seconds=round(sum(m["cpu_seconds"] for m in trained.history), 1),
        seconds=time.process_time() - began,
    )  # fmt: skip
