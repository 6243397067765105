"""The figures of the study: shares of decisions with and without edges, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.struct_files import Sources, read_cells, read_struct, sources_of
from benchmarks.studies.talk.cells import Cell, Decision, Seen
from benchmarks.studies.talk.plan import CONTRASTS, MEASURES, SILENT, TALKING, Plan
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Outcome

_NOTE = (
    "The phone is simulated, and a scripted critic grades every proposal: figures of it are not "
    "AndroidWorld scores."
)


class Row(rates.Row, frozen=True, kw_only=True):
    """A share of decisions, without edges or with them; ``success`` is the share."""

    measure: str
    edges: bool
    decisions: int
    """Of all teams together."""


class Contrast(rates.Contrast, frozen=True, kw_only=True):
    """A share with edges minus the same share without, on the same screens."""

    measure: str


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    plan: Plan
    rows: list[Row]
    contrasts: list[Contrast]
    decisions: int
    """Screens on which the teams decided, with and without edges."""
    seconds: float
    """CPU time of training and decisions."""


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    found = read_cells(folder, Cell)
    cells = list(found.values())
    plan = read_struct(folder / "settings.json", Plan)
    sides = {name: (_values(cells, name, False), _values(cells, name, True)) for name in MEASURES}
    sides = {name: both for name, both in sides.items() if both[0]}
    return Study(
        **sources_of("talk", found, (cell.commit for cell in cells)),
        plan=plan,
        rows=[
            _row(name, outcomes, edges, plan)
            for name, both in sides.items()
            for edges, outcomes in zip((False, True), both, strict=True)
        ],
        contrasts=[_contrast(name, *both) for name, both in sides.items()],
        decisions=sum(len(cell.decisions) for cell in cells),
        seconds=round(sum(cell.seconds for cell in cells), 1),
    )


def value(measure: str, decision: Decision, edges: bool) -> float | None:
    """A measure of one decision, or ``None`` if the decision does not count for this measure."""
    seen: Seen = decision.talking if edges else decision.silent
    if measure == "one":
        return sum(seen.right) / len(seen.right)
    if measure == "any":
        return float(any(seen.right))
    if measure == "same":
        return float(seen.alike)
    if measure == "split" and decision.silent.alike:
        return None
    return float(seen.vote)


def _values(cells: Sequence[Cell], measure: str, edges: bool) -> list[Outcome]:
    return [
        Outcome(d.task, d.seed, found, cell.seed)
        for cell in cells
        for d in cell.decisions
        if (found := value(measure, d, edges)) is not None
    ]


def _row(measure: str, outcomes: Sequence[Outcome], edges: bool, plan: Plan) -> Row:
    name = f"{MEASURES[measure]}, {TALKING if edges else SILENT}"
    found = msgspec.structs.asdict(rates.row(name, outcomes)) | {"episodes": plan.watched}
    return Row(**found, measure=measure, edges=edges, decisions=len(outcomes))


def _contrast(measure: str, silent: Sequence[Outcome], talking: Sequence[Outcome]) -> Contrast:
    gap = rates.contrast((TALKING, talking), (SILENT, silent), named=measure in CONTRASTS)
    return Contrast(**msgspec.structs.asdict(gap), measure=measure)


# -- the table ------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All of the study."""
    count = len(study.data)
    head = f"{count} team{'s' * (count > 1)}, {study.decisions:,} decisions."
    return "\n\n".join([head, table(study), _NOTE])


def table(study: Study) -> str:
    """Every measure; the differences that were named before are bold."""
    rows = {(row.measure, row.edges): row for row in study.rows}
    heads = ("share of decisions, %", SILENT, TALKING, "difference, 95 % by template", "Student-t",
             "each team", "decisions")  # fmt: skip
    lines = []
    for gap in study.contrasts:
        silent, talking = rows[gap.measure, False], rows[gap.measure, True]
        lines.append((
            MEASURES[gap.measure], f"{100 * silent.success:.1f}", f"{100 * talking.success:.1f}",
            rates.difference_shown(gap), rates.seeds_shown(gap), rates.each_shown(gap),
            f"{silent.decisions:,}",
        ))  # fmt: skip
    return markdown_table(heads, lines, "lrrlllr")
