"""The record of stage 2 on windows: rows and contrasts with intervals clustered by template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.windows.arms import arrows
from benchmarks.studies.windows.cells import Cell, Plan
from benchmarks.studies.windows.controls import Condition, Tested
from benchmarks.studies.windows.fixed import Fixed, fixed_tables
from benchmarks.studies.windows.held_out import SETS, TemplateSet
from benchmarks.studies.windows.replication import Replication, replication_tables
from benchmarks.studies.windows.rows import Contrast, Row
from benchmarks.studies.windows.stage2 import UNTRAINED, AgentMade
from benchmarks.support.origin import Origin
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Outcome, clustered_mean, paired_difference

Played = tuple[str, Condition]
"""An arm under a condition."""
NAMED: tuple[tuple[Played, Played], ...] = (
    (("learned-critic", "own edges"), ("none-critic", "own edges")),
    (("learned-critic", "own edges"), ("none-critic", "top ties")),
    (("learned-critic", "own edges"), ("learned-outcome", "own edges")),
)
"""The differences that were named before the study was run."""
EXPLORED: tuple[tuple[Played, Played], ...] = (
    (("learned-critic", "own edges"), ("learned-critic", "shuffled")),
    (("learned-critic", "own edges"), ("learned-critic", "muted")),
    (("learned-critic", "own edges"), ("learned-critic", "transplanted")),
    (("learned-critic", "own edges"), ("learned-critic", "scroller with notes")),
    (("learned-critic", "own edges"), ("redrawn-critic", "own edges")),
    (("none-critic", "own edges"), (UNTRAINED, "own edges")),
    (("learned-critic", "own edges"), (UNTRAINED, "own edges")),
    (("learned-critic", "own edges"), (UNTRAINED, "top ties")),
)
SHOWN: tuple[Played, ...] = (
    (UNTRAINED, "half windows"), (UNTRAINED, "scroller"), (UNTRAINED, "top ties"),
    (UNTRAINED, "whole screen"), ("none-critic", "top ties"), ("learned-critic", "muted"),
    ("learned-critic", "shuffled"),
)  # fmt: skip
"""Controls in the short table of the page, beside all teams with their own edges."""
_LABELS: dict[TemplateSet, str] = {"known": "known templates", "held_out": "held-out templates"}
_ARMS = {
    UNTRAINED: "before stage 2",
    "none-critic": "no edges, critic",
    "learned-critic": "learned edges, critic",
    "redrawn-critic": "redrawn edges, critic",
    "random-critic": "one random graph, critic",
    "none-outcome": "no edges, outcome",
    "learned-outcome": "learned edges, outcome",
    "redrawn-outcome": "redrawn edges, outcome",
    "random-outcome": "one random graph, outcome",
}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of the study."""

    origin: Origin
    plan: Plan
    agent: AgentMade
    templates: dict[TemplateSet, tuple[str, ...]]
    cells: tuple[Cell, ...]
    rows: tuple[Row, ...]
    contrasts: tuple[Contrast, ...]
    commits: tuple[str, ...]
    """The commits that trained and tested."""
    missing: tuple[str, ...]
    """Arms that were planned and not run."""
    fixed: Fixed | None = None
    """``None``: not measured."""
    replication: Replication | None = None
    """The main policies of ``fixed`` with other window agents; ``None``: not measured."""


def make_record(
    origin: Origin,
    plan: Plan,
    agent: AgentMade,
    cells: Sequence[Cell],
    tests: Sequence[Tested],
    fixed: Fixed | None = None,
    replication: Replication | None = None,
) -> Record:
    """The record of everything that is finished."""
    played: dict[Played, list[Tested]] = {}
    order = {arm: k for k, arm in enumerate(_ARMS)}
    for one in sorted(tests, key=lambda one: (order[one.arm], one.condition, one.seed)):
        played.setdefault((one.arm, one.condition), []).append(one)
    sets: tuple[TemplateSet, ...] = ("known", "held_out")
    pairs = [(pair, True) for pair in NAMED] + [(pair, False) for pair in EXPLORED]
    contrasts = [
        _contrast(played, *pair, templates, named)
        for templates in sets
        for pair, named in pairs
        if pair[0] in played and pair[1] in played
    ]
    rows = [_row(name, found, templates) for templates in sets for name, found in played.items()]
    return Record(
        origin=origin,
        plan=plan,
        agent=agent,
        templates=SETS,
        cells=tuple(cells),
        rows=tuple(rows),
        contrasts=tuple(one for one in contrasts if one is not None),
        commits=tuple(sorted({c.commit for c in cells} | {t.commit for t in tests})),
        missing=tuple(arm for arm in _ARMS if (arm, "own edges") not in played),
        fixed=fixed,
        replication=replication,
    )


def label(name: Played) -> str:
    """An arm under a condition, for tables."""
    arm, condition = name
    shown = "no edges" if arm == UNTRAINED else "own edges"
    return f"{_ARMS[arm]}: {shown if condition == 'own edges' else condition}"


def _row(name: Played, found: Sequence[Tested], templates: TemplateSet) -> Row:
    outcomes = [o for one in found for o in one.outcomes[templates]]
    rate = clustered_mean(outcomes)
    assert rate is not None, f"{name}: every episode has a fault"
    t_low, t_high = rates.bounds([rates.mean(one.outcomes[templates]) for one in found])
    return Row(
        name=label(name), templates=templates, success=round(rate.mean, 4),
        low=round(rate.low, 4), high=round(rate.high, 4), t_low=t_low, t_high=t_high,
        seeds=len(found), episodes=len(found[0].outcomes[templates]),
        calls=round(fmean(one.calls[templates] for one in found), 1),
        tokens=round(fmean(one.tokens[templates] for one in found), 1),
    )  # fmt: skip


def _contrast(
    played: Mapping[Played, Sequence[Tested]],
    ours: Played,
    theirs: Played,
    templates: TemplateSet,
    named: bool,
) -> Contrast | None:
    """The difference on the seeds that both have; the untrained agent has the same for all."""
    left: dict[int, Sequence[Outcome]] = {one.seed: one.outcomes[templates] for one in played[ours]}
    right: dict[int, Sequence[Outcome]] = {
        one.seed: one.outcomes[templates] for one in played[theirs]
    }
    if theirs[0] == UNTRAINED:
        (only,) = right.values()
        right = {seed: rates.repeated(only, [seed]) for seed in left}
    seeds = sorted(left.keys() & right.keys())
    gap = paired_difference(
        [o for seed in seeds for o in left[seed]], [o for seed in seeds for o in right[seed]]
    )
    if gap is None:
        return None
    t_low, t_high = rates.bounds(
        [rates.mean(left[seed]) - rates.mean(right[seed]) for seed in seeds]
    )
    return Contrast(
        name=f"{label(ours)} - {label(theirs)}", templates=templates,
        difference=round(gap.mean, 4), low=round(gap.low, 4), high=round(gap.high, 4),
        t_low=t_low, t_high=t_high, seeds=len(seeds), named=named,
    )  # fmt: skip


# -- tables ---------------------------------------------------------------------------------------


def rows_table(record: Record, templates: TemplateSet) -> str:
    """All arms and controls on one set of templates."""
    heads = (f"team, {_LABELS[templates]}", "success %", "over seeds", "seeds", "calls", "tokens")
    lines = [
        (
            row.name, rates.percent(row.success, row.low, row.high),
            rates.percent_range(row.t_low, row.t_high), row.seeds, f"{row.calls:.0f}",
            f"{row.tokens:,.0f}",
        )
        for row in record.rows
        if row.templates == templates
    ]  # fmt: skip
    return markdown_table(heads, lines, "lllr")


def main_table(record: Record) -> str:
    """The rows that the page discusses, both sets of templates side by side."""
    found = {(row.name, row.templates): row for row in record.rows}
    names = {label(name) for name in [*SHOWN, *((arm, "own edges") for arm in _ARMS)]}
    lines = []
    for name in dict.fromkeys(row.name for row in record.rows if row.name in names):
        known, held_out = found[name, "known"], found[name, "held_out"]
        shown = [rates.percent(row.success, row.low, row.high) for row in (known, held_out)]
        lines.append((name, *shown, known.seeds, f"{known.tokens:,.0f}"))
    heads = ("team", "known templates %", "held-out templates %", "seeds", "tokens, known")
    return markdown_table(heads, lines, "lllr")


def contrasts_table(contrasts: Sequence[Contrast]) -> str:
    """The named contrasts, then the exploratory ones."""
    heads = ("contrast", "templates", "difference, points", "over seeds", "seeds")
    lines = [
        (
            f"{'**named**' if one.named else 'exploratory'}: {one.name}",
            one.templates.replace("_", "-"),
            rates.percent(one.difference, one.low, one.high, signed=True),
            rates.percent_range(one.t_low, one.t_high, signed=True), one.seeds,
        )
        for one in sorted(contrasts, key=lambda one: not one.named)
    ]  # fmt: skip
    return markdown_table(heads, lines, "llllr")


def cells_table(record: Record) -> str:
    """What each run of stage 2 did, and the graph that it was tested with."""
    heads = ("arm", "seed", "gradient steps", "rollouts", "calls", "CPU-s", "edges of the test")
    lines = [
        (
            _ARMS[cell.arm], cell.seed, cell.steps, cell.episodes, f"{cell.calls:,}",
            f"{cell.seconds:.0f}",
            "redrawn" if cell.edges == "redrawn" else arrows(cell.graph),
        )
        for cell in record.cells
    ]  # fmt: skip
    return markdown_table(heads, lines, "lrrrrrl")


def all_rows(record: Record) -> list[Row]:
    """The rows of stage 2, those of the arms without it, and those of other window agents."""
    fixed = () if record.fixed is None else record.fixed.rows
    again = () if record.replication is None else record.replication.rows
    others = [msgspec.structs.replace(row, name=f"other agents: {row.name}") for row in again]
    return [*record.rows, *fixed, *others]


def markdown(record: Record) -> str:
    """All tables."""
    parts = [] if record.fixed is None else [fixed_tables(record.fixed)]
    parts += [] if record.replication is None else [replication_tables(record.replication)]
    parts += [
        main_table(record), rows_table(record, "known"), rows_table(record, "held_out"),
        contrasts_table(record.contrasts), cells_table(record),
    ]  # fmt: skip
    return "\n\n".join(parts)
