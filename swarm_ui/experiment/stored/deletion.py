"""Deletes the folders of runs, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.stored.summary import RunSummary, run_folders, summary_of
from swarm_ui.storage.run_directory import RunDirectory
from swarm_ui.storage.run_lock import being_written, only_writer

_PARTS = ("run", "episodes", "training")
"""The locks that a process may hold while it works on a run."""


def to_delete(paths: Sequence[Path]) -> list[RunSummary]:
    """The runs that would be deleted, after checking all of them; changes nothing.

    Raises:
        ConfigError: one of them is not a run, is being written, or holds something else.
    """
    for path in paths:
        _check(path)
    resolved = [path.resolve() for path in paths]
    for place in resolved:
        if resolved.count(place) > 1:
            raise ConfigError(f"'{place}' is named twice; nothing was deleted")
    return [summary_of(path) for path in paths]


def delete(path: Path) -> None:
    """Delete the folder of a run.

    The folder is renamed first, so that an interrupted deletion leaves no partial run under the old
    name.

    Raises:
        ConfigError: as :func:`to_delete`; or it cannot be deleted.
    """
    _check(path)
    gone = path.resolve().with_name(f".{path.resolve().name}.deleted")
    with ExitStack() as stack:
        for part in _PARTS:  # nobody continues with the run meanwhile
            stack.enter_context(only_writer(path, part))
        try:
            path.resolve().rename(gone)
        except OSError as error:
            raise ConfigError(f"'{path}' cannot be deleted: {error}") from error
    try:
        shutil.rmtree(gone)
    except OSError as error:
        raise ConfigError(
            f"'{path}' was deleted in part: {error}; delete the rest in '{gone}' yourself"
        ) from error


def _check(path: Path) -> None:
    """Raise ``ConfigError`` unless the path is the folder of a run that nobody is writing."""
    if path.is_symlink():
        raise ConfigError(
            f"'{path}' is a link to '{path.readlink()}'; name the folder itself. Nothing was "
            "deleted"
        )
    if not path.is_dir():
        raise ConfigError(f"there is no run '{path}'; nothing was deleted")
    try:
        RunDirectory(path).document()
    except ConfigError as error:
        raise ConfigError(
            f"{error}. Only folders that are certainly runs are deleted: if it is one, delete it "
            "yourself. Nothing was deleted"
        ) from error
    if Path.cwd().is_relative_to(path.resolve()):
        raise ConfigError(
            f"the current folder is inside of '{path}'; leave it first. Nothing was deleted"
        )
    inside = [inner for folder in path.iterdir() if folder.is_dir() and not folder.is_symlink()
              for inner in run_folders(folder)]  # fmt: skip
    if inside:
        raise ConfigError(
            f"'{path}' contains the run '{inside[0]}'; move or delete that run first. Nothing was "
            "deleted"
        )
    if being_written(path):
        raise ConfigError(
            f"'{path}' is being written by another process; stop it first. Nothing was deleted"
        )
