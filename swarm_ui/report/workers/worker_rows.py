"""Reads the workers of a run's folder for its report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swarm_ui.report.contents import ReportTable, TableCell, WorkerRow, WorkerTimeline
from swarm_ui.trace.worker_events import read_worker_events
from swarm_ui.trace.worker_history import WorkerHistory, WorkerTimes, sessions

MOST_ROWS = 64
"""Maximum number of rows; with more workers, several share a row."""
_MOST_SESSIONS = 3
WORKER_TABLE = "Where the time of the workers went"
HERE = "this process"
"""Label of the node of a local worker."""


def worker_parts(run: Path) -> tuple[tuple[ReportTable, ...], tuple[WorkerTimeline, ...]]:
    """The table and the timelines of a run's workers; none if it has not recorded them."""
    found = [part for part in sessions(read_worker_events(run)) if any(w.finished for w in part)]
    if not found:
        return (), ()
    every = [worker for part in found for worker in part]
    last = found[-_MOST_SESSIONS:]
    first = len(found) - len(last) + 1
    titles = ["Workers over time"]
    if len(found) > 1:
        titles = [f"Workers over time, session {k} of {len(found)}"
                  for k in range(first, len(found) + 1)]  # fmt: skip
    drawn = tuple(_timeline(part, title) for part, title in zip(last, titles, strict=True))
    return (_table(every),), drawn


def _table(workers: Sequence[WorkerHistory]) -> ReportTable:
    nodes: dict[str, list[WorkerHistory]] = {}
    for worker in workers:
        nodes.setdefault(worker.node or HERE, []).append(worker)
    groups = [*nodes.items(), ("all", list(workers))] if len(nodes) > 1 else [*nodes.items()]
    return ReportTable(
        title=WORKER_TABLE,
        columns=("node", "workers", "episodes", "deciding %", "of it in calls %", "environment %",
                 "waiting %", "idle %", "lost"),
        rows=tuple(_row(name, part) for name, part in groups),
        note="Deciding: the team and its models. Waiting: an environment or model was started, or "
        "a resource was not free. Idle: no episode to play, or the worker was being replaced. "
        "Episodes that were played again count each time.",
    )  # fmt: skip


def _row(name: str, workers: Sequence[WorkerHistory]) -> tuple[TableCell, ...]:
    times = WorkerTimes.of(workers)
    spent = (times.deciding, times.calls, times.environment, times.waiting, times.idle)
    return (
        name,
        len({worker.worker for worker in workers}),
        sum(len(worker.finished) for worker in workers),
        *(round(100 * seconds / (times.total or 1.0), 1) for seconds in spent),
        sum(len(worker.losses) for worker in workers),
    )


def _timeline(workers: Sequence[WorkerHistory], title: str) -> WorkerTimeline:
    parts = [part for worker in workers for part in worker.parts()]
    begin = min([part.begin for part in parts] + [worker.began for worker in workers])
    each = -(-len(workers) // MOST_ROWS)
    rows = tuple(
        _drawn(workers[k : k + each], begin) for k in range(0, len(workers), each)
    )  # fmt: skip
    return WorkerTimeline(
        title=title,
        seconds=max(worker.at for worker in workers) - begin,
        rows=rows,
        note="" if each == 1 else f"A row is {each} workers, and shows what most of them did.",
    )


def _drawn(workers: Sequence[WorkerHistory], begin: float) -> WorkerRow:
    times = WorkerTimes.of(workers)
    total = times.total or 1.0
    played = sum(len(worker.finished) for worker in workers)
    told = [
        f"{name}: {played} episodes" if (name := _name(workers)) else "",
        f"deciding {times.deciding / total:.0%}, environment {times.environment / total:.0%}, "
        f"waiting {times.waiting / total:.0%}, idle {times.idle / total:.0%}",
        *(loss.text or "lost" for worker in workers for loss in worker.losses),
    ]
    return WorkerRow(
        name=_name(workers),
        detail="\n".join(told),
        parts=tuple(
            (part.what, part.begin - begin, part.end - begin)
            for worker in workers
            for part in worker.parts()
        ),
        losses=tuple(loss.at - begin for worker in workers for loss in worker.losses),
    )


def _name(workers: Sequence[WorkerHistory]) -> str:
    first, last = workers[0], workers[-1]
    if first is not last:
        return f"{first.worker}–{last.worker}"
    return f"{first.worker} {first.node}".strip()
