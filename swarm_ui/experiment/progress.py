"""Progress of long tasks: bars on a terminal, else lines; and ``progress.json`` for others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from rich.console import Console, RenderableType
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
    """Shows several tasks at the same time; nothing if it is ``quiet``."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console, self.quiet = console or SafeConsole(stderr=True), quiet
        self.listener: Callable[[str, TaskProgress | None], None] | None = None
        """Called with the label and the progress of a task, and with ``None`` at its end."""
        self._bars: Progress | None = None

    def say(self, what: RenderableType = "") -> None:
        """Print a note."""
        if not self.quiet:
            self.console.print(what)

    @contextmanager
    def bar(
        self, label: str, total: float, *, share: bool = True, together: float = 1
    ) -> Iterator[Bar]:
        """Show a bar while the block runs.

        ``total``: the number of steps; 1 for a task that reports its share. ``share``: show a
        percentage, instead of a count and its rate. ``together``: steps that run at the same time.
        """
        bar = Bar(self, label, total, share, together)
        try:
            yield bar
        finally:
            bar.end()

    def bars(self) -> Progress | None:
        """The bars on the terminal; ``None`` if there is none."""
        if self.quiet or not self.console.is_terminal:
            return None
        if self._bars is None or not self._bars.live.is_started:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=40 if self.console.width > 100 else 12),
                TextColumn("{task.fields[said]}", markup=False),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self._bars.start()
        return self._bars


class Bar:
    """One long task. :meth:`update` may be called often.

    The time left is reported by the task, or else estimated from the mean rate of its steps, when
    at least three are done and at least as many as run at the same time: of eight steps that run
    together, the first one ends when the others have nearly ended.
    """

    def __init__(
        self, display: ProgressDisplay, label: str, total: float, share: bool, together: float
    ) -> None:
        self._display, self._label, self._share = display, label, share
        self._fewest, self._before = max(_FEWEST, together), 0.0
        self._began = self._line_at = time.monotonic()
        self.resize(total)
        self._bars = display.bars()
        if self._bars is not None:
            self._task = self._bars.add_task(label, total=total, said="")

    def end(self) -> None:
        """Remove the bar."""
        if self._display.listener is not None:
            self._display.listener(self._label, None)
        if self._bars is not None:
            self._bars.remove_task(self._task)
            if not self._bars.tasks:
                self._bars.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def resize(self, total: float) -> None:
        """Set the number of all steps, where it was not known at the start."""
        self._total = max(total, 1e-9)

    def start_from(self, done: float) -> None:
        """Set the number of steps that were done before this process began."""
        self._before = done
        self.update(done)

    def update(self, done: float, note: str = "", *, left: float | None = None) -> None:
        """Set the number of finished steps; ``left``: the task's own estimate in seconds."""
        made, seconds = done - self._before, self.seconds
        if left is None and made >= self._fewest:
            left = seconds * max(0.0, self._total - done) / made
        progress = TaskProgress(
            label=self._label, done=done, total=self._total, note=note, left=left, seconds=seconds
        )
        if self._display.listener is not None:
            self._display.listener(self._label, progress)
        shown = f"{done / self._total:.0%}"
        if not self._share:
            shown = f"{done:g}/{self._total:g}, {made / max(seconds, 1e-9):.2f}/s"
        ends = "" if left is None else f"about {left:.0f} s left"
        said = ", ".join(filter(None, [shown, ends, note]))
        if self._bars is not None:
            self._bars.update(self._task, completed=done, total=self._total, said=said)
        elif time.monotonic() - self._line_at >= _BETWEEN_LINES:
            self._line_at = time.monotonic()
            self._display.say(Text(f"{self._label}: {said}"))


def duration_text(seconds: float) -> str:
    """A duration as readable text."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# -- for other programs that follow the run ---------------------------------------------------


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
        if next_write is None and not any(task.done > 0 for task in tasks.values()):
            return
        if next_write is not None and progress is not None and now < next_write:
            return
        next_write = now + _BETWEEN_WRITES
        found = Written(written=now, tasks=tuple(tasks.values()), ended=tuple(ended.values()))
        try:
            write_atomic(folder / _NAME, msgspec.json.encode(found))
        except OSError as error:
            display.listener = None
            warn(f"the progress is not recorded: {error}")

    display.listener = note
    try:
        yield
    finally:
        display.listener = None


def read_progress(folder: Path) -> Written | None:
    """The progress that a run recorded last; ``None`` if there is none or it cannot be read."""
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=Written)
    except (OSError, *UNREADABLE):
        return None
