"""The figures of the study: a row for each arm, the contrasts, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.critic_errors.cells import CriticCell
from benchmarks.studies.critic_errors.plan import (
    ARMS,
    CONTRASTS,
    EXPLORED,
    LABELS,
    UNTRAINED,
    Plan,
)
from benchmarks.studies.rates import Contrast
from benchmarks.studies.struct_files import Sources, read_cells, read_struct, sources_of
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Outcome

_NOTE = (
    "The phone is simulated and the critics are scripted: scores on it are not AndroidWorld scores."
)


class Row(rates.Row, frozen=True, kw_only=True):
    """One arm, or the untrained team."""

    arm: str
    weights: list[list[float]]
    """Of the critic at the end, by seed and round; empty without a critic."""
    seconds: float | None
    """Mean CPU time of the training of a seed."""


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    plan: Plan
    rows: list[Row]
    contrasts: list[Contrast]
    equal: list[str]
    """Arms whose trained weights equal those of training without a critic, in every seed."""


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    found = read_cells(folder, CriticCell)
    cells = list(found.values())
    base = read_struct(folder / "base.json", list[Outcome])
    arms = {
        name: sorted((c for c in cells if c.arm == name), key=lambda c: c.seed) for name in ARMS
    }
    arms = {name: own for name, own in arms.items() if own}
    outcomes = {name: [o for cell in own for o in cell.outcomes] for name, own in arms.items()}
    outcomes[UNTRAINED] = rates.repeated(base, sorted({cell.seed for cell in cells}))
    return Study(
        **sources_of("critic_errors", found, (cell.commit for cell in cells)),
        plan=read_struct(folder / "settings.json", Plan),
        rows=[_row(UNTRAINED, (), base), *(_row(n, own, outcomes[n]) for n, own in arms.items())],
        contrasts=_contrasts(outcomes),
        equal=_equal(arms),
    )


def _row(arm: str, cells: Sequence[CriticCell], outcomes: Sequence[Outcome]) -> Row:
    found = rates.row(LABELS[arm], outcomes, seeded=bool(cells))
    ends = [[round(w, 2) for w in cell.weights[-1]] for cell in cells if cell.weights[-1]]
    seconds = round(fmean(cell.training_seconds for cell in cells), 1) if cells else None
    return Row(**msgspec.structs.asdict(found), arm=arm, weights=ends, seconds=seconds)


def _contrasts(outcomes: Mapping[str, Sequence[Outcome]]) -> list[Contrast]:
    return [
        rates.contrast((LABELS[a], outcomes[a]), (LABELS[b], outcomes[b]), named=pairs is CONTRASTS)
        for pairs in (CONTRASTS, EXPLORED)
        for a, b in pairs
        if {o.run for o in outcomes.get(a, ())} & {o.run for o in outcomes.get(b, ())}
    ]


def _equal(arms: Mapping[str, Sequence[CriticCell]]) -> list[str]:
    without = {cell.seed: cell.digest for cell in arms.get(ARMS[0], ())}
    return [
        name for name, cells in arms.items()
        if name != ARMS[0] and all(without.get(cell.seed) == cell.digest for cell in cells)
    ]  # fmt: skip


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    return "\n\n".join([main_table(study), contrasts_table(study), *_same(study), _NOTE])


def main_table(study: Study) -> str:
    """Every arm."""
    heads = ("critic", "success %", "Student-t", "each seed", "weight at the end", "seeds",
             "CPU-s of training")  # fmt: skip
    lines = []
    for one in study.rows:
        weights = ", ".join("/".join(f"{w:.2f}" for w in own) for own in one.weights) or "–"
        each = rates.each_shown(one) if one.seeds else "–"
        spent = "–" if one.seconds is None else f"{one.seconds:.0f}"
        lines.append((
            one.name, rates.success_shown(one), rates.seeds_shown(one), each, weights,
            one.seeds or "–", spent,
        ))  # fmt: skip
    return markdown_table(heads, lines, "lllllr")


def contrasts_table(study: Study) -> str:
    """The named differences in bold; the others are exploratory."""
    return rates.contrasts_table(study.contrasts)


def _same(study: Study) -> list[str]:
    """The arms that learned nothing from their critic, as one sentence."""
    if not study.equal:
        return []
    names = ", ".join(LABELS[name] for name in study.equal)
    return [
        f"Trained weights that equal those without a critic, bit for bit, in each seed: {names}."
    ]
