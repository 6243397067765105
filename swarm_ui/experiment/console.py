"""What the user sees while a run goes on: bars with time left, or plain lines in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console, RenderableType
from rich.progress import TaskID

from swarm_ui.cli.output import line, live

_LINE_EVERY = 10.0
"""Seconds between two lines about the same work where there is no terminal."""
_WIDTH = 140


class Bar:
    """One long piece of work. ``update`` may be called as often as one likes."""

    def __init__(self, screen: Screen, label: str, total: float) -> None:
        self._screen, self._label, self._total = screen, label, max(total, 1e-9)
        self._began = self._spoke = time.monotonic()
        self._task = screen.add(label, total)

    def update(self, done: float, note: str = "") -> None:
        """``done`` of the total is done."""
        if self._task is not None:
            self._screen.advance(self._task, done, note)
            return
        now = time.monotonic()
        if now - self._spoke >= _LINE_EVERY and done > 0:
            self._spoke = now
            self._screen.say(line(self._label, done, self._total, now - self._began, note, True))

    def say(self, text: str) -> None:
        """A line above the bar."""
        self._screen.say(text)

    def close(self) -> None:
        """The work is over."""
        if self._task is not None:
            self._screen.drop(self._task)
        self._screen.say(f"{self._label}: {time.monotonic() - self._began:.0f} s")


class Screen:
    """Standard output. Use it in a ``with``."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, markup=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, markup=False, width=_WIDTH)
        self._bars = live(self.console, share=True)

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def say(self, what: RenderableType = "") -> None:
        self.console.print(what)

    @contextmanager
    def bar(self, label: str, total: float) -> Iterator[Bar]:
        """A bar while the work inside goes on."""
        bar = Bar(self, label, total)
        try:
            yield bar
        except BaseException:
            bar._screen.drop(bar._task)
            raise
        bar.close()

    def add(self, label: str, total: float) -> TaskID | None:
        """Show a bar; ``None`` where there is no terminal."""
        if not self.console.is_terminal:
            self.say(f"{label} …")
            return None
        return self._bars.add_task(label, total=total, note="")

    def advance(self, task: TaskID, done: float, note: str) -> None:
        self._bars.update(task, completed=done, note=note)

    def drop(self, task: TaskID | None) -> None:
        if task is not None:
            self._bars.remove_task(task)
