"""The results as one table in the terminal and as tables of the report."""

from __future__ import annotations

from rich import box
from rich.table import Table

from swarm_ui.experiment.results import Results, Row
from swarm_ui.report import Estimate, ReportTable, TableCell
from swarm_ui.stats import Interval

CURVE_SPLIT = "validation"
"""This split is for the learning curve, not for the table."""


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
    """One table for each split."""
    columns = ("policy", "success %", "minus base greedy", "minus trained greedy",
               "calls a decision", "masked")  # fmt: skip
    return tuple(
        ReportTable(
            title=results.splits.get(split, split),
            columns=columns,
            rows=tuple(_report_row(row) for row in rows),
            note=_caption(results),
        )
        for split, rows in grouped(results)
    )


def grouped(results: Results) -> list[tuple[str, list[Row]]]:
    """Rows by split, without those of the learning curve."""
    rows = results.rows()
    order = list(results.splits) or list(dict.fromkeys(row.split for row in rows))
    pairs = [(s, [row for row in rows if row.split == s]) for s in order if s != CURVE_SPLIT]
    return [(split, found) for split, found in pairs if found]


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
        _estimate(row.success),
        _estimate(row.to_base, difference=True),
        _estimate(row.to_trained, difference=True),
        round(row.calls_per_decision, 2),
        row.masked,
    )


def _estimate(interval: Interval | None, *, difference: bool = False) -> Estimate | None:
    if interval is None:
        return None
    count = None if difference else interval.n
    return Estimate(value=interval.mean, low=interval.low, high=interval.high,
                    difference=difference, count=count)  # fmt: skip


def _caption(results: Results) -> str:
    parts = [
        "95 % intervals: bootstrap over tasks and their episodes; differences paired on the same "
        "episodes, * if 0 is outside."
    ]
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
