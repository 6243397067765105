"""Progress of long tasks: bars on a terminal, else lines; and ``progress.json`` for others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from swarm_ui.errors import UNREADABLE
from swarm_ui.experiment.terminal import SafeConsole
from swarm_ui.files import write_atomic

_NAME = "progress.json"
_BETWEEN_LINES, _BETWEEN_WRITES = 10.0, 2.0  # seconds
_FEWEST = 3
"""Steps after which the time left is estimated from their mean rate."""


class TaskProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a long task."""

    label: str
    done: float
    total: float
    note: str = ""
    left: float | None = None
    """Seconds until the end; ``None``: too early for an estimate."""
    seconds: float = 0.0
    """Seconds since the task began."""


class ProgressDisplay:
    """Shows the progress of tasks; nothing if it is ``quiet``."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console, self.quiet = console or SafeConsole(stderr=True), quiet
        self.listener: Callable[[str, TaskProgress | None], None] = lambda *_: None
        """Called with the label and the progress of a task, and with ``None`` at its end."""

    @contextmanager
    def bar(
        self, label: str, total: float, *, share: bool = True, together: float = 1
    ) -> Iterator[Bar]:
        """Show a bar while the block runs.

        ``total``: the number of steps; 1 for a task that reports its share. ``share``: show a
        percentage, instead of a count and its rate. ``together``: steps that run at the same time.
        """
        with ExitStack() as stack:
            stack.callback(lambda: self.listener(label, None))
            shown: Progress | None = None
            if self.console.is_terminal and not self.quiet:
                shown = stack.enter_context(Progress(
                    TextColumn("{task.description}", markup=False),
                    BarColumn(bar_width=40 if self.console.width > 100 else 12),
                    TextColumn("{task.fields[said]}", markup=False), TimeElapsedColumn(),
                    console=self.console, transient=True,
                ))  # fmt: skip
                shown.add_task(label, total=total, said="")
            yield Bar(self, label, total, share, together, shown)


class Bar:
    """One long task. :meth:`update` may be called often.

    The time left is reported by the task, or else estimated from the mean rate of its steps, when
    at least three are done and at least as many as run at the same time: of eight steps that run
    together, the first one ends when the others have nearly ended.
    """

    def __init__(
        self, display: ProgressDisplay, label: str, total: float, share: bool, together: float,
        shown: Progress | None,
    ) -> None:  # fmt: skip
        self._display, self._label, self._share, self._shown = display, label, share, shown
        self._fewest, self._before, self._total = max(_FEWEST, together), 0.0, max(total, 1e-9)
        self._began = self._line_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def start_from(self, done: float, total: float | None = None) -> None:
        """Set the number of steps that were done before this process began, and of all steps, where
        it was not known at the start."""
        self._before, self._total = done, self._total if total is None else max(total, 1e-9)
        self.update(done)

    def update(self, done: float, note: str = "", *, left: float | None = None) -> None:
        """Set the number of finished steps; ``left``: the task's own estimate in seconds."""
        made, seconds, total = done - self._before, self.seconds, self._total
        if left is None and made >= self._fewest:
            left = seconds * max(0.0, total - done) / made
        self._display.listener(self._label, TaskProgress(
            label=self._label, done=done, total=total, note=note, left=left, seconds=seconds
        ))  # fmt: skip
        rate = f"{done:g}/{total:g}, {made / max(seconds, 1e-9):.2f}/s"
        ends = "" if left is None else f"about {left:.0f} s left"
        count = f"{done / total:.0%}" if self._share else rate
        said = ", ".join(filter(None, [count, ends, note]))
        if self._shown is not None:
            self._shown.update(self._shown.task_ids[0], completed=done, total=total, said=said)
        elif not self._display.quiet and time.monotonic() - self._line_at >= _BETWEEN_LINES:
            self._line_at = time.monotonic()
            self._display.console.print(Text(f"{self._label}: {said}"))


def duration_text(seconds: float) -> str:
    """A duration as readable text."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of ``progress.json``."""

    written: float
    """Time of writing, in seconds since the epoch."""
    tasks: tuple[TaskProgress, ...] = ()
    """The running tasks, in the order they began."""
    ended: tuple[TaskProgress, ...] = ()
    """The last state of the tasks that have ended or were interrupted."""


@contextmanager
def recorded_progress(
    display: ProgressDisplay, folder: Path, warn: Callable[[str], None]
) -> Iterator[None]:
    """Record the progress that a display shows in the folder of a run while the block works.
    ``warn`` is called once if the file cannot be written; the run continues without it."""
    tasks, ended = dict[str, TaskProgress](), dict[str, TaskProgress]()
    next_write: float | None = None

    def note(label: str, progress: TaskProgress | None) -> None:
        nonlocal next_write
        if progress is not None:
            tasks[label] = progress
        elif label in tasks:
            ended[label] = tasks.pop(label)
        now = time.time()
        if next_write is None:
            due = any(task.done > 0 for task in tasks.values())
        else:
            due = progress is None or now >= next_write
        if not due:
            return
        next_write = now + _BETWEEN_WRITES
        found = Written(written=now, tasks=tuple(tasks.values()), ended=tuple(ended.values()))
        try:
            write_atomic(folder / _NAME, msgspec.json.encode(found))
        except OSError as error:
            display.listener = lambda *_: None
            warn(f"the progress is not recorded: {error}")

    display.listener = note
    try:
        yield
    finally:
        display.listener = lambda *_: None


def read_progress(folder: Path) -> Written | None:
    """The progress that a run recorded last; ``None`` if there is none or it cannot be read."""
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=Written)
    except (OSError, *UNREADABLE):
        return None
