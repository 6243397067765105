"""Reads the answers to recorded steps off played episodes, for the scorers of the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    Recordings,
    points_nowhere,
)
from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import Episode

StepT = TypeVar("StepT", bound=GoldStep)

EPISODES, MASKED, STEPS = "episodes", "masked by a fault", "steps"
LOST, UNREACHED = "pointing at no element", "not reached"


class AnsweredTask(NamedTuple, Generic[StepT]):
    """One episode of a recorded task."""

    task: str
    attempt: int
    """Position of the episode among the scored ones."""
    steps: list[tuple[StepT, Action | None]]
    """Each step with its answer. The answer is ``None`` if it points at no element, or if the
    episode did not reach the step."""


def answered_tasks(
    recordings: Recordings[StepT], episodes: Sequence[Episode], counts: dict[str, int]
) -> Iterator[AnsweredTask[StepT]]:
    """The answers of every episode that did not end with a fault.

    Args:
        recordings: the tasks that were played.
        episodes: the played episodes.
        counts: numbers of episodes and steps by what happened to them; they are increased.

    Raises:
        ConfigError: an episode was not played with these recordings and settings.
    """
    for attempt, episode in enumerate(episodes):
        counts[EPISODES] += 1
        if episode.success is None:
            counts[MASKED] += 1
            continue
        gold = recordings.load(episode.task)
        answers = _answers(gold, episode, recordings.name, counts)
        yield AnsweredTask(episode.task, attempt, list(zip(gold, answers, strict=True)))


def _answers(
    steps: Sequence[GoldStep], episode: Episode, name: str, counts: dict[str, int]
) -> list[Action | None]:
    actions: list[Action | None] = [None] * len(steps)
    index, answered = 0, False
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
        counts[LOST] += nowhere and not answered
        answered, index = (True, index) if nowhere else (False, index + 1)
    counts[STEPS] = counts.get(STEPS, 0) + len(steps)
    counts[UNREACHED] += len(steps) - index - answered
    return actions
