"""Two runs compared on the same episodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.results import (
    MOST_MASKED,
    difference_interval,
    existing_results,
    outcome,
    success_interval,
)
from swarm_ui.rollout import Job
from swarm_ui.stats import Interval
from swarm_ui.trace.jsonl import iter_jsonl

Key = tuple[str, str, int, int, int]
"""Split, task, seed, version of the success check, and a number that distinguishes repetitions."""
Outcomes = dict[Key, float | None]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison for one split, or for all."""

    name: str
    ours: Interval | None
    theirs: Interval | None
    difference: Interval | None
    """First minus second, over the episodes that both played: Tango's score interval."""
    better: int
    """Episodes that only the first run solved."""
    worse: int
    p: float | None
    """Two-sided p-value of McNemar's exact test."""
    masked: int
    """Episodes that a fault masked in at least one run. If there are too many of them, there is no
    interval and no p-value."""


def compare_runs(ours: str | Path, theirs: str | Path) -> list[Comparison]:
    """One row for each split, and one for all if there are several.

    Raises:
        ConfigError: the runs have no episode in common, or cannot be read.
    """
    a, b = outcomes_of(str(ours)), outcomes_of(str(theirs))
    common = [key for key in a if key in b]
    if not common:
        raise ConfigError(
            f"'{ours}' and '{theirs}' have no episode in common (same split, task, seed and "
            "version of the success check): play both with the same environment, split, seed and "
            "number of episodes"
        )
    splits = list(dict.fromkeys(key[0] for key in common))
    rows = [
        _row(split or "episodes", a, b, [key for key in common if key[0] == split])
        for split in splits
    ]
    return rows if len(rows) == 1 else [*rows, _row("all", a, b, common)]


def outcomes_of(source: str) -> Outcomes:
    """Outcomes of a run's folder, of ``FOLDER:ARM``, or of a trace file.

    Raises:
        ConfigError: the source cannot be read, has no such arm, or has several and none is named.
    """
    folder, colon, arm = source.rpartition(":")
    named = bool(colon) and not Path(source).exists()
    path = Path(folder) if named else Path(source)
    if path.is_file():
        episodes = iter_jsonl(path)
        return _numbered(("", (e.task, e.seed), e.checker, outcome(e)) for e in episodes)
    arms = existing_results(path).arms
    known = list(dict.fromkeys(found.arm for found in arms))
    if named and arm not in known:
        raise ConfigError(f"'{path}' has no arm '{arm}'; it has {', '.join(known)}")
    if not named and len(known) > 1:
        raise ConfigError(f"'{path}' has several arms: name one as '{path}:{known[0]}', "
                          f"or {', '.join(known[1:])}")  # fmt: skip
    return _numbered(
        (found.split, job, found.checker, value)
        for found in arms
        if not named or found.arm == arm
        for job, value in zip(found.jobs, found.outcomes, strict=True)
    )


def _numbered(found: Iterable[tuple[str, Job, int, float | None]]) -> Outcomes:
    seen: Counter[tuple[str, Job, int]] = Counter()
    out: Outcomes = {}
    for split, job, checker, value in found:
        out[split, *job, checker, seen[split, job, checker]] = value
        seen[split, job, checker] += 1
    return out


def _row(name: str, a: Outcomes, b: Outcomes, keys: list[Key]) -> Comparison:
    jobs: list[Job] = [(task, seed) for _, task, seed, *_ in keys]
    ours, theirs = [a[key] for key in keys], [b[key] for key in keys]
    pairs = zip(jobs, ours, theirs, strict=True)
    both = [(job, x, y) for job, x, y in pairs if x is not None and y is not None]
    played = [job for job, _, _ in both]
    better, worse = sum(x > y for _, x, y in both), sum(x < y for _, x, y in both)
    masked = len(jobs) - len(both)
    found = Comparison(
        name=name,
        ours=success_interval(played, [x for _, x, _ in both]),
        theirs=success_interval(played, [y for _, _, y in both]),
        difference=difference_interval(jobs, ours, theirs),
        better=better,
        worse=worse,
        p=mcnemar(better, worse),
        masked=masked,
    )
    if masked <= MOST_MASKED * len(jobs):
        return found
    return replace(found, ours=None, theirs=None, difference=None, p=None)


def mcnemar(better: int, worse: int) -> float:
    """Two-sided p-value of McNemar's exact test: a sign test on episodes solved by one run only."""
    n = better + worse
    tail: int = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    both_tails: float = 2 * tail / 2**n  # of integers: from 1,024 episodes on, 2.0**n is too large
    return min(1.0, both_tails)
