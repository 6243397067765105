"""The files that ``--out`` names: checked before the work for them, written with their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from swarm_ui.cli.flags import expect_new
from swarm_ui.cli.output import Output
from swarm_ui.errors import ConfigError
from swarm_ui.trace.jsonl import write_jsonl
from swarm_ui.trace.records import Trace


def expect_file_place(path: Path | None, force: bool) -> None:
    """Raise ``ConfigError`` if a new file cannot be written there; changes nothing.

    Args:
        path: the file; ``None``: no file was asked for.
        force: whether the file may replace another one.
    """
    if path is None:
        return
    if os.path.isdir(path):
        raise ConfigError(f"cannot write '{path}': it is a folder")
    expect_new(path, force)
    _expect_writable(path, path.absolute().parents)


def _expect_writable(path: Path, folders: Sequence[Path]) -> None:
    """Check the first of the folders that exists."""
    # The functions of os.path raise no error, whatever the name.
    around = next(folder for folder in folders if os.path.exists(folder))
    if not os.path.isdir(around) or not os.access(around, os.W_OK):
        raise ConfigError(f"cannot write '{path}': '{around}' is not a folder to write in")


def write_trace(path: Path | None, trace: Trace, output: Output) -> None:
    """Write a trace as a JSON lines file. ``None``: no file was asked for.

    Raises:
        ConfigError: the file cannot be written.
    """
    if path is None:
        return
    with writing(path):
        write_jsonl(path, [trace])
    output.say(f"wrote {path}")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file that the block writes.

    Raises:
        ConfigError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error}") from error
