"""Intervals for success rates and for differences between policies on the same episodes.

Outcomes are 0/1 or bools; ``None`` is an episode that a fault masked. Masked episodes are left out
(of both sides of a comparison), never counted as failures. All intervals are 95 %.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.trace.records import Episode

Outcomes = Sequence[float | bool | None]

_Z = 1.959964
# Two-sided 95 % quantiles of Student's t for 1..10 degrees of freedom; beyond, _t() interpolates.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int
    """Episodes (or seeds) it rests on."""

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0.0 or self.high < 0.0

    def percent(self, *, signed: bool = False) -> str:
        """In percent, such as ``"54.8 [50.4, 59.1]"``, or ``"+3.6 [+0.7, +6.5]"``."""
        form = "{:+.1f} [{:+.1f}, {:+.1f}]" if signed else "{:.1f} [{:.1f}, {:.1f}]"
        return form.format(100 * self.mean, 100 * self.low, 100 * self.high)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a results table."""

    label: str
    success: Interval | None
    """``None`` if every episode was masked."""
    masked: int
    """Episodes left out because of a fault."""
    difference: Interval | None = None
    """Paired difference to the row it is compared with; ``None`` for that row itself."""


def outcomes(episodes: Sequence[Episode]) -> list[float | None]:
    """1.0, 0.0 or ``None`` (masked) for each episode."""
    return [None if e.success is None else float(e.success) for e in episodes]


def wilson(values: Outcomes) -> Interval | None:
    """Wilson score interval of a success rate; ``None`` if nothing is left unmasked.

    Sound near 0 and 1 and for few episodes, unlike the normal interval.
    """
    kept = [float(v) for v in values if v is not None]
    if not kept:
        return None
    n = len(kept)
    p = sum(kept) / n
    centre = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n * n))
    # At 0 and 1 the bound is p itself, up to rounding.
    low, high = max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))
    return Interval(mean=p, low=low, high=high, n=n)


def paired_difference(ours: Outcomes, theirs: Outcomes) -> Interval | None:
    """Mean of ``ours - theirs`` over episodes unmasked in both, with a normal interval.

    Raises:
        ConfigError: the two are not the same episodes (lengths differ).
    """
    deltas = _deltas(ours, theirs)
    if not deltas:
        return None
    mean, error = _mean_and_error(deltas)
    return Interval(mean=mean, low=mean - _Z * error, high=mean + _Z * error, n=len(deltas))


def bootstrap_difference(
    ours: Outcomes, theirs: Outcomes, rng: random.Random, *, resamples: int = 2000
) -> Interval | None:
    """As :func:`paired_difference`, with a percentile bootstrap over episodes."""
    deltas = _deltas(ours, theirs)
    if not deltas:
        return None
    n = len(deltas)
    means = sorted(sum(rng.choices(deltas, k=n)) / n for _ in range(resamples))
    low, high = means[int(0.025 * resamples)], means[min(resamples - 1, int(0.975 * resamples))]
    return Interval(mean=sum(deltas) / n, low=low, high=high, n=n)


def over_seeds(values: Sequence[float]) -> Interval | None:
    """Mean over independent training runs, with Student's t: the variance *between* runs.

    One run says nothing about that variance, so its interval is infinite.
    """
    if not values:
        return None
    mean, error = _mean_and_error(values)
    half = math.inf if len(values) == 1 else _t(len(values) - 1) * error
    return Interval(mean=mean, low=mean - half, high=mean + half, n=len(values))


def table(results: Mapping[str, Outcomes], *, against: str | None = None) -> list[Row]:
    """One row for each policy, all run on the same episodes in the same order.

    Args:
        results: outcomes by label, in the order of the rows.
        against: label of the row that the others are compared with.
    """
    if against is not None and against not in results:
        raise ConfigError(f"no row '{against}' to compare with; there are {', '.join(results)}")
    rows = []
    for label, values in results.items():
        other = None if against is None or label == against else results[against]
        rows.append(
            Row(
                label=label,
                success=wilson(values),
                masked=sum(v is None for v in values),
                difference=None if other is None else paired_difference(values, other),
            )
        )
    return rows


def markdown(rows: Sequence[Row], *, against: str = "the first row") -> str:
    """The rows as a Markdown table, in percent."""
    lines = [
        f"| policy | success % [95 %] | difference to {against} | episodes | masked |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        success = "–" if row.success is None else row.success.percent()
        gap = "–" if row.difference is None else row.difference.percent(signed=True)
        count = 0 if row.success is None else row.success.n
        lines.append(f"| {row.label} | {success} | {gap} | {count} | {row.masked} |")
    return "\n".join(lines)


def _deltas(ours: Outcomes, theirs: Outcomes) -> list[float]:
    if len(ours) != len(theirs):
        raise ConfigError(
            f"a paired comparison needs the same episodes on both sides, got {len(ours)} and "
            f"{len(theirs)}"
        )
    return [
        float(a) - float(b)
        for a, b in zip(ours, theirs, strict=True)
        if a is not None and b is not None
    ]


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error (0 for a single value)."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / max(1, n - 1)
    return mean, math.sqrt(variance / n)


def _t(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    # First terms of the expansion in 1/freedom; off by less than 0.005 from here on.
    return _Z + (_Z**3 + _Z) / (4 * freedom) + (5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / (96 * freedom**2)
