"""Recorded tasks as environments: each step shows the next recorded page.

At each step the agent sees a recorded page and the recorded actions before it. Its first action on
the page is its answer. Then the next recorded page follows, regardless of the answer, so a mistake
does not affect later steps. The scores measure agreement with the recording, not success.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past
from swarm_ui.rollout import Job

NONE_OF_THESE = Action(action_type="wait")
"""The answer of an agent that finds no right element on the page."""


class GoldStep(Protocol):
    """A recorded page and the action on it."""

    @property
    def observation(self) -> Observation:
        """The page, with the recorded actions before it as history. It never changes."""
        ...

    @property
    def past(self) -> Past:
        """The recorded action, as an entry of the next page's history."""
        ...

    def right(self, action: Action) -> bool:
        """Whether ``action`` equals the recorded action by the benchmark's rule."""
        ...

    def expert(self) -> Action:
        """The recorded action, or :data:`NONE_OF_THESE` if there is no action for it."""
        ...

    def remark(self, action: Action) -> str:
        """Why ``action`` is not an answer of this benchmark. Empty if it is one."""
        ...


StepT = TypeVar("StepT", bound=GoldStep)


class RecordedBenchmark(ABC, Generic[StepT]):
    """The tasks of one split. An instance can serve any number of environments."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def tasks(self) -> Sequence[str]:
        """Names of the tasks, in the order of the files."""
        ...

    @abstractmethod
    def load(self, task: str) -> Sequence[StepT]:
        """The steps of a task. A page is read when its step's observation is first used.

        Raises:
            ConfigError: there is no such task, or a record is wrong. The message names the record.
        """
        ...

    def environment(self) -> TeacherForced:
        """A new environment. It plays one episode at a time."""
        return TeacherForced(self)

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Jobs for :func:`~swarm_ui.rollout_many`, one for each task (all tasks by default)."""
        return [(task, 0) for task in (self.tasks if tasks is None else tasks)]


class _State(msgspec.Struct, frozen=True):
    """State of an episode."""

    task: str
    index: int
    """Index of the recorded step."""
    actions: int
    """Number of actions so far."""
    right: bool
    """Whether all answers so far were right. An action on a missing element
    is a wrong answer."""
    observation: Observation


class TeacherForced:
    """The recordings of a benchmark as an environment; ``Restorable`` and ``Graded``.

    The last step's reward is 1.0 only if the answers to *all* steps were right. An action on
    an element that is not on the page counts as the answer to the page, and the page stays. An
    episode is truncated after twice as many actions as were recorded. The seed has no effect. The
    benchmark computes its metrics per step from the episodes.
    """

    def __init__(self, recordings: RecordedBenchmark[Any]) -> None:
        self._recordings = recordings
        self._steps: Sequence[GoldStep] = ()
        self._loaded = ""
        self._now: _State | None = None

    @property
    def name(self) -> str:
        return self._recordings.name

    @property
    def tasks(self) -> Sequence[str]:
        return self._recordings.tasks

    async def reset(self, *, task: str, seed: int) -> Observation:
        self._now = None
        self._load(task)
        first = self._steps[0].observation
        self._now = _State(task, 0, 0, True, first)
        return first

    async def step(self, action: Action) -> Step:
        at = self._running()
        gold = self._steps[at.index]
        lost = points_nowhere(action, at.observation)
        right = at.right and not lost and gold.right(action)
        at = replace(at, actions=at.actions + 1, right=right)
        return self._lost(at, action) if lost else self._onward(at, gold, action)

    async def close(self) -> None:
        self._now, self._steps, self._loaded = None, (), ""

    def snapshot(self) -> object:
        return self._running()

    def restore(self, state: object) -> Observation:
        if not isinstance(state, _State):
            raise ConfigError(f"restore: expected a snapshot() result, got {type(state).__name__}")
        self._load(state.task)
        self._now = state
        return state.observation

    def expert(self) -> Action:
        return self._steps[self._running().index].expert()

    def grade(self, action: Action) -> float:
        at = self._running()
        if points_nowhere(action, at.observation):
            return 0.0
        return float(self._steps[at.index].right(action))

    def _running(self) -> _State:
        if self._now is None:
            raise EnvironmentFault("no episode is running: call reset(task=..., seed=...) first")
        return self._now

    def _load(self, task: str) -> None:
        if task == self._loaded:
            return
        steps = self._recordings.load(task)
        if not steps:
            raise ConfigError(f"{self.name}: task {task!r} has no steps")
        self._steps, self._loaded = steps, task

    def _lost(self, at: _State, action: Action) -> Step:
        now = at.observation
        after = replace(now, history=(*now.history, Past(action=action)))
        truncated = at.actions >= 2 * len(self._steps)
        self._now = None if truncated else replace(at, observation=after)
        return Step(
            observation=after,
            truncated=truncated,
            note=f"no element {action.index}; the page has {len(now.elements)}",
        )

    def _onward(self, at: _State, gold: GoldStep, action: Action) -> Step:
        note = gold.remark(action)
        if at.index + 1 < len(self._steps):
            after = self._steps[at.index + 1].observation
            truncated = at.actions >= 2 * len(self._steps)
            ahead = replace(at, index=at.index + 1, observation=after)
            self._now = None if truncated else ahead
            return Step(observation=after, truncated=truncated, note=note)
        self._now = None
        page = gold.observation
        return Step(
            observation=replace(page, history=(*page.history, gold.past)),
            reward=float(at.right),
            terminated=True,
            note=note,
        )


def points_nowhere(action: Action, observation: Observation) -> bool:
    return action.index is not None and observation.element(action.index) is None


def check_settings(benchmark: str, split: str, splits: Sequence[str], words: int) -> None:
    """Raise ``ConfigError`` if the split does not exist, or ``words`` is less than 1."""
    if split not in splits:
        raise ConfigError(f"{benchmark} has the splits {', '.join(splits)}; got {split!r}")
    if words < 1:
        raise ConfigError(f"{benchmark}: words must be at least 1, got {words}")
