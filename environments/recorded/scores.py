"""The answers of episodes to recorded steps, and measures of a benchmark with 95 % intervals from a
bootstrap over tasks.

Steps of one task are not independent of each other, so the bootstrap draws tasks, not steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Generic, NamedTuple

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
    GoldStep,
    RecordedBenchmark,
    StepT,
    points_nowhere,
)
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Measure, percentile_interval
from swarm_ui.trace.records import Episode

RESAMPLES = 2000


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a scorer."""

    title: str
    measures: tuple[Measure, ...]
    counts: dict[str, int]
    """Numbers of episodes and steps, and of those with a fault or without an answer."""

    def __getitem__(self, name: str) -> Measure:
        """A measure by its name or official key. Raises ``KeyError``."""
        for measure in self.measures:
            if name and name in (measure.name, measure.key):
                return measure
        raise KeyError(f"{name!r}; there are {', '.join(m.name for m in self.measures)}")

    def markdown(self) -> str:
        """The measures in percent as a Markdown table, with the counts below."""
        lines = [
            f"**{self.title}**",
            "",
            "| measure | official key | % [95 %] | steps | tasks |",
            "| --- | --- | --- | --- | --- |",
        ]
        for m in self.measures:
            key = f"`{m.key}`" if m.key else "–"
            lines.append(f"| {m.name} | {key} | {m.percent()} | {m.steps} | {m.tasks} |")
        counts = ", ".join(f"{name} {number}" for name, number in self.counts.items())
        return "\n".join([*lines, "", counts])


class MeasureInput(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a measure is computed from."""

    name: str
    values: dict[str, list[float]]
    """Task -> a value for each of its steps."""
    key: str = ""
    macro: bool = False
    """Compute the mean over tasks of each task's mean, instead of the mean over all steps."""


def measured(inputs: Sequence[MeasureInput], *, seed: int, resamples: int) -> tuple[Measure, ...]:
    """Compute measures and their intervals. All measures use the same draws of tasks.

    A measure ignores the tasks without values. A measure without any value is left out.
    """
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, got {resamples}")
    used = [given for given in inputs if any(given.values.values())]
    tasks = sorted({task for given in used for task in given.values})
    rng = random.Random(seed)
    places = range(len(tasks))
    parts = [_parts(given, tasks) for given in used]
    means: list[list[float]] = [[] for _ in used]
    for _ in range(resamples):
        drawn = rng.choices(places, k=len(tasks))
        for (sums, weights), found in zip(parts, means, strict=True):
            weight = sum(map(weights.__getitem__, drawn))
            if weight:  # a draw may consist of tasks without values
                found.append(sum(map(sums.__getitem__, drawn)) / weight)
    return tuple(
        _measure(given, part, found) for given, part, found in zip(used, parts, means, strict=True)
    )


def _parts(given: MeasureInput, tasks: Sequence[str]) -> tuple[list[float], list[float]]:
    """For each task, what it adds to the numerator and to the denominator of the mean."""
    sums, weights = [], []
    for task in tasks:
        values = given.values.get(task, [])
        scale = len(values) if given.macro and values else 1
        sums.append(sum(values) / scale)
        weights.append(len(values) / scale)
    return sums, weights


def _measure(
    given: MeasureInput, parts: tuple[list[float], list[float]], means: list[float]
) -> Measure:
    value = sum(parts[0]) / sum(parts[1])
    interval = percentile_interval(value, means or [value], 0)
    return Measure(
        name=given.name,
        key=given.key,
        value=value,
        low=interval.low,
        high=interval.high,
        steps=sum(map(len, given.values.values())),
        tasks=sum(map(bool, given.values.values())),
    )


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
