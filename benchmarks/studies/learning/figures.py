"""The figures of the learning benchmark: success, differences and contrasts, with intervals."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.studies import rates
from benchmarks.studies.learning.cells import SPLITS, Row
from benchmarks.studies.learning.variants import FULL
from swarm_ui.stats import Outcome, clustered_difference, clustered_mean

RESAMPLES = 2000


class Contrast(NamedTuple):
    """A difference that is named before any run."""

    name: str
    ours: str
    theirs: str
    equal: str
    """In what the two sides are equal."""
    question: str


CONTRASTS = (
    Contrast(
        "stage 2 against more stage 1", "rft_vote", "more_stage1_rft",
        "CPU time of training; calls at test",
        "does stage 2 gain more than the same time in stage 1?",
    ),
    Contrast(
        "critic against outcome", "rft_unguided", "rft_outcome",
        "episodes, calls, optimiser steps; no guidance and no graded negatives in either",
        "is credit for messages worth more than the outcome?",
    ),
    Contrast(
        "team against one agent", "rft_vote", "single_agent",
        "calls and optimiser steps of training; calls at test",
        "is a team worth it at equal calls?",
    ),
)  # fmt: skip
"""Three contrasts, chosen in advance. All other differences are exploratory."""


def figures(found: Sequence[Row]) -> dict[str, Any]:
    """The figures as a JSON object; its keys are described in benchmarks/learning.py."""
    places = {(row.name, row.split): row for row in found}
    return {
        "rows": [_line(row, places) for row in found],
        "contrasts": [
            _contrast(contrast, split, places) for contrast in CONTRASTS for split in SPLITS
        ],
        "comparisons": comparisons(found),
    }


def comparisons(found: Sequence[Row]) -> list[dict[str, Any]]:
    """*full* minus each other row of its split: exploratory."""
    full = {row.split: row for row in found if row.name == FULL.name}
    lines: list[dict[str, Any]] = []
    for row in found:
        mine = full.get(row.split)
        gap = None if mine is None or row is mine else difference(mine, row)
        if gap is not None:
            lines.append({"split": SPLITS[row.split], "other": row.name, **gap})
    return lines


def difference(ours: Row, theirs: Row) -> dict[str, Any] | None:
    """``ours - theirs`` over the training seeds that both have; ``None``: there are none.

    Keys: ``gap, low, high`` (hierarchical bootstrap over seeds, templates and episodes, paired),
    ``t_low, t_high`` (Student's t over the seeds; ``None`` below three), ``each_seed, seeds``.
    """
    seeds = _common(ours, theirs)
    if not seeds or ours.jobs != theirs.jobs:
        return None
    left, right = ours.outcomes(seeds), theirs.outcomes(seeds)
    interval = clustered_difference(left, right, resamples=RESAMPLES)
    if interval is None:
        return None
    each = [
        fmean(a - b for a, b in _pairs(ours.outcomes([seed]), theirs.outcomes([seed])))
        for seed in seeds
    ]
    return {
        "gap": interval.mean, "low": interval.low, "high": interval.high,
        **_t(each if ours.trained or theirs.trained else []),
        "each_seed": each, "seeds": len(seeds),
    }  # fmt: skip


def _line(row: Row, places: dict[tuple[str, str], Row]) -> dict[str, Any]:
    seeds = list(row.runs)
    interval = clustered_mean(row.outcomes(seeds), resamples=RESAMPLES)
    assert interval is not None
    low, high = bootstrap(_by_episode(row))
    each = [_success(row.runs[seed]) for seed in seeds]
    work = row.work
    line: dict[str, Any] = {
        "name": row.name, "split": SPLITS[row.split], "success": interval.mean,
        "low": low, "high": high, "cluster_low": interval.low, "cluster_high": interval.high,
        **_t(each if row.trained else []),
        "seeds": len(seeds), "episodes": len(row.jobs), "graphs": row.graphs, "by_seed": each,
        "cpu_s": work.cpu_s, "steps": work.steps, "samples": work.samples, "calls": work.calls,
        "work": {"cpu_s": work.cpu_s, "tokens": work.tokens},
        "iteration_s": work.iteration_s, "peak_mb": work.peak_mb,
    }  # fmt: skip
    base = places.get(("base_x4", row.split))
    for other, keys in (
        (None if row is base else base, ("over_base_x4", "beats_base_x4_low", "over_high")),
        (_own_agent(row, places), ("over_own_agent", "over_own_low", "over_own_high")),
        (
            places.get((f"{row.name}_vote", row.split)),
            ("over_own_vote", "over_own_vote_low", "over_own_vote_high"),
        ),
    ):
        gap = None if other is None else difference(row, other)
        if gap is not None:
            line |= dict(zip(keys, (gap["gap"], gap["low"], gap["high"]), strict=True))
    return line


def _own_agent(row: Row, places: dict[tuple[str, str], Row]) -> Row | None:
    """The row of one agent of this vote or team, or ``None`` if ``row`` itself is one agent."""
    own = places.get((row.name.removesuffix("_vote").removesuffix("_own") + "_greedy", row.split))
    return None if own is row else own


def _contrast(contrast: Contrast, split: str, places: dict[tuple[str, str], Row]) -> dict[str, Any]:
    """A contrast on one split; ``gap`` is absent where a side was not measured."""
    line: dict[str, Any] = {"split": SPLITS[split], **contrast._asdict()}
    ours, theirs = places.get((contrast.ours, split)), places.get((contrast.theirs, split))
    if ours is None or theirs is None:
        return line | {"seeds": 0}
    gap = difference(ours, theirs)
    if gap is None:
        return line | {"seeds": 0}
    sides = [{"name": r.name, **_work(r)} for r in (ours, theirs)]
    return line | gap | {"sides": sides}


def _work(row: Row) -> dict[str, float | None]:
    work = row.work
    return {"cpu_s": work.cpu_s, "steps": work.steps, "samples": work.samples, "calls": work.calls}


def _common(ours: Row, theirs: Row) -> list[int]:
    """The training seeds of both. An untrained policy has the outcomes of every seed."""
    if ours.trained and theirs.trained:
        return [seed for seed in ours.runs if seed in theirs.runs]
    return list((ours if ours.trained else theirs).runs)


def _t(each: Sequence[float]) -> dict[str, float | None]:
    interval = rates.student(each)
    return {
        "t_low": None if interval is None else interval.low,
        "t_high": None if interval is None else interval.high,
    }


def _success(values: Sequence[float | None]) -> float:
    return fmean(value for value in values if value is not None)


def _pairs(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> list[tuple[float, float]]:
    return [
        (a.value, b.value)
        for a, b in zip(ours, theirs, strict=True)
        if a.value is not None and b.value is not None
    ]


def _by_episode(row: Row) -> list[float]:
    """The mean of each episode over the runs that did not mask it."""
    means = map(rates.known_mean, zip(*row.runs.values(), strict=True))
    return [mean for mean in means if mean is not None]


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """95 % percentile interval of a mean over episodes, as if these were independent."""
    rng, n = random.Random(0), len(values)
    means = sorted(fmean(rng.choices(values, k=n)) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


def data_hash(found: Sequence[Row]) -> str:
    """Digest of the test episodes: splits, templates and seeds."""
    episodes = sorted({(row.split, task, seed) for row in found for task, seed in row.jobs})
    return hashlib.sha256(repr(episodes).encode()).hexdigest()[:16]
