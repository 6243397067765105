"""What a command shows: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_LINE_EVERY = 10.0
"""Seconds between two lines about the same work where there is no terminal."""
_WIDTH = 120
"""Columns where there is no terminal to ask."""


class Output:
    """Where a command writes. With ``machine``, standard output gets one JSON object."""

    def __init__(self, *, machine: bool = False, quiet: bool = False) -> None:
        self.machine, self.quiet = machine, quiet
        self.result = _console(stderr=False)
        self.log = _console(stderr=True)

    def say(self, what: RenderableType) -> None:
        """A remark beside the result."""
        if not self.quiet:
            self.log.print(what)

    def warn(self, text: str) -> None:
        """A remark that ``--quiet`` does not hide."""
        self.log.print(Text.assemble(("warning: ", "yellow"), text))

    def error(self, text: str) -> None:
        """What is wrong. A list, one item a line, keeps its indentation where it is wrapped."""
        first, *rest = text.splitlines() or [""]
        whole = not self.log.is_terminal  # a file or another program wants no line breaks
        self.log.print(Text.assemble(("error: ", "bold red"), first), soft_wrap=whole)
        for line in rest:
            item = Text(line.strip())
            if whole:
                self.log.print(Text("  ").append(item), soft_wrap=True)
            else:
                self.log.print(Padding(item, (0, 0, 0, 2), expand=False))

    def show(self, what: RenderableType) -> None:
        """Part of the result, for people."""
        if self.machine:
            return
        if not isinstance(what, Table):
            self.result.print(what)
            return
        # A table as narrow as its columns would break its own title and caption into pieces.
        title, caption, what.title, what.caption = what.title, what.caption, None, None
        if title:
            self.result.print(title, style="bold")
        self.result.print(what)
        if caption:
            self.result.print(caption, style="dim")

    def lines(self, text: str) -> None:
        """Text as it is, such as a file: not wrapped to the terminal."""
        if not self.machine:
            sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def record(self, document: Mapping[str, object]) -> None:
        """The result, for machines."""
        if self.machine:
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Something turns on a terminal while the work inside goes on, which cannot be counted."""
        if self.quiet or not self.log.is_terminal:
            yield
            return
        with self.log.status(Text(what), spinner="dots"):
            yield

    @contextmanager
    def bar(self, label: str, total: int, *, share: bool = False) -> Iterator[Bar]:
        """A bar while the work inside goes on.

        Args:
            label: what is done.
            total: of the steps that :meth:`Bar.update` counts.
            share: steps are a measure of the work, not things to be counted: show a percentage.
        """
        bar = Bar(self, label, total, share=share)
        with bar.shown():
            yield bar


class Bar:
    """One long piece of work, with its rate, its time left and a note."""

    def __init__(self, output: Output, label: str, total: int, *, share: bool = False) -> None:
        self._output, self._label, self._total, self._share = output, label, total, share
        self._began = self._spoke = time.monotonic()
        shown = not output.quiet and output.log.is_terminal
        self._live = live(output.log, share) if shown else None
        self._task = (
            None if self._live is None else self._live.add_task(label, total=total, note="")
        )

    @contextmanager
    def shown(self) -> Iterator[None]:
        if self._live is None:
            yield
            return
        with self._live:
            yield

    def update(self, done: int, note: str = "") -> None:
        """``done`` of the total is done."""
        if self._live is not None and self._task is not None:
            self._live.update(self._task, completed=done, note=note)
            return
        now = time.monotonic()
        if now - self._spoke >= _LINE_EVERY and done:
            self._spoke = now
            self._output.say(
                Text(line(self._label, done, self._total, now - self._began, note, self._share))
            )


def line(label: str, done: float, total: float, seconds: float, note: str, share: bool) -> str:
    """What a bar shows, for a log; ``seconds``: since it began."""
    rate = done / max(seconds, 1e-9)
    told = f"{done / total:.0%}" if share else f"{done:g}/{total:g}, {rate:.2f}/s"
    return f"{label}: {told}, about {(total - done) / rate:.0f} s left" + (
        f", {note}" if note else ""
    )


class _Rate(ProgressColumn):
    """How many a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.1f}/s", style="progress.data.speed")


def table(title: str, columns: Sequence[str], *, caption: str = "") -> Table:
    """An empty table in the house's look; columns after the first are numbers."""
    made = Table(
        title=title,
        caption=caption or None,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", overflow="fold")
    return made


def _console(*, stderr: bool) -> Console:
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made = Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=_WIDTH)
    return made


def live(console: Console, share: bool) -> Progress:
    """Bars with the time left and a field ``note``: a percentage each, or a count and its rate."""
    count = (TaskProgressColumn(),) if share else (MofNCompleteColumn(), _Rate())
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=40 if console.width > 100 else 12),
        *count,
        TimeElapsedColumn(),
        TextColumn("·"),
        TimeRemainingColumn(),
        TextColumn("left"),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )
