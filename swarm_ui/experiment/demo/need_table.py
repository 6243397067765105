"""The table of the demo about where a team is needed, for the terminal and for the report."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from swarm_ui.experiment.split_facts.need_of_a_team import NOTE, TITLE, NeedRow
from swarm_ui.report import Estimate, ReportTable


def need_in_terminal(need: Sequence[NeedRow]) -> Table:
    """The rows as a table of rich."""
    table = Table(
        "edges",
        title=TITLE,
        title_justify="left",
        caption=NOTE,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in ("success % [95 %]", "tokens an episode", "n"):
        table.add_column(column, justify="right")
    for row in need:
        count = str(row.success.n)
        table.add_row(f"  {row.label}", row.success.percent(), f"{row.tokens:,.0f}", count)
    return table


def need_in_report(need: Sequence[NeedRow]) -> tuple[ReportTable, ...]:
    """The rows as a table of the report; none without rows."""
    if not need:
        return ()
    rows = tuple((row.label, _estimate(row), round(row.tokens)) for row in need)
    columns = ("edges", "success %", "tokens an episode")
    return (ReportTable(title=TITLE, columns=columns, rows=rows, note=NOTE),)


def _estimate(row: NeedRow) -> Estimate:
    found = row.success
    return Estimate(value=found.mean, low=found.low, high=found.high, count=found.n)
