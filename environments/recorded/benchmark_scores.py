"""Figures of a benchmark with 95 % intervals, by a bootstrap over tasks.

Steps of one task are not independent of each other, so tasks are drawn, never steps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from swarm_ui.errors import ConfigError

RESAMPLES = 2000


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a table."""

    name: str
    key: str = ""
    """Its name in the official scorer's output; empty if that has none."""
    value: float
    low: float
    high: float
    steps: int
    """How many steps (for task success: episodes) it rests on."""
    tasks: int

    def percent(self) -> str:
        """Such as ``"54.8 [50.4, 59.1]"``."""
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer gives: figures, and what they leave out."""

    title: str
    measures: tuple[Measure, ...]
    counts: dict[str, int]
    """Episodes and steps behind the figures, and what was wrong with some of them."""

    def __getitem__(self, name: str) -> Measure:
        """A figure by its name or official key. Raises ``KeyError``."""
        for measure in self.measures:
            if name and name in (measure.name, measure.key):
                return measure
        raise KeyError(f"{name!r}; there are {', '.join(m.name for m in self.measures)}")

    def markdown(self) -> str:
        """The figures as a Markdown table, in percent, with the counts below."""
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


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A measure to be taken."""

    name: str
    values: dict[str, list[float]]
    """Of each task's steps."""
    key: str = ""
    macro: bool = False
    """Mean of each task, then mean of those; else the mean over all steps (micro)."""


def measured(questions: Sequence[Question], *, seed: int, resamples: int) -> tuple[Measure, ...]:
    """Take measures, all with the same draws of tasks.

    A task without values (nothing in it counts) takes no part in a measure; a measure without
    values has nothing to say and is left out.
    """
    if resamples < 1:
        raise ConfigError(f"resamples must be at least 1, got {resamples}")
    given = [question for question in questions if any(question.values.values())]
    tasks = sorted({task for question in given for task in question.values})
    rng = random.Random(seed)
    places = range(len(tasks))
    parts = [_parts(question, tasks) for question in given]
    means: list[list[float]] = [[] for _ in given]
    for _ in range(resamples):
        drawn = rng.choices(places, k=len(tasks))
        for (tops, weights), found in zip(parts, means, strict=True):
            weight = sum(map(weights.__getitem__, drawn))
            if weight:  # a draw may consist of tasks in which nothing counts
                found.append(sum(map(tops.__getitem__, drawn)) / weight)
    return tuple(
        _measure(question, part, sorted(found))
        for question, part, found in zip(given, parts, means, strict=True)
    )


def _parts(question: Question, tasks: Sequence[str]) -> tuple[list[float], list[float]]:
    """What each task adds above and below the line."""
    tops, weights = [], []
    for task in tasks:
        values = question.values.get(task, [])
        scale = len(values) if question.macro and values else 1
        tops.append(sum(values) / scale)
        weights.append(len(values) / scale)
    return tops, weights


def _measure(
    question: Question, parts: tuple[list[float], list[float]], means: list[float]
) -> Measure:
    value = sum(parts[0]) / sum(parts[1])
    means = means or [value]
    n = len(means)
    return Measure(
        name=question.name,
        key=question.key,
        value=value,
        low=means[int(0.025 * n)],
        high=means[min(n - 1, int(0.975 * n))],
        steps=sum(map(len, question.values.values())),
        tasks=sum(map(bool, question.values.values())),
    )
