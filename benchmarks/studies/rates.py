"""Rows and differences of studies: success by arm, with intervals over templates and over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

import msgspec

from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Interval, Outcome, clustered_mean, over_seeds, paired_difference

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
    t_low, t_high = bounds(each) if seeded else (None, None)
    return Row(
        name=name, success=_rounded(rate.mean), low=_rounded(rate.low), high=_rounded(rate.high),
        t_low=t_low, t_high=t_high,
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
    gap = paired_difference(mine, other)
    assert gap is not None, f"{ours[0]} - {theirs[0]}: no episode without a fault"
    each = [a - b for a, b in zip(_by_seed(mine), _by_seed(other), strict=True)]
    t_low, t_high = bounds(each)
    return Contrast(
        ours=ours[0], theirs=theirs[0], named=named, difference=_rounded(gap.mean),
        low=_rounded(gap.low), high=_rounded(gap.high), t_low=t_low, t_high=t_high,
        by_seed=[_rounded(value) for value in each],
    )  # fmt: skip


def repeated(outcomes: Sequence[Outcome], seeds: Sequence[int]) -> list[Outcome]:
    """The outcomes of an arm without training, once for each training seed."""
    return [msgspec.structs.replace(o, run=seed) for seed in seeds for o in outcomes]


def student(values: Sequence[float]) -> Interval | None:
    """The mean of values of seeds, Student's t; ``None``: fewer than :data:`FEW` seeds."""
    return over_seeds(values) if len(values) >= FEW else None


def bounds(values: Sequence[float], digits: int = _DIGITS) -> tuple[float | None, float | None]:
    """The rounded ends of :func:`student`."""
    found = student(values)
    return (None, None) if found is None else (round(found.low, digits), round(found.high, digits))


def mean(outcomes: Iterable[Outcome]) -> float:
    """Success, masked episodes left out."""
    return fmean(o.value for o in outcomes if o.value is not None)


def known_mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not masked; ``None``: all are."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def percent(value: float, low: float, high: float, *, signed: bool = False) -> str:
    """A share or a difference with its interval, in percent."""
    return Interval(mean=value, low=low, high=high, n=0).percent(signed=signed)


def percent_range(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """An interval in percent."""
    if low is None or high is None:
        return "–"
    sign = "+" if signed else ""
    return f"[{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def success_shown(one: Row) -> str:
    """Success in percent with its clustered interval."""
    return percent(one.success, one.low, one.high)


def difference_shown(one: Contrast) -> str:
    """The difference in points with its clustered interval; bold if it was named before."""
    gap = percent(one.difference, one.low, one.high, signed=True)
    return f"**{gap}**" if one.named else gap


def seeds_shown(one: Row | Contrast) -> str:
    """The interval over seeds in percent."""
    return percent_range(one.t_low, one.t_high, signed=isinstance(one, Contrast))


def each_shown(one: Row | Contrast) -> str:
    """The values of the seeds in percent."""
    sign = "+" if isinstance(one, Contrast) else ""
    return ", ".join(f"{100 * value:{sign}.1f}" for value in one.by_seed)


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """The named differences in bold; the others are exploratory."""
    rows = [
        (f"{one.ours} - {one.theirs}", difference_shown(one), seeds_shown(one), each_shown(one),
         len(one.by_seed))
        for one in contrasts
    ]  # fmt: skip
    heads = ("difference", "points, 95 % by template", "Student-t", "each seed", "seeds")
    return markdown_table(heads, rows, "llllr")


def _by_seed(outcomes: Sequence[Outcome]) -> list[float]:
    seeds = sorted({o.run for o in outcomes})
    return [mean(o for o in outcomes if o.run == seed) for seed in seeds]


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
