"""The study as a record, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.credit.cells import Cell, test_jobs
from benchmarks.studies.credit.plan import (
    CONTRASTS,
    CRITIC_FREE,
    FACTORS,
    GUIDED,
    SIDE_BY_SIDE,
    SOURCES,
    Arm,
    Plan,
)
from benchmarks.studies.credit.recorded import Judged, Recorded
from benchmarks.support.origin import Origin
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Interval, Outcome, clustered_mean, paired_difference

UNTRAINED = "untrained"
_FEW = 5
"""Templates below which an interval over templates is not shown."""
_SUCCESS = ("success after training %", "Student-t", "seeds", "samples", "CPU-s of training")
_LABELS: dict[str, str] = {str(name): label for name, label in SOURCES.items()}


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of the study."""

    origin: Origin
    plan: Plan
    recorded: Recorded
    judged: list[Judged]
    base: tuple[float | None, ...]
    """Test outcomes of the untrained team."""
    cells: list[Cell]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One arm. Success and differences are shares; intervals are 95 %."""

    name: str
    label: str
    seeds: int
    success: float
    cluster_low: float
    cluster_high: float
    """Hierarchical bootstrap over training runs, templates and episodes."""
    t_low: float | None
    t_high: float | None
    """Student's t over training runs; ``None``: less than 3 of them."""
    steps: int
    samples: float
    calls: float
    credit_calls: float
    cpu_s: float
    """Training. These five are means over the runs."""


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A difference on the same episodes, and of the same seeds."""

    name: str
    seeds: int
    difference: float
    cluster_low: float
    cluster_high: float
    t_low: float | None
    t_high: float | None


def rows(study: Study) -> list[Row]:
    """A row for each arm that has a finished run, after the untrained team."""
    found = [_row(UNTRAINED, "untrained team", _outcomes(study.plan, study.base), [])]
    for arm in (*SIDE_BY_SIDE, *GUIDED, *FACTORS):
        cells = _cells(study, arm.name)
        if cells:
            found.append(_row(arm.name, arm.label, _tests(study, cells), cells))
    return found


def chosen(study: Study) -> str | None:
    """The critic-free source with the highest success on validation; the first of equal ones.

    ``None`` if fewer than two sources were trained with all seeds of the arm with outcome credit.
    """
    seeds = {cell.seed for cell in _cells(study, "outcome")}
    success: dict[str, float] = {}
    for source in CRITIC_FREE:
        cells = _cells(study, source)
        if seeds and {cell.seed for cell in cells} == seeds:
            success[source] = fmean(v for c in cells for v in c.validation if v is not None)
    return max(success, key=lambda name: success[name]) if len(success) > 1 else None


def contrasts(study: Study) -> list[Contrast]:
    """Those of the differences named in advance whose runs are there."""
    best = chosen(study)
    pairs = [
        (CONTRASTS[0], ["critic"], ["outcome"]),
        (f"{CONTRASTS[1]}: {_LABELS.get(best or '')}", [best or ""], ["outcome"]),
        (CONTRASTS[2], ["outcome-guided"], ["outcome"]),
    ]  # fmt: skip
    return [found for pair in pairs if (found := difference(study, *pair)) is not None]


def exploratory(study: Study) -> list[Contrast]:
    """Differences that were not named in advance."""
    pairs: list[tuple[str, list[str], list[str]]] = [
        (f"{SOURCES[s]} - outcome", [s], ["outcome"]) for s in SOURCES if s != "outcome"
    ]
    pairs = pairs[1:]
    pairs.append(("scripted critic - outcome, guided 0.7", ["critic-guided"], ["outcome-guided"]))
    pairs.append(("guided 0.7 - no guidance, critic credit", ["critic-guided"], ["critic"]))
    for label, yes in _LEVELS:
        ours = [arm.name for arm in FACTORS if yes(arm)]
        theirs = [arm.name for arm in FACTORS if not yes(arm)]
        pairs.append((f"DPO, main effect: {label}", ours, theirs))
    return [found for pair in pairs if (found := difference(study, *pair)) is not None]


_LEVELS: tuple[tuple[str, Callable[[Arm], bool]], ...] = (
    ("scripted critic - outcome", lambda arm: arm.credit == "critic"),
    ("guided 0.7 - no guidance", lambda arm: arm.guide > 0.0),
    ("negatives graded - not graded", lambda arm: bool(arm.graded)),
)


def difference(
    study: Study, name: str, ours: Sequence[str], theirs: Sequence[str]
) -> Contrast | None:
    """The mean of some arms minus that of others, over the seeds that all of them have.

    Returns ``None`` if an arm has no run, or there is no common seed.
    """
    sides = [{arm: _cells(study, arm) for arm in side} for side in (ours, theirs)]
    groups = [{cell.seed for cell in cells} for side in sides for cells in side.values()]
    seeds = sorted(set.intersection(*groups)) if groups else []
    if not seeds:
        return None
    means = [_mean_outcomes(study, side, seeds) for side in sides]
    gap = paired_difference(*means)
    if gap is None:
        return None
    by_seed = [
        rates.mean(o for o in means[0] if o.run == s)
        - rates.mean(o for o in means[1] if o.run == s)
        for s in seeds
    ]
    low, high = rates.bounds(by_seed)
    return Contrast(
        name=name, seeds=len(seeds), difference=round(gap.mean, 4),
        cluster_low=round(gap.low, 4), cluster_high=round(gap.high, 4), t_low=low, t_high=high,
    )  # fmt: skip


def markdown(study: Study, found: Sequence[Row]) -> str:
    """All tables of the study; ``found``: its :func:`rows`, whose bootstrap takes seconds."""
    parts = [
        f"{study.origin.place}: {study.origin.command}",
        "The phone is simulated, critic and adversary are scripted.",
        sources_table(study, found),
        effects_table(study),
        arms_table(found),
    ]
    return "\n\n".join(parts)


def sources_table(study: Study, found: Sequence[Row]) -> str:
    """Each source: what it tells apart, what it costs, and what is learned from it."""
    heads = ("source of the credit", "AUC", "inside a decision", "scored %", "calls", "CPU-s",
             *_SUCCESS)  # fmt: skip
    by_name = {row.name: row for row in found}
    judged = {one.source: one for one in study.judged}
    rows = [["untrained team", *["–"] * 5, *_success(by_name[UNTRAINED])]]
    for source, label in SOURCES.items():
        one, row = judged.get(source), by_name.get(source)
        cells = ["–"] * 5
        if one is not None:
            cells = [
                _auc(one.auc), _auc(one.inside), f"{100 * one.scored:.0f}", f"{one.calls:,}",
                f"{one.seconds:.2f}",
            ]  # fmt: skip
        rows.append([label, *cells, *_success(row)])
    return markdown_table(heads, rows, "lllrrrllr")


def effects_table(study: Study) -> str:
    """The differences named in advance, then the exploratory ones."""
    heads = ("difference", "points, 95 % by template", "Student-t over seeds", "seeds")
    rows = [
        (
            f"{title}{one.name}",
            rates.percent(one.difference, one.cluster_low, one.cluster_high, signed=True),
            rates.percent_range(one.t_low, one.t_high, signed=True),
            one.seeds,
        )
        for title, found in (("", contrasts(study)), ("*exploratory:* ", exploratory(study)))
        for one in found
    ]
    return markdown_table(heads, rows, "lllr")


def arms_table(found: Sequence[Row]) -> str:
    """Success of the arms of the factorial controls."""
    by_name = {row.name: row for row in found}
    arms = (*SIDE_BY_SIDE[:2], *GUIDED, *FACTORS)
    rows = [(arm.label, arm.method.upper(), *_success(by_name.get(arm.name))) for arm in arms]
    return markdown_table(("arm", "method", *_SUCCESS), rows, "llllr")


def _row(name: str, label: str, outcomes: Sequence[Outcome], cells: Sequence[Cell]) -> Row:
    rate = clustered_mean(outcomes)
    assert rate is not None, f"{name}: every episode has a fault"
    low, high = rates.bounds([rates.mean(o for o in outcomes if o.run == c.seed) for c in cells])

    def mean(of: Sequence[float]) -> float:
        return round(fmean(of), 1) if of else 0.0

    return Row(
        name=name, label=label, seeds=len(cells), success=round(rate.mean, 4),
        cluster_low=round(rate.low, 4), cluster_high=round(rate.high, 4), t_low=low, t_high=high,
        steps=round(mean([c.steps for c in cells])), samples=mean([c.samples for c in cells]),
        calls=mean([c.calls for c in cells]), credit_calls=mean([c.credit_calls for c in cells]),
        cpu_s=mean([c.training_seconds for c in cells]),
    )  # fmt: skip


def _cells(study: Study, arm: str) -> list[Cell]:
    return sorted((c for c in study.cells if c.arm == arm), key=lambda cell: cell.seed)


def _tests(study: Study, cells: Sequence[Cell]) -> list[Outcome]:
    return [o for cell in cells for o in _outcomes(study.plan, cell.test, cell.seed)]


def _outcomes(plan: Plan, values: Sequence[float | None], run: int = 0) -> list[Outcome]:
    pairs = zip(test_jobs(plan), values, strict=True)
    return [Outcome(task, seed, value, run) for (task, seed), value in pairs]


def _mean_outcomes(
    study: Study, side: Mapping[str, Sequence[Cell]], seeds: Sequence[int]
) -> list[Outcome]:
    """The mean outcome of several arms on each episode of each seed."""
    found: list[Outcome] = []
    for seed in seeds:
        arms = [
            _outcomes(study.plan, c.test, seed)
            for cells in side.values()
            for c in cells
            if c.seed == seed
        ]
        for same in zip(*arms, strict=True):
            known = [o.value for o in same if o.value is not None]
            mean = fmean(known) if len(known) == len(same) else None
            found.append(msgspec.structs.replace(same[0], value=mean))
    return found


def _success(row: Row | None) -> tuple[str, ...]:
    """The cells of the columns :data:`_SUCCESS`."""
    if row is None:
        return "not run", "–", "–", "–", "–"
    rate = rates.percent(row.success, row.cluster_low, row.cluster_high)
    if not row.seeds:
        return rate, "–", "–", "–", "–"
    t = rates.percent_range(row.t_low, row.t_high)
    return rate, t, str(row.seeds), f"{row.samples:,.0f}", f"{row.cpu_s:.0f}"


def _auc(value: Interval | None) -> str:
    """With the number of templates in place of an interval that a few of them cannot give."""
    if value is None:
        return "–"
    if value.n < _FEW:
        return f"{value.mean:.2f} ({value.n} template{'s' * (value.n > 1)})"
    return f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
