"""Extracts the answers to recorded steps from played episodes, for the benchmarks' scorers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
    StepT,
    points_nowhere,
)
from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import Episode


class AnsweredTask(NamedTuple, Generic[StepT]):
    """One episode of a recorded task."""

    task: str
    attempt: int
    """Position of the episode among the scored ones."""
    steps: list[tuple[StepT, Action | None]]
    """Each step with its answer. The answer is ``None`` if its element is not on the page, or if
    the episode did not reach the step."""


def answered_tasks(
    recordings: RecordedBenchmark[StepT], episodes: Sequence[Episode]
) -> tuple[list[AnsweredTask[StepT]], dict[str, int]]:
    """The answers of all episodes without a fault, and the counts of episodes and steps.

    Raises:
        ConfigError: an episode was not played with these recordings and settings.
    """
    played: list[AnsweredTask[StepT]] = []
    lost = unreached = 0
    for attempt, episode in enumerate(episodes):
        if episode.success is not None:
            gold = recordings.load(episode.task)
            answers, lost_here, unreached_here = _answers(gold, episode, recordings.name)
            steps = list(zip(gold, answers, strict=True))
            played.append(AnsweredTask(episode.task, attempt, steps))
            lost, unreached = lost + lost_here, unreached + unreached_here
    return played, {
        "episodes": len(episodes),
        "masked by a fault": len(episodes) - len(played),
        "steps": sum(len(one.steps) for one in played),
        "pointing at no element": lost,
        "not reached": unreached,
    }


def _answers(
    steps: Sequence[GoldStep], episode: Episode, name: str
) -> tuple[list[Action | None], int, int]:
    """The answers, and the numbers of actions without a valid element and of unreached steps."""
    actions: list[Action | None] = [None] * len(steps)
    lost, index, answered = 0, 0, False
    for number, record in enumerate(episode.steps):
        seen = record.trace.observation
        if index >= len(steps) or seen.elements != steps[index].observation.elements:
            raise ConfigError(
                f"task {episode.task!r}, step {number}: the page of the episode differs from that "
                f"of '{name}'. Score an episode with the same data and settings (split, "
                "top_k, ranks) that it was played with"
            )
        action = record.executed or NONE_OF_THESE
        nowhere = points_nowhere(action, seen)
        if not answered and not nowhere:
            actions[index] = action
        lost += nowhere and not answered
        answered, index = (True, index) if nowhere else (False, index + 1)
    return actions, lost, len(steps) - index - answered
