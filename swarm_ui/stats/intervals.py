"""Outcomes of episodes, and the interval of a success rate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from swarm_ui.trace.records import Episode

Z = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""
# Two-sided 95 % quantiles of Student's t for 1..10 degrees of freedom; beyond, _t() interpolates.
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int
    """Number of episodes (or seeds) from which the interval is computed."""

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0.0 or self.high < 0.0

    def percent(self, *, signed: bool = False) -> str:
        """In percent, such as ``"54.8 [50.4, 59.1]"``, or ``"+3.6 [+0.7, +6.5]"``."""
        form = "{:+.1f} [{:+.1f}, {:+.1f}]" if signed else "{:.1f} [{:.1f}, {:.1f}]"
        return form.format(100 * self.mean, 100 * self.low, 100 * self.high)


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of a benchmark, with its 95 % interval from a bootstrap over tasks."""

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


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one episode, with the template and the run by which intervals cluster it."""

    template: str
    """The name of the episode's task."""
    seed: int
    """Seed of the episode."""
    value: float | None
    """``None`` if a fault masked the episode."""
    run: int = 0
    """The training run (its seed) that made the policy. All runs play the same episodes."""


Outcomes = Sequence[float | bool | None] | Sequence[Outcome]


def outcomes(episodes: Sequence[Episode], run: int = 0) -> list[Outcome]:
    """The outcome of each episode: 1.0, 0.0 or ``None`` (masked), with its template.

    ``run``: the training run that made the policy.
    """
    return [
        Outcome(e.task, e.seed, None if e.success is None else float(e.success), run)
        for e in episodes
    ]


def wilson(values: Outcomes) -> Interval | None:
    """Wilson score interval of a success rate; ``None`` if nothing is left unmasked.

    Unlike the normal interval, it is valid near 0 and 1 and for few episodes. It treats the
    episodes as independent, whatever their template.
    """
    plain = [v.value if isinstance(v, Outcome) else v for v in values]
    kept = [float(v) for v in plain if v is not None]
    return wilson_of(sum(kept), len(kept))


def wilson_of(solved: float, n: int) -> Interval | None:
    """:func:`wilson` of ``n`` outcomes whose sum is ``solved``; ``None`` if ``n`` is 0."""
    if not n:
        return None
    p = solved / n
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n * n))
    # At 0 and 1 the bound is p itself, up to rounding.
    low, high = max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half))
    return Interval(mean=p, low=low, high=high, n=n)


def percentile_interval(mean: float, resampled: Sequence[float], n: int) -> Interval:
    """The 95 % interval between percentiles of a statistic of all resamples."""
    means, size = sorted(resampled), len(resampled)
    low, high = means[int(0.025 * size)], means[min(size - 1, int(0.975 * size))]
    return Interval(mean=mean, low=low, high=high, n=n)


def over_seeds(values: Sequence[float]) -> Interval | None:
    """Mean over independent training runs, with Student's t: the variance *between* runs.

    One run says nothing about that variance, so its interval is infinite.
    """
    if not values:
        return None
    n, mean, half = len(values), sum(values) / len(values), math.inf
    if n > 1:
        half = _t(n - 1) * math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return Interval(mean=mean, low=mean - half, high=mean + half, n=n)


def _t(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    # First terms of the expansion in 1/freedom; off by less than 0.005 from here on.
    return Z + (Z**3 + Z) / (4 * freedom) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * freedom**2)
