"""The files that ``--out`` names: checked before the work for them, written with their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from swarm_ui.errors import ConfigError


def expect_new(path: Path, force: bool) -> None:
    """Raise ``ConfigError`` if a file that a command would write exists."""
    if os.path.exists(path) and not force:  # which raises no error, whatever the name
        raise ConfigError(f"'{path}' exists; choose another name, or replace it with --force")


def expect_file_place(path: Path, force: bool) -> None:
    """Raise ``ConfigError`` if a file cannot be written there; changes nothing.

    ``force``: whether it may replace another one.
    """
    if os.path.isdir(path):
        raise ConfigError(f"cannot write '{path}': it is a folder")
    expect_new(path, force)
    around = next(folder for folder in path.absolute().parents if os.path.exists(folder))
    if not os.path.isdir(around) or not os.access(around, os.W_OK):
        raise ConfigError(f"cannot write '{path}': '{around}' is not a folder to write in")


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
