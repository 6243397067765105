"""Recorded tasks behind the environment contract: whatever the agent does, the recording goes on.

Each step of a recorded task asks one question, "what comes next on this page?", and the agent's
first action on the page is its answer. After it the next recorded page follows, right or wrong,
with the recorded actions as history. So no step suffers from an earlier mistake, and nothing here
is a success rate of acting: benchmarks of this kind measure agreement with a recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environment import Step
from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.observation import Observation, Past
from swarm_ui.trace.records import Episode

NONE_OF_THESE = Action(action_type="wait")
"""What an agent does that finds no right element on the page."""


class GoldStep(Protocol):
    """One page of a recording and what was done on it."""

    @property
    def observation(self) -> Observation:
        """The page, with the actions recorded before it as history; always the same."""
        ...

    @property
    def past(self) -> Past:
        """The recorded action, as the next pages' history tells it."""
        ...

    def right(self, action: Action) -> bool:
        """Whether ``action`` is what was recorded, by the benchmark's own rule."""
        ...

    def expert(self) -> Action:
        """The recorded action, or :data:`NONE_OF_THESE` if it cannot be expressed here."""
        ...

    def remark(self, action: Action) -> str:
        """Why ``action`` is no answer of this benchmark; empty if it is one."""
        ...


class Recordings(Protocol):
    """A benchmark's tasks."""

    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> Sequence[str]: ...

    def load(self, task: str) -> Sequence[GoldStep]:
        """The steps of a task. Raises ``ConfigError``: no such task, or the data is wrong."""
        ...


class _Place(msgspec.Struct, frozen=True):
    """Where an episode stands."""

    task: str
    index: int
    """Of the recorded step."""
    acts: int
    right: bool
    """Whether all answers so far were; a lost step is a wrong answer."""
    observation: Observation


class TeacherForced:
    """The recordings of a benchmark as an environment; ``Restorable`` and ``Graded``.

    The last step's reward is 1.0 only if the answers to *all* steps were right. An action that
    points at no element is a lost step: it stands as the answer to its page, and the page stays.
    An episode is truncated after twice as many actions as were recorded. Metrics per step are
    the benchmark's to compute from the episodes. The seed changes nothing.
    """

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._steps: Sequence[GoldStep] = ()
        self._loaded = ""
        self._now: _Place | None = None

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
        self._now = _Place(task, 0, 0, True, first)
        return first

    async def step(self, action: Action) -> Step:
        at = self._running()
        gold = self._steps[at.index]
        lost = points_nowhere(action, at.observation)
        right = at.right and not lost and gold.right(action)
        at = replace(at, acts=at.acts + 1, right=right)
        return self._lost(at, action) if lost else self._onward(at, gold, action)

    async def close(self) -> None:
        self._now, self._steps, self._loaded = None, (), ""

    def snapshot(self) -> object:
        return self._running()

    def restore(self, state: object) -> Observation:
        if not isinstance(state, _Place):
            raise ConfigError(f"restore: expected what snapshot() gave, got {type(state).__name__}")
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

    def _running(self) -> _Place:
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

    def _lost(self, at: _Place, action: Action) -> Step:
        now = at.observation
        after = replace(now, history=(*now.history, Past(action=action)))
        truncated = at.acts >= 2 * len(self._steps)
        self._now = None if truncated else replace(at, observation=after)
        return Step(
            observation=after,
            truncated=truncated,
            note=f"no element {action.index}; the page has {len(now.elements)}",
        )

    def _onward(self, at: _Place, gold: GoldStep, action: Action) -> Step:
        note = gold.remark(action)
        if at.index + 1 < len(self._steps):
            after = self._steps[at.index + 1].observation
            truncated = at.acts >= 2 * len(self._steps)
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


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What was answered to the steps of one recorded task."""

    actions: tuple[Action | None, ...]
    """One for each step; ``None``: it pointed at no element, or the episode never came there."""
    lost: int
    unreached: int


def answers(steps: Sequence[GoldStep], episode: Episode, *, name: str) -> Answers:
    """Read the answers off an episode, for a scorer.

    Args:
        steps: of the episode's task.
        episode: what was played.
        name: of the recordings, for errors.

    Raises:
        ConfigError: the episode was not played with these recordings and settings.
    """
    actions: list[Action | None] = [None] * len(steps)
    lost, index, answered = 0, 0, False
    for number, record in enumerate(episode.steps):
        seen = record.trace.observation
        if index >= len(steps) or seen.elements != steps[index].observation.elements:
            raise ConfigError(
                f"task {episode.task!r}, step {number}: the episode shows another page than "
                f"'{name}' has there. Score an episode with the same data and settings (split, "
                "top_k, ranks) that it was played with"
            )
        action = record.executed or NONE_OF_THESE
        nowhere = points_nowhere(action, seen)
        if not answered and not nowhere:
            actions[index] = action
        lost += nowhere and not answered
        answered, index = (True, index) if nowhere else (False, index + 1)
    return Answers(actions=tuple(actions), lost=lost, unreached=len(steps) - index - answered)


def points_nowhere(action: Action, observation: Observation) -> bool:
    return action.index is not None and observation.element(action.index) is None
