"""Comparisons and calibration reports as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from swarm_ui.optim.credit.analysis.calibration import Calibration, Part
from swarm_ui.optim.credit.analysis.compare import Comparison
from swarm_ui.optim.credit.analysis.credit_report import CreditReport
from swarm_ui.stats import Interval


def report_tables(report: CreditReport) -> list[Table]:
    """Scores, judgement and rank correlations of all assigners, and their calibration."""
    comparison = report.comparison
    return [
        _comparison_table(comparison),
        _judgement_table(comparison),
        _ranks_table(comparison),
        _calibration_table(report.calibration),
    ]


def _comparison_table(comparison: Comparison) -> Table:
    """The scores and the cost of each assigner; one row each."""
    table = _table(
        f"{len(comparison.sides)} assigners on {comparison.episodes} episodes, "
        f"{comparison.decisions} decisions, {comparison.messages} messages",
        ("#", "assigner", "scored %", "mean", "sd", "inside", "±", "calls", "s"),
    )
    table.caption = "sd: of all scores, and inside a decision; ±: mean standard error"
    for number, side in enumerate(comparison.sides, start=1):
        table.add_row(
            f"{number}",
            side.name,
            f"{100 * side.share:.0f}",
            _number(side.mean),
            _number(side.deviation),
            _number(side.within),
            _number(side.error),
            "–" if side.calls is None else f"{side.calls}",
            f"{side.seconds:.2f}",
        )
    return table


def _judgement_table(comparison: Comparison) -> Table:
    """How well each assigner separates right from wrong; one row each, numbered as elsewhere."""
    said = f"says {comparison.reference}" if comparison.reference else "no reference"
    table = _table(
        f"What they tell apart, AUC with 95 % intervals over episodes ({said})",
        ("#", "agrees %", "right from wrong", "inside a decision", "solved from failed"),
    )
    for number, side in enumerate(comparison.sides, start=1):
        table.add_row(
            f"{number}",
            _percent(side.agreement),
            _interval(side.auc),
            _interval(side.inside),
            _interval(side.outcome_auc),
        )
    return table


def _ranks_table(comparison: Comparison) -> Table:
    """Rank correlation of each pair."""
    heads = ("#", *[f"{k + 1}" for k in range(len(comparison.sides))])
    table = _table("Rank correlation, over the messages that both scored", heads)
    for number, row in enumerate(comparison.ranks, start=1):
        table.add_row(f"{number}", *[_number(v) for v in row])
    return table


def _calibration_table(reports: Sequence[Calibration]) -> Table:
    """Each report in total, by round and by agent."""
    table = _table(
        "Calibration", ("assigner", "scored", "mean", "agrees %", "right from wrong", "error")
    )
    for report in reports:
        parts: list[tuple[str, Part]] = [(report.source, report.whole)]
        parts += [(f"  round {r}", part) for r, part in sorted(report.by_round.items())]
        parts += [(f"  {agent}", part) for agent, part in report.by_agent.items()]
        for label, part in parts:
            table.add_row(
                label,
                f"{part.scored}",
                _number(part.mean),
                _percent(part.agreement),
                _interval(part.auc),
                _number(report.error) if part is report.whole else "",
            )
    return table


def _table(title: str, heads: Sequence[str]) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for head in heads:
        left = head in ("assigner", "#")
        table.add_column(
            head,
            justify="left" if left else "right",
            no_wrap=head != "assigner",
            overflow="fold",
            max_width=32 if head == "assigner" else None,
        )
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def _interval(value: Interval | None) -> str:
    return "–" if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
