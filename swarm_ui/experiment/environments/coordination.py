"""Coordination on networks: the team is the one of each task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarm_ui.agent_view import AgentView
from swarm_ui.environments.recorded.scores import (
    RESAMPLES,
    MeasureInput,
    measured,
)
from swarm_ui.experiment.config import EnvironmentSection
from swarm_ui.experiment.environments.spec import (
    DEFAULT_EPISODES,
    EnvironmentSpec,
    OpenEnvironment,
    Opening,
)
from swarm_ui.experiment.teams import Arm
from swarm_ui.model import ChatModel
from swarm_ui.node import Node
from swarm_ui.nodes.agent import AgentNode
from swarm_ui.rollout import Job, Policy, spread_jobs
from swarm_ui.stats import Measure
from swarm_ui.trace.records import Episode

if TYPE_CHECKING:
    from swarm_ui.optim.stage1 import HeldOut


@asynccontextmanager
async def _open(section: EnvironmentSection) -> Opening:
    from swarm_ui.environments.coordination import CoordinationEnvironment

    yield OpenEnvironment(CoordinationEnvironment, score=_measures)


def _measures(episodes: Sequence[Episode]) -> tuple[Measure, ...]:
    """The mean score. Episodes with a fault are left out."""
    scores: dict[str, list[float]] = {}
    for episode in episodes:
        if episode.success is not None:
            scores.setdefault(episode.task, []).append(episode.steps[-1].reward)
    inputs = (MeasureInput(name="score", key="score", values=scores),)
    return measured(inputs, seed=0, resamples=RESAMPLES)


def _tasks(section: EnvironmentSection) -> Sequence[str]:
    from swarm_ui.environments.coordination import LARGE, SMALL, task_names

    return task_names(LARGE if section.split == "large" else SMALL)


def _all_tasks() -> Sequence[str]:
    from swarm_ui.environments.coordination import task_names

    return task_names()


def _split_of(tasks: Sequence[str]) -> str:
    """``small`` or ``large``; empty: the tasks are of both."""
    from swarm_ui.environments.coordination import LARGE, task_names

    large = frozenset(task_names(LARGE))
    if all(task in large for task in tasks):
        return "large"
    return "" if any(task in large for task in tasks) else "small"


def _test_jobs(section: EnvironmentSection) -> list[Job]:
    from swarm_ui.environments.coordination import TEST_SEEDS, VALIDATION_SEEDS

    count = section.episodes or (len(section.tasks) or DEFAULT_EPISODES)
    seeds = VALIDATION_SEEDS if section.split == "validation" else TEST_SEEDS
    names = section.tasks or _tasks(section)
    return spread_jobs(tuple(names), count, section.seed, seeds)


def _held_out() -> HeldOut:
    from swarm_ui.environments.coordination import TEST_SEEDS, VALIDATION_SEEDS
    from swarm_ui.optim.stage1 import HeldOut

    return HeldOut.of(seeds=[VALIDATION_SEEDS, TEST_SEEDS])


@dataclass(frozen=True, slots=True)
class _MakeAgent:
    """Makes the agent of each name: all use one model and one adapter. It can be sent to workers,
    if the model can."""

    model: ChatModel
    arm: Arm

    def __call__(self, name: str, view: AgentView) -> Node:
        arm = self.arm
        adapter = arm.adapters[0] if arm.adapters else None
        heat = arm.temperatures[0] if arm.temperatures else arm.temperature
        return AgentNode(name, self.model, adapter, heat, view, arm.max_tokens)


def _policy(arm: Arm, model: ChatModel) -> Policy:
    from swarm_ui.environments.coordination import CoordinationPolicy

    return CoordinationPolicy(_MakeAgent(model, arm), name=f"{model.name}, one agent for each name")


SPEC = EnvironmentSpec(
    name="coordination",
    label="After AgentsNet, on networks of our own: scores are not comparable with published ones",
    open=_open,
    splits=("small", "large", "validation"),
    trains_on=None,
    tasks=_tasks,
    split_of=_split_of,
    known_tasks=_all_tasks,
    test_jobs=_test_jobs,
    held_out=_held_out,
    team=_policy,
)
