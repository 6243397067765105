"""Can the base agent act on real web pages that it never saw?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from benchmarks.cell import Cell
from benchmarks.study import Study
from benchmarks.support.tables import markdown_table

AGENT, RANDOM = "base agent", "random actions"


def tasks(cells: Sequence[Cell]) -> str:
    """Success on every task."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        for outcome in cell.outcomes.get("reference tasks", ()):
            if outcome.value is not None:
                each = found.setdefault(outcome.template, {AGENT: [], RANDOM: []})
                each[cell.arm].append(outcome.value)
    lines = [
        (task, f"{100 * fmean(each[AGENT]):.0f}", f"{100 * fmean(each[RANDOM]):.0f}")
        for task, each in sorted(found.items(), key=lambda one: -fmean(one[1][AGENT]))
        if each[AGENT] and each[RANDOM]
    ]
    return markdown_table(("task", f"{AGENT} %", f"{RANDOM} %"), lines, "lr")


STUDY = Study(
    named=((AGENT, RANDOM),),
    more=tasks,
    shown=(AGENT, RANDOM),
    note="Real pages, but not comparable with published scores: the observation is this project's, "
    "there is no clock, and success is a raw reward above 0.",
)
