"""Coordination on networks in experiments: the team is the one of each task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Literal

from swarm_ui.environments.benchmark import Benchmark, MakeAgent, Opened
from swarm_ui.environments.coordination.environment import CoordinationEnvironment
from swarm_ui.environments.coordination.policy import CoordinationPolicy
from swarm_ui.environments.coordination.problem import LARGE, SMALL, task_names
from swarm_ui.environments.recorded.scores import Column, measured
from swarm_ui.rollout import Policy
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode


class Coordination(Benchmark):
    """Coordination on networks, after AgentsNet."""

    label: ClassVar[str] = (
        "After AgentsNet, on networks of our own: scores are not comparable with published ones"
    )
    splits: ClassVar[tuple[str, ...]] = ("small", "large", "validation")
    trains_on: ClassVar[str | None] = None
    evenly: ClassVar[bool] = True

    name: Literal["coordination"] = "coordination"

    @asynccontextmanager
    async def open(self, split: str) -> AsyncIterator[Opened]:
        yield Opened(CoordinationEnvironment, score=_measures)

    def known_tasks(self) -> Sequence[str]:
        return task_names()

    def split_tasks(self, split: str) -> Sequence[str]:
        return task_names(LARGE if split == "large" else SMALL)

    def test_split(self) -> str:
        """``small`` or ``large``; empty: the tasks are of both."""
        large = frozenset(task_names(LARGE))
        if self.tasks and all(task in large for task in self.tasks):
            return "large"
        return "" if any(task in large for task in self.tasks) else "small"

    def team(self, make_agent: MakeAgent, name: str) -> Policy:
        return CoordinationPolicy(make_agent, name=name)


def _measures(episodes: Sequence[Episode]) -> tuple[Measure, ...]:
    """The mean score. Episodes with a fault are left out."""
    scores = [(e.task, [{"score": e.steps[-1].reward}]) for e in episodes if e.success is not None]
    return measured([Column("score", "score", "score")], scores)
