"""The progress of a run in ``progress.json``, for other programs that follow the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from swarm_ui.errors import UNREADABLE
from swarm_ui.experiment.progress import ProgressDisplay, TaskProgress
from swarm_ui.files import write_atomic

NAME = "progress.json"
_SECONDS_BETWEEN_WRITES = 2.0


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the file."""

    written: float
    """Time of writing, in seconds since the epoch."""
    tasks: tuple[TaskProgress, ...] = ()
    """The running tasks, in the order they began."""
    ended: tuple[TaskProgress, ...] = ()
    """The last state of the tasks that have ended or were interrupted."""


class ProgressFile:
    """Keeps the file of a run up to date. It is first written when there is progress."""

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``warn``: called once if the file cannot be written; the run continues without it."""
        self._path, self._warn, self._clock = folder / NAME, warn, clock
        self._tasks: dict[str, TaskProgress] = {}
        self._ended: dict[str, TaskProgress] = {}
        self._written: float | None = None
        self._broken = False

    def __call__(self, label: str, progress: TaskProgress | None) -> None:
        """Note the progress of a task; if ``progress`` is ``None``, the task has ended."""
        if progress is None:
            ended = self._tasks.pop(label, None)
            if ended is not None:
                self._ended[label] = ended
        else:
            self._tasks[label] = progress
        now = self._clock()
        if self._written is None:
            due = any(task.done > 0 for task in self._tasks.values())
        else:
            due = progress is None or now - self._written >= _SECONDS_BETWEEN_WRITES
        if due and not self._broken:
            self._write(now)

    def _write(self, now: float) -> None:
        self._written = now
        document = Written(
            written=now, tasks=tuple(self._tasks.values()), ended=tuple(self._ended.values())
        )
        try:
            write_atomic(self._path, msgspec.json.encode(document))
        except OSError as error:
            self._broken = True
            self._warn(f"the progress is not recorded: {error}")


@contextmanager
def recorded_progress(
    display: ProgressDisplay, folder: Path, warn: Callable[[str], None]
) -> Iterator[None]:
    """Record the progress that a display shows in the folder of a run while the block works."""
    display.listener = ProgressFile(folder, warn)
    try:
        yield
    finally:
        display.listener = None


def read_progress(folder: Path) -> Written | None:
    """The progress that a run recorded last; ``None`` if there is none or it cannot be read."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Written)
    except (OSError, *UNREADABLE):
        return None
