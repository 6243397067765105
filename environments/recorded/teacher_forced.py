"""Recorded tasks as environments: each step shows the next recorded page.

At each step the agent sees a recorded page and the recorded actions before it. Its first action on
the page is its answer. Then the next recorded page follows, regardless of the answer, so a mistake
does not affect later steps. The scores measure agreement with the recording, not success.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec
from msgspec.structs import replace

from swarm_ui.action import Action
from swarm_ui.environments.base import Done, Stateful
from swarm_ui.environments.recorded.scores import RESAMPLES, Column, Scores, measured
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element, Observation, Past
from swarm_ui.rollout import Job
from swarm_ui.trace.records import Episode

NONE_OF_THESE = Action(action_type="wait")
"""The answer of an agent that finds no right element on the page."""


class GoldStep(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded page and the action on it."""

    observation: Observation
    """The page, with the recorded actions before it as history."""
    expert: Action
    """The recorded action, or :data:`NONE_OF_THESE` if there is no action for it."""
    past: Past
    """The recorded action, as an entry of the next page's history."""

    def values(self, action: Action | None) -> Mapping[str, float]:
        """The scores of an answer by their names, with ``"step success"``. The answer is ``None``
        if its element is not on the page, or if the episode did not reach the step."""
        raise NotImplementedError

    def right(self, action: Action) -> bool:
        """Whether ``action`` equals the recorded action by the benchmark's rule."""
        return self.values(action)["step success"] == 1.0

    def remark(self, action: Action) -> str:
        """Why ``action`` is not an answer of this benchmark. Empty if it is one."""
        return ""

    def lacks(self, action: Action) -> bool:
        """Whether the action points at an element that is not on the page."""
        return action.index is not None and self.observation.element(action.index) is None


class RecordedBenchmark:
    """The tasks of one split. An instance can serve any number of environments."""

    name: str
    """Name of the environment in results."""
    columns: ClassVar[Sequence[Column]] = ()
    """The measures of :meth:`score`."""
    counted: ClassVar[Sequence[str]] = ()
    """The values of steps that :meth:`score` counts."""

    @property
    def tasks(self) -> Sequence[str]:
        """Names of the tasks, in the order of the files."""
        raise NotImplementedError

    def load(self, task: str, seed: int = 0) -> Sequence[GoldStep]:
        """The steps of a task. The seed matters only where a task was recorded with several.

        Raises:
            ConfigError: there is no such task, or a record is wrong. The message names the record.
        """
        raise NotImplementedError

    def environment(self) -> TeacherForced:
        """A new environment. It plays one episode at a time."""
        return TeacherForced(self)

    def jobs(self, tasks: Sequence[str] | None = None) -> list[Job]:
        """Jobs for :func:`~swarm_ui.rollout_many`, one for each task (all tasks by default)."""
        return [(task, 0) for task in (self.tasks if tasks is None else tasks)]

    def score(self, episodes: Sequence[Episode], *, resamples: int = RESAMPLES) -> Scores:
        """The benchmark's metrics.

        Args:
            episodes: episodes that were played with these settings. An episode that ended with a
                fault is counted and left out. A step that was not reached counts as wrong.
            resamples: number of draws of the bootstrap over tasks for the 95 % intervals.

        Raises:
            ConfigError: an episode shows pages that are not in these data.
        """
        whole = [episode for episode in episodes if episode.success is not None]
        attempts, lost, unreached = [], 0, 0
        for episode in whole:
            steps = self.load(episode.task)
            answers = self._answers(episode, steps)
            attempts.append((episode.task, [s.values(answers.get(k)) for k, s in enumerate(steps)]))
            lost += list(answers.values()).count(None)
            unreached += len(steps) - len(answers)
        values = [step for _, scored in attempts for step in scored]
        counts = {
            "episodes": len(episodes),
            "masked by a fault": len(episodes) - len(whole),
            "steps": len(values),
            "pointing at no element": lost,
            "not reached": unreached,
            **{name: round(sum(step[name] for step in values)) for name in self.counted},
        }
        measures = measured(self.columns, attempts, resamples=resamples)
        return Scores(title=self.name, measures=measures, counts=counts)

    def _answers(self, episode: Episode, steps: Sequence[GoldStep]) -> dict[int, Action | None]:
        """The answer to each step that was reached; ``None``: it points at no element."""
        answers: dict[int, Action | None] = {}
        index = 0
        for number, record in enumerate(episode.steps):
            seen = record.trace.observation.elements
            if index >= len(steps) or seen != steps[index].observation.elements:
                raise ConfigError(
                    f"task {episode.task!r}, step {number}: the page of the episode differs from "
                    f"that of '{self.name}'. Score an episode with the same data and settings "
                    "(split, top_k, ranks) that it was played with"
                )
            action = record.executed or NONE_OF_THESE
            lost = steps[index].lacks(action)
            answers.setdefault(index, None if lost else action)  # the first is the answer
            index += not lost
        return answers


class _At(msgspec.Struct, frozen=True):
    """State of an episode: the recorded steps, and the number of those that are over."""

    steps: Sequence[GoldStep]
    index: int = 0
    right: bool = True
    """Whether all answers so far were right; an action on a missing element is a wrong one."""
    lost: tuple[Past, ...] = ()
    """Actions on missing elements of the present page."""


class TeacherForced(Stateful):
    """The recordings of a benchmark as an environment; ``Restorable`` and ``Graded``.

    The last step's reward is 1.0 only if the answers to *all* steps were right. An action on
    an element that is not on the page counts as the answer to the page, and the page stays. An
    episode is truncated after twice as many actions as were recorded. The seed has no effect. The
    benchmark computes its metrics per step from the episodes.
    """

    state: _At

    def __init__(self, recordings: RecordedBenchmark) -> None:
        self._recordings = recordings

    @property
    def name(self) -> str:
        return self._recordings.name

    @property
    def tasks(self) -> Sequence[str]:  # type: ignore[override]  # read at the first use
        return self._recordings.tasks

    def knows(self, task: str) -> bool:
        return True  # ``load`` refuses others

    def begin(self, task: str, rng: random.Random) -> str:
        steps = self._recordings.load(task, self.seed)
        if not steps:
            raise ConfigError(f"{self.name}: task {task!r} has no steps")
        self.state, self.budget = _At(steps), 2 * len(steps)
        return steps[0].observation.goal

    def screen(self) -> Observation:
        at = self.state
        over = at.index == len(at.steps)
        gold = at.steps[at.index - over]
        more = (gold.past,) if over else at.lost
        return replace(gold.observation, history=(*gold.observation.history, *more))

    def misfit(self, action: Action, screen: Observation) -> str:
        return ""  # every action is an answer

    def act(self, action: Action, element: Element | None) -> Done | str:
        at, gold = self.state, self._gold
        if gold.lacks(action):
            self.state = replace(at, right=False, lost=(*at.lost, Past(action=action)))
            count = len(gold.observation.elements)
            return f"no element {action.index}; the page has {count}"
        note, right = gold.remark(action), at.right and gold.right(action)
        self.state = _At(at.steps, at.index + 1, right)
        return Done(float(right), note) if at.index + 1 == len(at.steps) else note

    def expert(self) -> Action:
        _ = self.progress
        return self._gold.expert

    def grade(self, action: Action) -> float:
        _ = self.progress
        return float(not self._gold.lacks(action) and self._gold.right(action))

    @property
    def _gold(self) -> GoldStep:
        return self.state.steps[self.state.index]
