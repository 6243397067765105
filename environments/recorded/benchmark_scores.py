"""Measures of a benchmark with 95 % intervals from a bootstrap over tasks.

Steps of one task are not independent of each other, so the bootstrap draws tasks, not steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.stats import percentile_interval

RESAMPLES = 2000


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One measure with its interval."""

    name: str
    key: str = ""
    """Name in the output of the official scorer. Empty if that has no such measure."""
    value: float
    low: float
    high: float
    steps: int
    """Number of steps (for task success: episodes) behind the value."""
    tasks: int

    def percent(self) -> str:
        """The value in percent with its interval, such as ``"54.8 [50.4, 59.1]"``."""
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


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
