"""Keeps the record of a run's workers, and sums up their states for the progress display."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Self

import msgspec

from swarm_ui.storage.durable import LineFile
from swarm_ui.trace.worker_events import WORKER_FILE, WorkerEvent
from swarm_ui.trace.worker_history import WorkerNow, WorkerState

_SECONDS_BETWEEN_WAITS = 60.0
"""Seconds between two messages about what workers wait for."""
_SAID: tuple[tuple[WorkerState, str], ...] = (
    ("playing", "playing"), ("waiting", "waiting for resources"), ("lost", "lost"),
    ("given_up", "given up"),
)  # fmt: skip
_encode = msgspec.json.Encoder().encode


class WorkerWatch:
    """Listens to the workers of a run. Use it in a ``with`` statement.

    Every event is a line of ``workers.jsonl``. Lines are not flushed to disk one by one, because no
    result depends on them. :attr:`note` sums up the workers of other machines, and a warning is
    given when one of them is lost.
    """

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            folder: the folder of the run.
            warn: called with one line when a worker is lost or waits for resources, and once if
                the file cannot be written; the run continues.
            clock: seconds.
        """
        self._path, self._warn, self._clock = folder / WORKER_FILE, warn, clock
        self._file: LineFile | None = None
        self._broken = False
        self._trace = ""
        self._on_change: Callable[[], None] = lambda: None
        self._workers: dict[int, WorkerNow] = {}
        self._states: Counter[WorkerState] = Counter()
        """Number of workers by state. It is updated incrementally, because thousands of events a
        second may arrive."""
        self._elsewhere = False
        """Whether workers are on other machines, or wait for a machine."""
        self._told_waiting: float | None = None
        self.note = ""
        """The states of the workers, such as ``"8 workers, 6 playing"``; empty: they are part of
        this process."""

    def shown(self, trace: str, on_change: Callable[[], None] = lambda: None) -> None:
        """Set which episodes are played from now on.

        Args:
            trace: name of the trace file of the episodes; empty: none.
            on_change: called when :attr:`note` has changed.
        """
        self._trace, self._on_change = trace, on_change

    def __call__(self, event: WorkerEvent) -> None:
        """Record an event of a worker, and update :attr:`note`."""
        self._write(msgspec.structs.replace(event, trace=self._trace))
        self._count(event)
        self._tell(event)
        before, self.note = self.note, self._summary()
        if self.note != before:
            self._on_change()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _tell(self, event: WorkerEvent) -> None:
        if event.kind == "lost" and event.job is None:
            self._warn(
                f"{event.text or 'a worker was lost'}; its episodes are played again elsewhere"
            )
        elif event.kind == "given_up" and event.node:
            self._warn(f"worker {event.worker} is not started again: {event.text}")
        elif event.kind == "waiting" and event.text:
            now = self._clock()
            due = self._told_waiting is None or now - self._told_waiting >= _SECONDS_BETWEEN_WAITS
            if due:
                self._told_waiting = now
                self._warn(event.text)

    def _count(self, event: WorkerEvent) -> None:
        worker = self._workers.get(event.worker)
        if worker is None:
            worker = self._workers[event.worker] = WorkerNow(event.worker)
        else:
            self._states[worker.state] -= 1
        worker.add(event)
        self._states[worker.state] += 1
        self._elsewhere |= bool(worker.node) or worker.state == "waiting"

    def _summary(self) -> str:
        if not self._elsewhere:
            return ""
        states = self._states
        alive = states["playing"] + states["idle"]
        parts = [f"{alive} worker{'s' * (alive != 1)}"]
        parts += [f"{states[state]} {name}" for state, name in _SAID if states[state]]
        return ", ".join(parts)

    def _write(self, event: WorkerEvent) -> None:
        if self._broken:
            return
        try:
            if self._file is None:
                self._file = LineFile(self._path, fsync=False)
                begun = WorkerEvent(kind="session", worker=-1, at=event.queued or event.at)
                self._file.append(_encode(begun))
            self._file.append(_encode(event))
        except OSError as error:
            self._broken = True
            self._close()
            self._warn(f"what the workers do is not recorded: {error}")

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
