"""The answers of episodes to recorded steps, and measures of a benchmark with 95 % intervals from a
bootstrap over tasks.

Steps of one task are not independent of each other, so the bootstrap draws tasks, not steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from swarm_ui.action import Action
from swarm_ui.environments.recorded.teacher_forced import NONE_OF_THESE, RecordedBenchmark, StepT
from swarm_ui.errors import ConfigError
from swarm_ui.stats import Measure, percentile_interval
from swarm_ui.trace.records import Episode

RESAMPLES = 2000


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a scorer; as text, a line for each measure, in percent."""

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

    def __str__(self) -> str:
        lines = [f"{m.name}: {m.percent()} ({m.steps} steps)" for m in self.measures]
        counts = ", ".join(f"{name} {number}" for name, number in self.counts.items())
        return "\n".join([self.title, *lines, counts])


class MeasureInput(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a measure is computed from."""

    name: str
    values: dict[str, list[float]]
    """Task -> a value for each of its steps."""
    key: str = ""
    """Name in the output of the official scorer, if it has this measure."""
    macro: bool = False
    """Compute the mean over tasks of each task's mean, instead of the mean over all steps."""


def measured(inputs: Sequence[MeasureInput], *, resamples: int = RESAMPLES) -> tuple[Measure, ...]:
    """Compute measures and their intervals. All measures use the same draws of tasks.

    A measure ignores the tasks without values. A measure without any value is left out.
    """
    used = [given for given in inputs if any(given.values.values())]
    tasks = sorted({task for given in used for task in given.values})
    rng = random.Random(0)
    draws = [rng.choices(range(len(tasks)), k=len(tasks)) for _ in range(resamples if tasks else 0)]
    return tuple(_measure(given, tasks, draws) for given in used)


def _measure(given: MeasureInput, tasks: Sequence[str], draws: Sequence[list[int]]) -> Measure:
    found = [given.values.get(task, []) for task in tasks]
    scales = [len(values) if given.macro and values else 1 for values in found]
    sums = [sum(values) / scale for values, scale in zip(found, scales, strict=True)]
    weights = [len(values) / scale for values, scale in zip(found, scales, strict=True)]
    value, means = sum(sums) / sum(weights), []
    for drawn in draws:
        weight = sum(map(weights.__getitem__, drawn))
        if weight:  # a draw may consist of tasks without values
            means.append(sum(map(sums.__getitem__, drawn)) / weight)
    interval = percentile_interval(value, means or [value], 0)
    return Measure(
        name=given.name,
        key=given.key,
        value=value,
        low=interval.low,
        high=interval.high,
        steps=sum(map(len, found)),
        tasks=sum(map(bool, found)),
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
    whole = [episode for episode in episodes if episode.success is not None]
    found = [_answers(recordings, episode) for episode in whole]
    return [(e.task, answers) for e, (answers, *_) in zip(whole, found, strict=True)], {
        "episodes": len(episodes),
        "masked by a fault": len(episodes) - len(whole),
        "steps": sum(len(answers) for answers, *_ in found),
        "pointing at no element": sum(lost for _, lost, _ in found),
        "not reached": sum(unreached for *_, unreached in found),
    }


def _answers(
    recordings: RecordedBenchmark[StepT], episode: Episode
) -> tuple[Answers[StepT], int, int]:
    """The answers, and the numbers of those without a valid element and of steps not reached."""
    steps = recordings.load(episode.task)
    actions: dict[int, Action | None] = {}
    index = 0
    for number, record in enumerate(episode.steps):
        seen = record.trace.observation
        if index >= len(steps) or seen.elements != steps[index].observation.elements:
            raise ConfigError(
                f"task {episode.task!r}, step {number}: the page of the episode differs from that "
                f"of '{recordings.name}'. Score an episode with the same data and settings (split, "
                "top_k, ranks) that it was played with"
            )
        action = record.executed or NONE_OF_THESE
        lost = steps[index].lacks(action)
        actions.setdefault(index, None if lost else action)  # the first is the answer
        index += not lost
    answers = [(step, actions.get(k)) for k, step in enumerate(steps)]
    return answers, list(actions.values()).count(None), len(steps) - len(actions)
