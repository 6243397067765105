"""The tables in the terminal and the report of a run of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table

from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.split_facts.need_of_a_team import NOTE, TITLE, NeedRow
from swarm_ui.experiment.teams import BASE, GENERAL, TRAINED
from swarm_ui.report import write_report
from swarm_ui.report.results import ArmResult, Results, compared
from swarm_ui.storage.run_directory import RunDirectory

CURVE_SPLIT = "validation"
"""This split is for the learning curve, not for the table."""
ORDER = (
    BASE, "base-guard", "base-shuffled", "base-clones", "base-vote", "base-team", GENERAL,
    TRAINED, "trained-vote", "trained-team",
)  # fmt: skip
"""Order of the rows of tables. The last one is the headline of a report."""


def write_demo_report(
    run: RunDirectory, results: Results, display: ProgressDisplay, need: Sequence[NeedRow] = ()
) -> Path:
    """Print the tables and write the report; returns the report's path.

    ``need``: the rows of a second table, about where a team is needed.
    """
    results.save(run.path)
    path = write_report(run.path)
    display.say(_results(results))
    if need:
        display.say()
        display.say(need_in_terminal(need))
    display.say()
    return path


def sort_arms(results: Results, splits: Sequence[str]) -> None:
    """Sort the arms in the order of tables; they were added when they finished."""
    place = {name: k for k, name in enumerate(ORDER)}
    results.arms.sort(key=lambda a: (splits.index(a.split), place.get(a.arm, len(place))))


def _results(results: Results) -> Table:
    """All splits in one table, with 95 % intervals."""
    caption = (
        "95 % intervals: bootstrap over tasks and their episodes; differences: on the same "
        "episodes, clustered by task, * if 0 is outside. "
        f"{'; '.join(results.labels)}. {' '.join(results.notes)}"
    )
    figures = ("success % [95 %]", "minus base", "calls", "n")
    table = _table("Success on test episodes", caption, "policy", figures)
    for split in dict.fromkeys(arm.split for arm in results.arms if arm.split != CURVE_SPLIT):
        arms = [arm for arm in results.arms if arm.split == split]
        table.add_section()
        table.add_row(results.splits.get(split, split), style="bold")
        for arm in arms:
            table.add_row(
                f"  {arm.label}",
                "–" if arm.success is None else arm.success.percent(),
                _gap(arm, results.find(split, BASE)),
                f"{arm.work.calls_per_decision:.1f}",
                f"{arm.counted} ({arm.masked} masked)" if arm.masked else str(arm.counted),
                style="" if arm.arm.startswith("base") else "cyan",
            )
    return table


def _gap(arm: ArmResult, base: ArmResult | None) -> str:
    rows = [] if base is None or base is arm else compared([arm], [base])
    gap = rows[0].difference if rows else None
    if gap is None:
        return "–"
    return gap.percent(signed=True) + ("*" if gap.excludes_zero else " ")


def need_in_terminal(need: Sequence[NeedRow]) -> Table:
    """The table about where a team is needed."""
    table = _table(TITLE, NOTE, "edges", ("success % [95 %]", "tokens an episode", "n"))
    for row in need:
        count = str(row.success.n)
        table.add_row(f"  {row.label}", row.success.percent(), f"{row.tokens:,.0f}", count)
    return table


def _table(title: str, caption: str, first: str, figures: Sequence[str]) -> Table:
    """An empty table for the terminal. Its columns after the first hold numbers."""
    table = Table(
        first,
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for column in figures:
        table.add_column(column, justify="right")
    return table
