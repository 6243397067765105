"""The figures of the study: rows over tasks, the difference to random actions, and the tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.miniwob.cells import Cell
from benchmarks.studies.miniwob.plan import AGENT, CONTRAST, LABELS, POLICIES, RANDOM, Plan, Tasks
from benchmarks.studies.struct_files import Sources, read_cells, read_struct, sources_of
from benchmarks.support.tables import markdown_table
from swarm_ui.stats import Outcome, wilson
from swarm_ui.stats.intervals import Z

_NOTE = (
    "Real pages, but not comparable with published scores: the observation is this project's, "
    "there is no clock, and success is a raw reward above 0."
)


class Row(rates.Row, frozen=True, kw_only=True):
    """One policy on one set of tasks. ``low`` and ``high`` are over tasks."""

    tasks: Tasks
    these_low: float
    these_high: float
    """95 % interval over episodes of these tasks."""
    masked: int
    """Episodes that a fault masked."""


class TaskRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task; the interval is Wilson's over episodes."""

    name: str
    tasks: Tasks
    policy: str
    success: float
    low: float
    high: float
    seeds: int
    episodes: int
    masked: int


class Contrast(rates.Contrast, frozen=True, kw_only=True):
    """The difference of two policies on one set of tasks; the interval is over tasks."""

    tasks: Tasks


class Study(Sources, frozen=True, kw_only=True):
    """All figures, and where they come from."""

    plan: Plan
    agent: str
    """SHA-256 of the base agent's weights."""
    rows: list[Row]
    contrasts: list[Contrast]
    tasks: list[TaskRow]
    seconds: dict[str, float]
    """CPU time by cell, without the browser."""


def study_of(folder: Path) -> Study:
    """The figures of what is in a folder."""
    found = read_cells(folder, Cell)
    cells = sorted(found.values(), key=lambda c: (c.tasks == "blind", POLICIES.index(c.policy)))
    played = {(cell.tasks, cell.policy): cell.outcomes for cell in cells}
    return Study(
        **sources_of("miniwob", found, (name for cell in cells for name in cell.commits)),
        plan=read_struct(folder / "settings.json", Plan),
        agent=next((cell.agent for cell in cells if cell.agent), ""),
        rows=[_row(cell) for cell in cells],
        contrasts=[one for tasks in LABELS if (one := _contrast(played, tasks)) is not None],
        tasks=[row for cell in cells for row in _task_rows(cell)],
        seconds={path.stem: cell.seconds for path, cell in found.items()},
    )


def _row(cell: Cell) -> Row:
    low, high = over_these(cell.outcomes)
    base = rates.row(f"{cell.policy}, {LABELS[cell.tasks]}", cell.outcomes, seeded=False)
    return Row(
        **msgspec.structs.asdict(base), tasks=cell.tasks, these_low=round(low, 4),
        these_high=round(high, 4), masked=sum(o.value is None for o in cell.outcomes),
    )  # fmt: skip


def over_these(values: Sequence[Outcome]) -> tuple[float, float]:
    """95 % interval of the mean over tasks for other episodes of the same tasks (normal)."""
    found = [rate for own in by_task(values).values() if (rate := wilson(own)) is not None]
    mean = sum(rate.mean for rate in found) / len(found)
    variance = sum(rate.mean * (1.0 - rate.mean) / rate.n for rate in found)
    half = Z * math.sqrt(variance) / len(found)
    return max(0.0, mean - half), min(1.0, mean + half)


def by_task(values: Sequence[Outcome]) -> dict[str, list[float | None]]:
    """The outcomes of each task."""
    found: dict[str, list[float | None]] = {}
    for outcome in values:
        found.setdefault(outcome.template, []).append(outcome.value)
    return found


def _contrast(
    played: Mapping[tuple[Tasks, str], Sequence[Outcome]], tasks: Tasks
) -> Contrast | None:
    ours, theirs = (played.get((tasks, policy)) for policy in CONTRAST)
    if ours is None or theirs is None:
        return None
    gap = rates.contrast((AGENT, ours), (RANDOM, theirs), named=tasks == "reference")
    return Contrast(**msgspec.structs.asdict(gap), tasks=tasks)


def _task_rows(cell: Cell) -> list[TaskRow]:
    rows = []
    for name, values in sorted(by_task(cell.outcomes).items()):
        rate = wilson(values)
        if rate is not None:
            rows.append(
                TaskRow(
                    name=name, tasks=cell.tasks, policy=cell.policy, success=round(rate.mean, 4),
                    low=round(rate.low, 4), high=round(rate.high, 4), seeds=0,
                    episodes=len(values), masked=len(values) - rate.n,
                )
            )  # fmt: skip
    return rows


# -- tables ---------------------------------------------------------------------------------------


def markdown(study: Study) -> str:
    """All tables."""
    sets = [tasks for tasks in LABELS if any(row.tasks == tasks for row in study.rows)]
    parts = [f"**{LABELS[tasks].capitalize()}**\n\n{task_table(study, tasks)}" for tasks in sets]
    return "\n\n".join([main_table(study), *parts, _NOTE])


def main_table(study: Study) -> str:
    """Each policy on each set of tasks, and the differences."""
    heads = ("policy", "success %", "95 % over episodes of these tasks", "95 % over tasks",
             "episodes", "masked")  # fmt: skip
    lines = [
        (
            row.name, f"{100 * row.success:.1f}",
            rates.percent_range(row.these_low, row.these_high),
            rates.percent_range(row.low, row.high), f"{row.episodes:,}", str(row.masked),
        )
        for row in study.rows
    ]  # fmt: skip
    lines += [
        (
            f"{gap.ours} - {gap.theirs}, {LABELS[gap.tasks]}", f"{100 * gap.difference:+.1f}", "–",
            rates.percent_range(gap.low, gap.high, signed=True), "–", "–",
        )
        for gap in study.contrasts
    ]  # fmt: skip
    return markdown_table(heads, lines, "lrllr")


def task_table(study: Study, tasks: Tasks) -> str:
    """The tasks by the agent's success, with the success of random actions where it is not 0."""
    agent, control = (
        {t.name: t for t in study.tasks if (t.tasks, t.policy) == (tasks, policy)}
        for policy in (AGENT, RANDOM)
    )
    groups: dict[float, list[str]] = {}
    for name, one in agent.items():
        other = control.get(name)
        by_chance = f" ({100 * other.success:.0f})" if other and other.success > 0 else ""
        groups.setdefault(one.success, []).append(f"{name}{by_chance}")
    lines = [
        (f"{100 * success:.0f}", ", ".join(names))
        for success, names in sorted(groups.items(), reverse=True)
    ]
    return markdown_table(("success %", "tasks (with random actions, if above 0)"), lines, "rl")
