"""Output of a command: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import shlex
import sys
import webbrowser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import TextIOWrapper
from pathlib import Path

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from swarm_ui.cli import exits
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.terminal import SafeConsole, printable, printable_json
from swarm_ui.stats import Interval

_WIDTH = 120
"""Number of columns if there is no terminal."""


class Output:
    """The output of a command. With ``machine``, standard output gets one JSON object."""

    def __init__(self, *, machine: bool = False, quiet: bool = False) -> None:
        self.machine, self.quiet = machine, quiet
        self.result, self.log = _console(stderr=False), _console(stderr=True)
        self.progress = ProgressDisplay(self.log, quiet=quiet)

    def say(self, text: str) -> None:
        """Print a note in addition to the result."""
        if not self.quiet:
            self._note(Text(text, overflow="fold"))

    def command(self, what: str, *words: str) -> None:
        """Print a command to copy as a note: quoted for a shell, and without added line breaks."""
        if not self.quiet:
            self.log.print(Text(f"{what}: {shlex.join(words)}"), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print a warning; ``--quiet`` does not hide it."""
        self._note(Text.assemble(("warning: ", "yellow"), text))

    def error(self, text: str) -> None:
        """Print an error; items of a list stand one on each line."""
        self._note(Text.assemble(("error: ", "bold red"), text))

    def _note(self, text: Text) -> None:
        self.log.print(text, soft_wrap=not self.log.is_terminal)  # in a file, lines are kept

    def show(self, what: RenderableType) -> None:
        """Print a part of the result for people; with ``machine``, print nothing."""
        if self.machine:
            return
        if not isinstance(what, Table):
            self.result.print(what)
            return
        # A narrow table would wrap its title and caption.
        title, caption, what.title, what.caption = what.title, what.caption, None, None
        if title:
            self.result.print(title, style="bold")
        self.result.print(what)
        if caption:
            self.result.print(caption, style="dim")

    def open(self, path: Path) -> None:
        """Open a page in the browser."""
        if not webbrowser.open(path.resolve().as_uri()):
            self.say("no browser could be opened: open the file yourself")

    def lines(self, text: str) -> None:
        """Print a text, such as a file, without wrapping its lines. On a terminal, its control
        characters are replaced. Raises ``ConfigError`` if standard output cannot represent it."""
        if self.machine:
            return
        text = printable(text) if sys.stdout.isatty() else text
        try:
            text.encode(_encoding())
        except UnicodeEncodeError as error:
            raise ConfigError(
                f"{_encoding()}, the encoding of standard output, lacks a character; "
                "name a file with --out, or set PYTHONIOENCODING=utf-8"
            ) from error
        sys.stdout.write(text if text.endswith("\n") else text + "\n")

    def done(self, code: int = exits.OK, /, **document: object) -> int:
        """Print the result of a command as JSON; returns the exit code."""
        if self.machine:
            document = {"ok": code == exits.OK, "exit": code, **document}
            text = json.dumps(document, ensure_ascii=not _encoding().startswith("utf"))
            sys.stdout.write(printable_json(text) + "\n")
        return code

    def busy(self, what: str) -> AbstractContextManager[object]:
        """Show a spinner on a terminal while the block runs."""
        return nullcontext() if self.quiet else self.log.status(Text(what))


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]] = (),
    *,
    caption: str = "",
    left: bool = False,
) -> Table:
    """A table; an empty cell is a dash. ``left``: columns after the first are not right-aligned."""
    made = Table(title=title, caption=caption or None, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number and not left else "left", overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else shown(cell) for cell in row))
    return made


def shown(value: object, digits: int = 1, times: int = 1) -> str:
    """A value as a cell of a table. ``digits``: of a fraction; ``times``: 100 for percent."""
    if isinstance(value, Interval):
        return value.percent()
    if isinstance(value, float):
        return f"{times * value:.{digits}f}"
    return "–" if value is None or value == "" else str(value)


def facts_table(title: str, facts: Mapping[str, object]) -> Table:
    """A table of settings and their values."""
    return table(title, ["setting", "value"], facts.items(), left=True)


def expect_new(path: Path, force: bool) -> None:
    """Raise ``ConfigError`` if a file that a command would write exists, or cannot be written
    there; changes nothing. ``force``: whether it may replace another one."""
    if os.path.exists(path) and not force:  # which raises no error, whatever the name
        raise ConfigError(f"'{path}' exists; choose another name, or replace it with --force")
    around = next(folder for folder in path.absolute().parents if os.path.exists(folder))
    if not os.path.isdir(around) or not os.access(around, os.W_OK):
        raise ConfigError(f"cannot write '{path}': '{around}' is not a folder to write in")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file that the block writes. Raises ``ConfigError`` if it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error}") from error


def prepare_streams() -> None:
    """Make the standard streams usable where they are closed, or lack characters of a table."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _encoding() -> str:
    return (sys.stdout.encoding or "utf-8").lower()


def _console(*, stderr: bool) -> Console:
    made = SafeConsole(stderr=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _WIDTH
    return made
