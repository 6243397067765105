"""The results as one table in the terminal and as tables of the report."""

from __future__ import annotations

from rich import box
from rich.table import Table

from swarm_ui.experiment.results import Results, Row
from swarm_ui.report import Estimate, ReportTable, TableCell
from swarm_ui.stats import Interval

CURVE_SPLIT = "validation"
"""Measured for the learning curve, not for the table."""


def terminal_table(results: Results) -> Table:
    """All splits in one table, with 95 % intervals."""
    table = Table(
        title="Success on test episodes",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = _caption(results)
    table.add_column("policy")
    table.add_column("success % [95 %]", justify="right")
    table.add_column("minus base", justify="right")
    table.add_column("minus trained greedy", justify="right")
    table.add_column("calls", justify="right")
    table.add_column("n", justify="right")
    for split, rows in grouped(results):
        table.add_section()
        table.add_row(results.splits.get(split, split), style="bold")
        for row in rows:
            table.add_row(
                f"  {row.label}",
                "–" if row.success is None else row.success.percent(),
                _gap(row.to_base),
                _gap(row.to_trained),
                f"{row.calls_per_decision:.1f}",
                _count(row),
                style="" if row.arm.startswith("base") else "cyan",
            )
    return table


def report_tables(results: Results) -> tuple[ReportTable, ...]:
    """One table a split, and one of speed."""
    columns = ("policy", "success %", "minus base greedy", "minus trained greedy",
               "calls a decision", "masked")  # fmt: skip
    tables = [
        ReportTable(
            title=results.splits.get(split, split),
            columns=columns,
            rows=tuple(_report_row(row) for row in rows),
            note=_caption(results),
        )
        for split, rows in grouped(results)
    ]
    return (*tables, _speed(results))


def grouped(results: Results) -> list[tuple[str, list[Row]]]:
    """Rows by split, without those of the learning curve."""
    rows = results.rows()
    order = list(results.splits) or list(dict.fromkeys(row.split for row in rows))
    pairs = [(s, [row for row in rows if row.split == s]) for s in order if s != CURVE_SPLIT]
    return [(split, found) for split, found in pairs if found]


def estimate(interval: Interval | None, *, difference: bool = False) -> Estimate | None:
    """An interval as the report takes it."""
    if interval is None:
        return None
    return Estimate(
        value=interval.mean,
        low=interval.low,
        high=interval.high,
        difference=difference,
        count=None if difference else interval.n,
    )


def speed_line(results: Results) -> str:
    """Tokens per second and the model's share of the time, in rollouts."""
    work = results.rollouts
    if work is None or not work.seconds:
        return ""
    return (
        f"Rollouts of stage 2: {work.calls} calls, {work.tokens_per_second:.0f} tokens/s, "
        f"{100 * work.model_share:.0f} % of the wall time inside the model."
    )


def _report_row(row: Row) -> tuple[TableCell, ...]:
    return (
        row.label,
        estimate(row.success),
        estimate(row.to_base, difference=True),
        estimate(row.to_trained, difference=True),
        round(row.calls_per_decision, 2),
        row.masked,
    )


def _speed(results: Results) -> ReportTable:
    rows: list[tuple[TableCell, ...]] = []
    works = [
        (f"{arm.split}: {arm.label}", arm.work) for arm in results.arms if arm.split != CURVE_SPLIT
    ]
    if results.rollouts is not None:
        works.insert(0, ("rollouts of stage 2", results.rollouts))
    for label, work in works:
        rows.append(
            (
                label,
                work.decisions,
                work.calls,
                work.scored,
                round(work.tokens_per_second),
                Estimate(value=work.model_share) if work.model_seconds else None,
                round(work.seconds, 1),
            )
        )
    return ReportTable(
        title="Cost and speed",
        columns=("episodes of", "decisions", "calls", "replies scored", "tokens / s",
                 "wall time in the model, %", "seconds"),
        rows=tuple(rows),
        note="Tokens are those of prompts and replies of calls, without scored ones. Seconds are "
        "wall time, summed over the processes that played the episodes.",
    )  # fmt: skip


def _caption(results: Results) -> str:
    parts = ["95 % intervals: Wilson; differences paired on the same episodes, * if 0 is outside."]
    if results.labels:
        parts.append("; ".join(results.labels) + ".")
    return " ".join([*parts, *results.notes])


def _gap(interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return interval.percent(signed=True) + ("*" if interval.excludes_zero else " ")


def _count(row: Row) -> str:
    n = 0 if row.success is None else row.success.n
    return f"{n} ({row.masked} masked)" if row.masked else str(n)
