"""Why the episodes of a run failed, as a table and for ``--json``."""

from __future__ import annotations

from collections import Counter

import msgspec
from rich.table import Table

from swarm_ui.cli.output import table
from swarm_ui.report.results import ArmResult, Results
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.trace.failures import FAILURE_CLASSES, FAILURE_NAMES, FailureClass
from swarm_ui.trace.jsonl import open_jsonl


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """An episode in a file of the run."""

    trace: str
    """Name of the file in ``traces/``, without its suffix."""
    episode: int
    """Number of the episode in the file, from 1, as in ``swarm-ui replay -e``."""
    task: str
    seed: int


class FailureRow(msgspec.Struct, frozen=True, kw_only=True):
    """A class of failures in the tested episodes of a run."""

    why: FailureClass
    splits: dict[str, int]
    """Number of episodes, by split."""
    example: Example | None
    """The first episode of this class, in the order of the tests; ``None``: its record was not
    kept."""

    @property
    def count(self) -> int:
        return sum(self.splits.values())


def failure_rows(results: Results, run: RunDirectory) -> list[FailureRow]:
    """A row for each class that occurs; none if no episode failed."""
    splits: dict[FailureClass, Counter[str]] = {}
    first: dict[FailureClass, tuple[ArmResult, int]] = {}
    for arm in results.arms:
        for number, why in enumerate(arm.failures):
            if why is not None:
                splits.setdefault(why, Counter())[arm.split] += 1
                first.setdefault(why, (arm, number))
    return [
        FailureRow(why=why, splits=dict(splits[why]), example=_example(run, *first[why]))
        for why in FAILURE_CLASSES
        if why in splits
    ]


def _example(run: RunDirectory, arm: ArmResult, number: int) -> Example | None:
    path, (task, seed) = run.traces / f"{arm.name}.jsonl", arm.jobs[number]
    if not path.exists():
        return None
    with open_jsonl(path) as episodes:
        for place, episode in enumerate(episodes, start=1):
            if (episode.task, episode.seed) == (task, seed):
                return Example(trace=arm.name, episode=place, task=task, seed=seed)
    return None


def failure_table(rows: list[FailureRow]) -> Table:
    """The rows, with a column for each split."""
    splits = list(dict.fromkeys(split for row in rows for split in row.splits))
    caption = "Each episode has one class. World faults are masked, all others count as failed."
    several = len(splits) > 1
    heads = ["why", *(split or "episodes" for split in splits), *(["all"] if several else [])]
    made = table("failed episodes", [*heads, "example"], caption=caption)
    for row in rows:
        cells = [str(row.splits.get(split, 0)) for split in splits]
        made.add_row(
            FAILURE_NAMES[row.why], *cells, *([str(row.count)] if several else []), _told(row)
        )
    return made


def _told(row: FailureRow) -> str:
    if row.example is None:
        return "–"
    e = row.example
    return f"{e.trace} -e {e.episode}: {e.task}, seed {e.seed}"
