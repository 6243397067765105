"""The answers of episodes to recorded steps, and measures of a benchmark with 95 % intervals from a
bootstrap over tasks.

Steps of one task are not independent of each other, so the bootstrap draws tasks, not steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import (
    NONE_OF_THESE,
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


def measured(inputs: Sequence[MeasureInput], *, resamples: int = RESAMPLES) -> tuple[Measure, ...]:
    """Compute measures and their intervals. All measures use the same draws of tasks.

    A measure ignores the tasks without values. A measure without any value is left out.
    """
    used = [given for given in inputs if any(given.values.values())]
    tasks = sorted({task for given in used for task in given.values})
    parts = [_parts(given, tasks) for given in used]
    means: list[list[float]] = [[] for _ in used]
    rng = random.Random(0)
    for _ in range(resamples):
        drawn = rng.choices(range(len(tasks)), k=len(tasks))
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


Answers = list[tuple[StepT, Action | None]]
"""Each step of a task with its answer. The answer is ``None`` if its element is not on the page, or
if the episode did not reach the step."""


def answered_tasks(
    recordings: RecordedBenchmark[StepT], episodes: Sequence[Episode]
) -> tuple[list[tuple[str, Answers[StepT]]], dict[str, int]]:
    """The task and the answers of each episode without a fault, and counts of episodes and steps.

    Raises:
        ConfigError: an episode was not played with these recordings and settings.
    """
    played = []
    lost = unreached = 0
    for episode in episodes:
        if episode.success is not None:
            answers, lost_here, reached = _answers(recordings, episode)
            played.append((episode.task, answers))
            lost, unreached = lost + lost_here, unreached + len(answers) - reached
    return played, {
        "episodes": len(episodes),
        "masked by a fault": len(episodes) - len(played),
        "steps": sum(len(answers) for _, answers in played),
        "pointing at no element": lost,
        "not reached": unreached,
    }


def _answers(
    recordings: RecordedBenchmark[StepT], episode: Episode
) -> tuple[Answers[StepT], int, int]:
    """The answers, the number of those without a valid element, and of the steps reached."""
    steps = recordings.load(episode.task)
    actions: list[Action | None] = [None] * len(steps)
    lost, index, answered = 0, 0, False
    for number, record in enumerate(episode.steps):
        seen = record.trace.observation
        if index >= len(steps) or seen.elements != steps[index].observation.elements:
            raise ConfigError(
                f"task {episode.task!r}, step {number}: the page of the episode differs from that "
                f"of '{recordings.name}'. Score an episode with the same data and settings (split, "
                "top_k, ranks) that it was played with"
            )
        action = record.executed or NONE_OF_THESE
        nowhere = points_nowhere(action, seen)
        if not answered and not nowhere:
            actions[index] = action
        lost += nowhere and not answered
        answered, index = (True, index) if nowhere else (False, index + 1)
    return list(zip(steps, actions, strict=True)), lost, index + answered
