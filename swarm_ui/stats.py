"""Intervals for success rates and for differences between policies on the same episodes.

Outcomes are 0/1 or bools; ``None`` is an episode that a fault masked. Masked episodes are left out
(of both sides of a comparison), never counted as failures. All intervals are 95 %.

Episodes of one task template resemble each other, so an interval that treats them as independent
is too narrow. :func:`clustered_mean` and :func:`clustered_difference` allow for this. They need
outcomes that name their template (:func:`by_template`).
"""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate

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
    """Number of episodes (or seeds)."""

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0.0 or self.high < 0.0

    def percent(self, *, signed: bool = False) -> str:
        """In percent, such as ``"54.8 [50.4, 59.1]"``, or ``"+3.6 [+0.7, +6.5]"``."""
        form = "{:+.1f} [{:+.1f}, {:+.1f}]" if signed else "{:.1f} [{:.1f}, {:.1f}]"
        return form.format(100 * self.mean, 100 * self.low, 100 * self.high)


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one episode, with the groups that the episode belongs to."""

    template: str
    """The name of the episode's task."""
    seed: int
    """Seed of the episode."""
    value: float | None
    """``None`` if a fault masked the episode."""
    run: int = 0
    """The training run (its seed) that made the policy. All runs play the same episodes."""


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


def by_template(episodes: Sequence[Episode], run: int = 0) -> list[Outcome]:
    """The outcomes of episodes, each with its template and the training run ``run``."""
    return [
        Outcome(episode.task, episode.seed, value, run)
        for episode, value in zip(episodes, outcomes(episodes), strict=True)
    ]


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
    means = [sum(rng.choices(deltas, k=n)) / n for _ in range(resamples)]
    return percentile_interval(sum(deltas) / n, means, n)


def percentile_interval(mean: float, resampled: Sequence[float], n: int) -> Interval:
    """The 95 % interval between percentiles of a statistic of all resamples."""
    means, size = sorted(resampled), len(resampled)
    low, high = means[int(0.025 * size)], means[min(size - 1, int(0.975 * size))]
    return Interval(mean=mean, low=low, high=high, n=n)


def clustered_mean(
    values: Sequence[Outcome], *, seed: int = 0, resamples: int = 2000
) -> Interval | None:
    """Mean outcome with a percentile interval from a hierarchical bootstrap.

    Each resample draws, with replacement, training runs, then templates, then the episodes of each
    template that was drawn. All drawn runs are evaluated on the same drawn episodes. With one run
    and one episode in each template, this is the plain bootstrap over episodes.

    The interval is about new templates. Where all episodes are of one template, it is about new
    episodes of that template. Few runs say little about the variance between runs; see
    :func:`over_seeds`. Where all outcomes are 1 or all are 0, every resample is the same, and the
    interval is Wilson's with one observation for each template.

    Args:
        values: outcomes; masked ones are left out.
        seed: the seed of the resamples.
        resamples: number of resamples.

    Returns:
        ``None`` if nothing is left unmasked.
    """
    kept = {o.value for o in values if o.value is not None}
    if kept in ({0.0}, {1.0}):
        templates = {o.template for o in values if o.value is not None}
        same = wilson([*kept] * len(templates))
        n = sum(o.value is not None for o in values)
        return None if same is None else msgspec.structs.replace(same, n=n)
    return _clustered(values, seed, resamples)


def clustered_difference(
    ours: Sequence[Outcome], theirs: Sequence[Outcome], *, seed: int = 0, resamples: int = 2000
) -> Interval | None:
    """Mean of ``ours - theirs``, paired by run, template and episode, with an interval.

    The interval is that of :func:`clustered_mean`. An episode that is masked on one side is left
    out of both.

    Raises:
        ConfigError: the two sides are not the same episodes.
    """
    left, right = _by_episode(ours), _by_episode(theirs)
    if left.keys() != right.keys():
        lacking = len(left.keys() ^ right.keys())
        raise ConfigError(
            f"a paired comparison needs the same episodes on both sides, got {len(left)} and "
            f"{len(right)}, of which {lacking} are on one side only"
        )
    deltas = []
    for key, outcome in left.items():
        a, b = outcome.value, right[key].value
        value = None if a is None or b is None else a - b
        deltas.append(msgspec.structs.replace(outcome, value=value))
    return _clustered(deltas, seed, resamples)


def over_seeds(values: Sequence[float]) -> Interval | None:
    """Mean over independent training runs, with Student's t: the variance *between* runs.

    One run says nothing about that variance, so its interval is infinite.
    """
    if not values:
        return None
    mean, error = _mean_and_error(values)
    half = math.inf if len(values) == 1 else _t(len(values) - 1) * error
    return Interval(mean=mean, low=mean - half, high=mean + half, n=len(values))


def table(
    results: Mapping[str, Outcomes] | Mapping[str, Sequence[Outcome]],
    *,
    against: str | None = None,
) -> list[Row]:
    """One row for each policy, all run on the same episodes.

    Args:
        results: outcomes by label, in the order of the rows. With :class:`Outcome` records the
            intervals are clustered by template. Plain numbers must be in the same order in all
            rows; they get a Wilson interval, and a normal one for the difference.
        against: label of the row that the others are compared with.
    """
    if against is not None and against not in results:
        raise ConfigError(f"no row '{against}' to compare with; there are {', '.join(results)}")
    records = {label: [o for o in row if isinstance(o, Outcome)] for label, row in results.items()}
    numbers = {
        label: [o for o in row if not isinstance(o, Outcome)] for label, row in results.items()
    }
    rows = []
    for label in results:
        ours, plain = records[label], numbers[label]
        success = clustered_mean(ours) if ours else wilson(plain)
        difference = None
        if against is not None and label != against:
            difference = (
                clustered_difference(ours, records[against])
                if ours
                else paired_difference(plain, numbers[against])
            )
        masked = sum(v is None for v in (*plain, *(o.value for o in ours)))
        rows.append(Row(label=label, success=success, masked=masked, difference=difference))
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


def _by_episode(values: Sequence[Outcome]) -> dict[tuple[int, str, int, int], Outcome]:
    """Outcomes by run, template, seed, and number among those with the same three."""
    found: dict[tuple[int, str, int, int], Outcome] = {}
    repeats: dict[tuple[int, str, int], int] = {}
    for outcome in values:
        key = (outcome.run, outcome.template, outcome.seed)
        repeats[key] = repeats.get(key, -1) + 1
        found[*key, repeats[key]] = outcome
    return found


def _clustered(values: Sequence[Outcome], seed: int, resamples: int) -> Interval | None:
    """The hierarchical bootstrap of :func:`clustered_mean`."""
    templates: dict[str, dict[tuple[int, int], list[tuple[int, float]]]] = {}
    for (run, template, episode, repeat), outcome in _by_episode(values).items():
        if outcome.value is not None:
            episodes = templates.setdefault(template, {})
            episodes.setdefault((episode, repeat), []).append((run, float(outcome.value)))
    kept = [o for o in values if o.value is not None]
    if not kept:
        return None
    runs = sorted({o.run for o in kept})

    @cache
    def clusters(drawn: tuple[int, ...]) -> list[list[tuple[float, int]]]:
        """Sum and number of the outcomes of the drawn runs, by template and episode."""
        return [
            [
                (sum(v * drawn.count(r) for r, v in cell), sum(drawn.count(r) for r, _ in cell))
                for cell in episodes.values()
            ]
            for episodes in templates.values()
        ]

    rng = random.Random(seed)
    if len(runs) == 1:
        one_run = [[value for value, _ in cluster] for cluster in clusters((runs[0],))]
        means = _resampled_means(one_run, rng, resamples)
    else:
        means = []
        for _ in range(resamples):
            drawn = tuple(sorted(rng.choices(runs, k=len(runs))))
            total, count = 0.0, 0
            for cluster in rng.choices(clusters(drawn), k=len(templates)):
                chosen = cluster if len(cluster) == 1 else rng.choices(cluster, k=len(cluster))
                for value, number in chosen:
                    total += value
                    count += number
            if count:
                means.append(total / count)
    mean = sum(float(o.value or 0.0) for o in kept) / len(kept)
    return percentile_interval(mean, means, len(kept))


def _resampled_means(
    clusters: Sequence[Sequence[float]], rng: random.Random, resamples: int
) -> list[float]:
    """Means of resamples of clusters and of the values of each drawn cluster.

    If a cluster has few different values, the sum of its draws is sampled from the exact
    distribution of the sum, with one random number instead of one for each value.
    """
    sums = [
        (values, *(_sum_distribution(values) if len(set(values)) <= 3 else ([], [])))
        for values in clusters
    ]
    means = []
    for _ in range(resamples):
        total, count = 0.0, 0
        for values, support, cumulative in rng.choices(sums, k=len(sums)):
            if not support:
                total += sum(rng.choices(values, k=len(values)))
            elif len(support) == 1:
                total += support[0]
            else:
                total += support[min(bisect(cumulative, rng.random()), len(support) - 1)]
            count += len(values)
        means.append(total / count)
    return means


def _sum_distribution(values: Sequence[float]) -> tuple[list[float], list[float]]:
    """The sums of ``len(values)`` draws with replacement, and their cumulative probabilities."""
    single = {value: n / len(values) for value, n in Counter(values).items()}
    sums = {0.0: 1.0}
    for _ in values:
        longer: dict[float, float] = {}
        for total, p in sums.items():
            for value, q in single.items():
                longer[total + value] = longer.get(total + value, 0.0) + p * q
        sums = longer
    support = sorted(sums)
    return support, list(accumulate(sums[total] for total in support))


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
