"""Cells of the study: what each team of a pool decides on the same screens, and its success."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies.different_bases.agents import digest, team
from benchmarks.studies.different_bases.plan import AGENTS, DIFFERENT, Plan, Split
from benchmarks.support.origin import commit
from swarm_ui.environment import Environment
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.experiment.environments.phone import CONCURRENCY
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
from swarm_ui.rollout import GraphPolicy, Intervention, rollout_many
from swarm_ui.stats import Outcome, outcomes
from swarm_ui.trace.records import Trace


class Decision(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One screen, on which all teams decided."""

    task: str
    seed: int
    visitor: str
    """The team whose vote reached the screen."""
    right: list[list[int]]
    """``[agent, position]``: whether this agent is right with the view of this position (0, 1)."""
    votes: list[int]
    """Whether the vote of each agent's clones is right, and last that of the different agents."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One pool on one split."""

    pool: str
    split: Split
    commit: str
    digests: list[str]
    """SHA-256 of each agent's weights."""
    decisions: list[Decision]
    success: dict[str, list[Outcome]]
    """Of the votes, by team."""
    seconds: float
    """CPU time."""


def clones(agent: int) -> str:
    """Name of the team of four times this agent."""
    return f"clones of agent {agent}"


class Watch:
    """Lets all teams decide on every screen that one of them reaches, and grades them."""

    def __init__(self, visitor: str, teams: dict[str, CollabGraph]) -> None:
        self.found: list[Decision] = []
        self._visitor, self._teams = visitor, teams
        self._grader = PhoneEnvironment()

    async def __call__(
        self, index: int, trace: Trace, environment: Environment
    ) -> Intervention | None:
        assert isinstance(environment, PhoneEnvironment)
        state = environment.snapshot()
        asked = [name for name in self._teams if name != self._visitor]
        traces = dict(zip(asked, await asyncio.gather(*[
            self._teams[name].run(trace.observation, seed=trace.seed, run_id=trace.run)
            for name in asked
        ]), strict=True)) | {self._visitor: trace}  # fmt: skip
        self._grader.restore(state)
        task, seed, _ = trace.run.rsplit("/", 2)
        self.found.append(
            Decision(
                task=task, seed=int(seed), visitor=self._visitor,
                right=[self._each(traces[clones(k)]) for k in range(AGENTS)],
                votes=[self._vote(traces[name]) for name in self._teams],
            )
        )  # fmt: skip
        return None

    def _each(self, trace: Trace) -> list[int]:
        said = {message.sender: message.action for message in trace.messages}
        actions = [said[f"agent_{k}"] for k in range(AGENTS)]
        return [int(action is not None and self._grader.grade(action) > 0) for action in actions]

    def _vote(self, trace: Trace) -> int:
        return int(trace.action is not None and self._grader.grade(trace.action) > 0)


def play(pool: str, agents: Sequence[Path], split: Split, plan: Plan) -> Cell:
    """Play the votes of all teams of a pool. On every screen that the different agents or the
    clones of the first agent reach, all teams decide."""
    began = time.process_time()
    models = [LocalModel.load(path) for path in agents]
    teams = {clones(k): team([model] * AGENTS) for k, model in enumerate(models)}
    teams[DIFFERENT] = team(models)
    jobs = plan.jobs(split)
    success: dict[str, list[Outcome]] = {}
    decisions: list[Decision] = []
    for name, graph in teams.items():
        watch = Watch(name, teams) if name in (clones(0), DIFFERENT) else None
        episodes = asyncio.run(
            rollout_many(
                PhoneEnvironment, GraphPolicy(graph, name=name), jobs,
                concurrency=CONCURRENCY, intervention=watch,
            )
        )  # fmt: skip
        success[name] = outcomes(episodes)
        decisions += [] if watch is None else watch.found
    return Cell(
        pool=pool, split=split, commit=commit(), digests=[digest(path) for path in agents],
        decisions=sorted(decisions, key=lambda d: (d.visitor, d.task, d.seed)), success=success,
        seconds=time.process_time() - began,
    )  # fmt: skip
