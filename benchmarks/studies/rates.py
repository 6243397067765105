"""Rows and differences of studies: success by arm, with intervals over templates and over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from swarm_ui.stats import Interval, Outcome, clustered_difference, clustered_mean, over_seeds

FEW = 3
"""With fewer seeds there is no interval over seeds."""
_DIGITS = 4


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The success of one arm; shares are in [0, 1]."""

    name: str
    success: float
    low: float
    high: float
    """95 % interval, clustered by template and seed."""
    t_low: float | None
    t_high: float | None
    """95 % interval over seeds, Student's t; ``None``: fewer than :data:`FEW` seeds."""
    by_seed: list[float]
    seeds: int
    """0: one run without a seed."""
    episodes: int
    """Number of episodes of each seed, also those that a fault masked."""


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """An arm minus another one, on the same episodes and with the same seeds."""

    ours: str
    theirs: str
    named: bool
    """Whether the contrast was named before the study was run. If not, it is exploratory."""
    difference: float
    low: float
    high: float
    """95 % interval, clustered by template and seed."""
    t_low: float | None
    t_high: float | None
    """95 % interval over seeds, Student's t; ``None``: fewer than :data:`FEW` seeds."""
    by_seed: list[float]


def row(name: str, outcomes: Sequence[Outcome], *, seeded: bool = True) -> Row:
    """The row of an arm.

    Args:
        name: name of the arm.
        outcomes: its episodes; the run of an outcome is the seed.
        seeded: whether the arm has seeds.
    """
    rate = clustered_mean(outcomes)
    assert rate is not None, f"{name}: every episode has a fault"
    each = _by_seed(outcomes)
    t = _over_seeds(each) if seeded else None
    return Row(
        name=name, success=_rounded(rate.mean), low=_rounded(rate.low), high=_rounded(rate.high),
        t_low=None if t is None else _rounded(t.low),
        t_high=None if t is None else _rounded(t.high),
        by_seed=[_rounded(value) for value in each], seeds=len(each) if seeded else 0,
        episodes=len(outcomes) // len(each),
    )  # fmt: skip


def contrast(
    ours: tuple[str, Sequence[Outcome]], theirs: tuple[str, Sequence[Outcome]], *, named: bool
) -> Contrast:
    """The difference of two arms on the seeds that both have.

    Args:
        ours: name and outcomes of an arm; the run of an outcome is the seed.
        theirs: the same of the other arm.
        named: whether the difference was named before the study was run.

    Raises:
        ConfigError: the episodes of the two arms differ.
    """
    both = {o.run for o in ours[1]} & {o.run for o in theirs[1]}
    mine, other = ([o for o in arm[1] if o.run in both] for arm in (ours, theirs))
    gap = clustered_difference(mine, other)
    assert gap is not None, f"{ours[0]} - {theirs[0]}: no episode without a fault"
    each = [a - b for a, b in zip(_by_seed(mine), _by_seed(other), strict=True)]
    t = _over_seeds(each)
    return Contrast(
        ours=ours[0], theirs=theirs[0], named=named, difference=_rounded(gap.mean),
        low=_rounded(gap.low), high=_rounded(gap.high),
        t_low=None if t is None else _rounded(t.low),
        t_high=None if t is None else _rounded(t.high), by_seed=[_rounded(value) for value in each],
    )  # fmt: skip


def repeated(outcomes: Sequence[Outcome], seeds: Sequence[int]) -> list[Outcome]:
    """The outcomes of an arm without training, once for each training seed."""
    return [msgspec.structs.replace(o, run=seed) for seed in seeds for o in outcomes]


def success_shown(one: Row) -> str:
    """Success in percent with its clustered interval."""
    return Interval(mean=one.success, low=one.low, high=one.high, n=0).percent()


def difference_shown(one: Contrast) -> str:
    """The difference in points with its clustered interval; bold if it was named before."""
    gap = Interval(mean=one.difference, low=one.low, high=one.high, n=0).percent(signed=True)
    return f"**{gap}**" if one.named else gap


def seeds_shown(one: Row | Contrast) -> str:
    """The interval over seeds in percent."""
    if one.t_low is None or one.t_high is None:
        return "–"
    sign = "+" if isinstance(one, Contrast) else ""
    return f"[{100 * one.t_low:{sign}.1f}, {100 * one.t_high:{sign}.1f}]"


def each_shown(one: Row | Contrast) -> str:
    """The values of the seeds in percent."""
    sign = "+" if isinstance(one, Contrast) else ""
    return ", ".join(f"{100 * value:{sign}.1f}" for value in one.by_seed)


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """The named differences in bold; the others are exploratory."""
    head = ["difference", "points, 95 % by template", "Student-t", "each seed", "seeds"]
    lines = [f"| {' | '.join(head)} |", "| --- | --- | --- | --- | ---: |"]
    lines += [
        f"| {one.ours} - {one.theirs} | {difference_shown(one)} | {seeds_shown(one)} | "
        f"{each_shown(one)} | {len(one.by_seed)} |"
        for one in contrasts
    ]
    return "\n".join(lines)


def _by_seed(outcomes: Sequence[Outcome]) -> list[float]:
    seeds = sorted({o.run for o in outcomes})
    return [
        fmean(o.value for o in outcomes if o.run == seed and o.value is not None) for seed in seeds
    ]


def _over_seeds(values: Sequence[float]) -> Interval | None:
    return over_seeds(values) if len(values) >= FEW else None


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
