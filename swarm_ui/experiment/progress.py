"""Consoles for untrusted text, and progress of long tasks: bars on a terminal, else lines."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.text import Text

from swarm_ui.trace.records import Episode

_SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two lines about the same task if there is no terminal."""
_FEWEST = 3
"""Steps after which the time left is estimated from their mean rate."""
_WIDTH = 140


_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # line separators, and changes of direction
    "\ud800-\udfff]"  # lone surrogates, which cannot be encoded
)


def discard_output(stream: IO[str]) -> None:
    """Write nothing to a standard stream any more: its reader, such as ``head``, has closed it."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


def printable(text: str) -> str:
    """The text with ``�`` in place of each character that would control a terminal.

    These are the C0 and C1 controls except tab and line feed, and Unicode's controls of the text
    direction.
    """
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def printable_json(text: str) -> str:
    """A JSON text with the same value, in which these characters are escaped."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class SafeConsole(Console):
    """A console on which untrusted text cannot control the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            controls = segment.control is not None  # control codes of the console itself
            yield segment if controls else segment._replace(text=printable(segment.text))


def script_console() -> Console:
    """Standard output of a script; wide if it is not a terminal."""
    console = SafeConsole()
    if not console.is_terminal:
        console.width = _WIDTH
    return console


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
    """Shows several tasks at the same time. ``announce``: a line when each begins and ends."""

    def __init__(
        self, console: Console | None = None, *, announce: bool = True, quiet: bool = False
    ) -> None:
        self.console = console or script_console()
        self.announce, self.quiet = announce, quiet
        self._live: Progress | None = None
        self.listener: Callable[[str, TaskProgress | None], None] | None = None
        """Called with the label and the progress of a task, and with ``None`` at its end."""

    def hear(self, label: str, progress: TaskProgress | None) -> None:
        """Pass the progress of a task to the listener."""
        if self.listener is not None:
            self.listener(label, progress)

    def say(self, what: RenderableType = "") -> None:
        """Print a note."""
        if not self.quiet:
            self.console.print(what)

    @contextmanager
    def bar(
        self, label: str, total: float, *, share: bool = True, together: float = 1
    ) -> Iterator[Bar]:
        """Show a bar while the block runs.

        Args:
            label: the name of the task.
            total: the number of its steps; 1 for a task that reports its share.
            share: show a percentage, instead of a count and its rate.
            together: the number of steps that run at the same time.
        """
        bar = Bar(self, label, total, share, together)
        try:
            yield bar
        finally:
            bar.end()
        if self.announce:
            self.say(f"{label}: {bar.seconds:.0f} s")

    def live(self) -> Progress | None:
        """The bars on the terminal; ``None`` if there is none."""
        if self.quiet or not self.console.is_terminal:
            return None
        if self._live is None or not self._live.live.is_started:
            self._live = _bars(self.console)
            self._live.start()
        return self._live


class Bar:
    """One long task. :meth:`update` may be called often.

    The time left is reported by the task, or else estimated from the mean rate of its steps. The
    estimate begins when at least three steps are done, and at least as many as run at the same
    time. An earlier estimate would be several times too large: of eight steps that run together,
    the first one ends when the others have nearly ended.
    """

    def __init__(
        self,
        display: ProgressDisplay,
        label: str,
        total: float,
        share: bool,
        together: float = 1,
    ) -> None:
        self._display, self._label, self._share = display, label, share
        self._fewest, self._before = max(_FEWEST, together), 0.0
        self._total = max(total, 1e-9)
        self._began = self._line_at = time.monotonic()
        self._live = display.live()
        if self._live is not None:
            self._task = self._live.add_task(label, total=total, note="", share=share, end=None)
        elif display.announce:
            display.say(f"{label} …")

    def end(self) -> None:
        """Remove the bar."""
        self._display.hear(self._label, None)
        if self._live is not None:
            self._live.remove_task(self._task)
            if not self._live.tasks:
                self._live.stop()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def resize(self, total: float) -> None:
        """Set the number of all steps, where it was not known at the start."""
        self._total = max(total, 1e-9)
        if self._live is not None:
            self._live.update(self._task, total=total)

    def start_from(self, done: float) -> None:
        """Set the number of steps that were done before this process began."""
        self._before = done
        self.update(done)

    def update(self, done: float, note: str = "", *, left: float | None = None) -> None:
        """Set the number of finished steps.

        Args:
            done: the number.
            note: shown beside the bar.
            left: seconds until the end, if the task has a better estimate than the mean rate of its
                steps.
        """
        now = time.monotonic()
        if left is None:
            left = self._estimate(done)
        self._display.hear(self._label, TaskProgress(
            label=self._label, done=done, total=self._total, note=note, left=left,
            seconds=self.seconds,
        ))  # fmt: skip
        if self._live is not None:
            end = None if left is None else now + left
            self._live.update(self._task, completed=done, note=note, end=end)
            return
        if now - self._line_at >= _SECONDS_BETWEEN_LINES:
            self._line_at = now
            self._display.say(Text(self._line(done, note, left)))

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._display.say(text)

    def _estimate(self, done: float) -> float | None:
        made = done - self._before
        if made < self._fewest:
            return None
        return self.seconds * max(0.0, self._total - done) / made

    def _line(self, done: float, note: str, left: float | None) -> str:
        shown = f"{done / self._total:.0%}"
        if not self._share:
            rate = (done - self._before) / max(self.seconds, 1e-9)
            shown = f"{done:g}/{self._total:g}, {rate:.2f}/s"
        ends = "" if left is None else f"about {left:.0f} s left"
        return f"{self._label}: {', '.join(filter(None, [shown, ends, note]))}"


def counting(bar: Bar) -> Callable[[str, Sequence[Episode]], None]:
    """A listener that advances a bar by the episodes of each task."""
    played = itertools.count(1)

    def count(task: str, episodes: Sequence[Episode]) -> None:
        for _ in episodes:
            bar.update(next(played), task)

    return count


class _Amount(ProgressColumn):
    """The progress as text: a percentage, or a count with its rate."""

    def render(self, task: Task) -> Text:
        if task.fields["share"]:
            return Text(f"{task.percentage:>3.0f}%", style="progress.percentage")
        rate = task.finished_speed or task.speed
        count = f"{task.completed:g}/{task.total:g}"
        return Text(count if rate is None else f"{count} {rate:.1f}/s", style="progress.download")


class _Left(ProgressColumn):
    """The time that is left, if it is known."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        end = task.fields["end"]
        if end is None:
            return Text("-:--:--", style="progress.remaining")
        minutes, seconds = divmod(max(0, round(end - time.monotonic())), 60)
        hours, minutes = divmod(minutes, 60)
        return Text(f"{hours:d}:{minutes:02d}:{seconds:02d}", style="progress.remaining")


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=40 if console.width > 100 else 12),
        _Amount(),
        TimeElapsedColumn(),
        TextColumn("·"),
        _Left(),
        TextColumn("left"),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )


def duration_text(seconds: float) -> str:
    """A duration as readable text."""
    if seconds < 90:
        return f"{max(0.0, seconds):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
