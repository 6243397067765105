"""Comparisons and calibration reports as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from swarm_ui.optim.credit.analysis.calibration import Calibration
from swarm_ui.optim.credit.analysis.credit_report import CreditReport
from swarm_ui.stats import Interval


def report_tables(report: CreditReport) -> list[Table]:
    """Scores, judgement and rank correlations of all critics, and their calibration."""
    found = report.comparison
    sides = list(enumerate(found.sides, start=1))
    said = f"says {found.reference}" if found.reference else "no reference"
    return [
        _table(
            f"{len(found.sides)} critics on {found.episodes} episodes, "
            f"{found.decisions} decisions, {found.messages} messages",
            ("#", "critic", "scored %", "mean", "sd", "inside", "±", "calls", "s"),
            [
                (
                    f"{k}", side.name, _percent(side.share), _number(side.mean),
                    _number(side.deviation), _number(side.within), _number(side.error),
                    "–" if side.calls is None else f"{side.calls}", _number(side.seconds),
                )
                for k, side in sides
            ],
            caption="sd: of all scores, and inside a decision; ±: mean standard error",
        ),
        _table(
            f"What they tell apart, AUC with 95 % intervals over episodes ({said})",
            ("#", "agrees %", "right from wrong", "inside a decision", "solved from failed"),
            [
                (
                    f"{k}", _percent(side.agreement), _interval(side.auc), _interval(side.inside),
                    _interval(side.outcome_auc),
                )
                for k, side in sides
            ],
        ),
        _table(
            "Rank correlation, over the messages that both scored",
            ("#", *[f"{k}" for k, _ in sides]),
            [(f"{k}", *map(_number, row)) for k, row in enumerate(found.ranks, start=1)],
        ),
        _table(
            "Calibration",
            ("critic", "scored", "mean", "agrees %", "right from wrong", "error"),
            [row for each in report.calibration for row in _calibration_rows(each)],
        ),
    ]  # fmt: skip


def _calibration_rows(report: Calibration) -> Iterable[tuple[str, ...]]:
    """The report in total, by round and by agent."""
    parts = [(report.source, report.whole)]
    parts += [(f"  round {r + 1}", part) for r, part in sorted(report.by_round.items())]
    parts += [(f"  {agent}", part) for agent, part in report.by_agent.items()]
    for label, part in parts:
        error = _number(report.error) if part is report.whole else ""
        figures = (_number(part.mean), _percent(part.agreement), _interval(part.auc), error)
        yield (label, f"{part.scored}", *figures)


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], caption: str | None = None
) -> Table:
    table = Table(
        title=title, title_justify="left", caption=caption, caption_justify="left",
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for head in heads:
        name = head == "critic"
        table.add_column(
            head,
            justify="left" if name or head == "#" else "right",
            no_wrap=not name,
            overflow="fold",
            max_width=32 if name else None,
        )
    for row in rows:
        table.add_row(*row)
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}"


def _interval(value: Interval | None) -> str:
    return "–" if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"
