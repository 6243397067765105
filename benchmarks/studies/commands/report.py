"""The table of a study, from its records and the results of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.studies import rates
from benchmarks.studies.commands.cells import Cell, Record, record_of
from benchmarks.support.tables import markdown_table
from swarm_ui.report.results import ArmResult, existing_results
from swarm_ui.stats import Outcome, clustered_mean


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row's results on one split."""

    name: str
    split: str
    success: float | None
    low: float | None
    high: float | None
    """95 % interval, clustered by template. An episode that several training seeds played counts
    once, with its mean."""
    seeds: int
    """Training seeds; without a training of its own, evaluation seeds, each with its episodes."""
    by_seed: tuple[float, ...]
    episodes: int
    """Different ones."""
    calls: int
    cpu_s: float
    """CPU time of the evaluation; of a command with several splits, by their numbers of calls."""


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a study and how they were obtained: the file that is kept in the source."""

    rows: list[Row]
    cells: list[Record]
    """The commands that made the figures, with commit and CPU time."""


def study_record(out: Path, cells: Sequence[Cell]) -> StudyRecord:
    """The results of the finished cells of a study."""
    records = [record_of(out, cell) for cell in cells]
    return StudyRecord(rows=rows(out, cells), cells=[each for each in records if each])


def rows(out: Path, cells: Sequence[Cell]) -> list[Row]:
    """A row for each finished evaluation, in the order of the plan."""
    found: dict[tuple[str, str], list[tuple[ArmResult, float]]] = {}
    for cell in cells:
        record = record_of(out, cell) if cell.row else None
        if record is None:
            continue
        arms = existing_results(out / cell.name).arms
        calls = sum(arm.work.calls for arm in arms)
        for arm in arms:
            split = arm.split if "-miniwob-" not in cell.name else f"miniwob {arm.split}"
            cpu = record.cpu_s * arm.work.calls / max(1, calls)
            found.setdefault((cell.row, split), []).append((arm, cpu))
    return [_row(name, split, done) for (name, split), done in found.items()]


def _row(name: str, split: str, done: Sequence[tuple[ArmResult, float]]) -> Row:
    arms = [arm for arm, _ in done]
    outcomes = over_seeds(arms)
    interval = clustered_mean(outcomes)
    each = [arm.success for arm in arms]
    return Row(
        name=name,
        split=split,
        success=interval.mean if interval else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        seeds=len(arms),
        by_seed=tuple(round(found.mean, 4) for found in each if found is not None),
        episodes=len(outcomes),
        calls=sum(arm.work.calls for arm in arms),
        cpu_s=round(sum(cpu for _, cpu in done), 1),
    )


def over_seeds(arms: Sequence[ArmResult]) -> list[Outcome]:
    """The outcome of each episode, averaged over the training seeds that played it."""
    played: dict[tuple[str, int], list[float | None]] = {}
    for arm in arms:
        for job, value in zip(arm.jobs, arm.outcomes, strict=True):
            played.setdefault((job[0], job[1]), []).append(value)
    return [
        Outcome(task, seed, rates.known_mean(values)) for (task, seed), values in played.items()
    ]


def markdown(found: Sequence[Row], splits: Sequence[str]) -> str:
    """One line for each row, one column for each split."""
    names = list(dict.fromkeys(row.name for row in found))
    by_key = {(row.name, row.split): row for row in found}
    lines = []
    for name in names:
        own = [row for row in found if row.name == name]
        cells = [_shown(by_key.get((name, split))) for split in splits]
        calls, cpu = sum(row.calls for row in own), sum(row.cpu_s for row in own)
        seeds = max(row.seeds for row in own)
        lines.append([name, *cells, seeds, f"{calls:,}", f"{cpu:,.0f}"])
    heads = ["row", *(f"{split} %" for split in splits), "seeds", "calls", "CPU-s"]
    return markdown_table(heads, lines)


def _shown(row: Row | None) -> str:
    if row is None or row.success is None or row.low is None or row.high is None:
        return "–"
    return f"{100 * row.success:.1f} [{100 * row.low:.0f}, {100 * row.high:.0f}]"
