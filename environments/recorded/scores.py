"""Measures of a benchmark with 95 % intervals from a bootstrap over tasks.

Steps of one task are not independent of each other, so the bootstrap draws tasks, not steps.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from swarm_ui.stats import Measure, percentile_interval

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


class Column(NamedTuple):
    """A measure: the mean of values."""

    name: str
    of: str
    """Name of the values of each step, or ``"task success"``: 1.0 for an episode in which every
    step has ``"step success"`` 1.0."""
    key: str = ""
    """Name in the output of the official scorer, if it has this measure."""
    macro: bool = False
    """Compute the mean over tasks of each task's mean, instead of the mean over all steps."""


Attempt = tuple[str, Sequence[Mapping[str, float]]]
"""The task of an episode, and the values of each of its steps by their names."""


def measured(
    columns: Sequence[Column], attempts: Iterable[Attempt], *, resamples: int = RESAMPLES
) -> tuple[Measure, ...]:
    """Compute measures and their intervals. All measures use the same draws of tasks.

    A measure ignores the steps without its value. A measure without any value is left out.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for task, steps in attempts:
        for values in steps:
            for name, value in values.items():
                found[name][task].append(value)
        solved = all(values.get("step success", 1.0) == 1.0 for values in steps)
        found["task success"][task].append(float(solved))
    used = [column for column in columns if column.of in found]
    tasks = sorted({task for column in used for task in found[column.of]})
    rng = random.Random(0)
    draws = [rng.choices(range(len(tasks)), k=len(tasks)) for _ in range(resamples if tasks else 0)]
    return tuple(
        _measure(column, [found[column.of].get(task, []) for task in tasks], draws)
        for column in used
    )


def _measure(column: Column, found: list[list[float]], draws: Sequence[list[int]]) -> Measure:
    """The measure of the values of each task."""
    scales = [len(values) if column.macro and values else 1 for values in found]
    sums = [sum(values) / scale for values, scale in zip(found, scales, strict=True)]
    weights = [len(values) / scale for values, scale in zip(found, scales, strict=True)]
    value, means = sum(sums) / sum(weights), []
    for drawn in draws:
        weight = sum(map(weights.__getitem__, drawn))
        if weight:  # a draw may consist of tasks without values
            means.append(sum(map(sums.__getitem__, drawn)) / weight)
    interval = percentile_interval(value, means or [value], 0)
    return Measure(
        name=column.name,
        key=column.key,
        value=value,
        low=interval.low,
        high=interval.high,
        steps=sum(map(len, found)),
        tasks=sum(map(bool, found)),
    )
