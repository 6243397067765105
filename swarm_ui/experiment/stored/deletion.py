"""Deletes the folders of runs, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.stored.summary import RunSummary, run_folders, summary_of
from swarm_ui.files import being_written, only_writer
from swarm_ui.storage.run_directory import RunDirectory

_PARTS = ("run", "episodes", "training")
"""The locks that a process may hold while it works on a run."""
_DELETION = "deletion"
_DELETION_LOCK = f".{_DELETION}.lock"


def to_delete(paths: Sequence[Path]) -> list[RunSummary]:
    """The runs that would be deleted, after checking all of them; changes nothing.

    A run whose deletion was interrupted is found under its old name.

    Raises:
        ConfigError: one of them is not a run, is being written, or holds something else.
    """
    found = [_found(path) for path in paths]
    for path, at in zip(paths, found, strict=True):
        _check(at)
        if at == path and (rest := _renamed(path)).is_dir():
            _check(rest)
    resolved = [at.resolve() for at in found]
    for place in resolved:
        if resolved.count(place) > 1:
            raise ConfigError(f"'{place}' is named twice; nothing was deleted")
    return [summary_of(at) for at in found]


def delete(path: Path) -> None:
    """Delete the folder of a run, and what an interrupted deletion left of a run of that name.

    The folder is renamed first, so that an interrupted deletion leaves no partial run under the old
    name. Call it again to continue.

    Raises:
        ConfigError: as :func:`to_delete`; or it cannot be deleted.
    """
    gone, interrupted = _renamed(path), _found(path) != path
    if gone.is_dir():
        _check(gone)
        _remove(gone)
        if interrupted:
            return
    _check(path)
    with ExitStack() as stack:
        for part in _PARTS:  # nobody continues with the run meanwhile
            stack.enter_context(only_writer(path, part))
        try:
            path.resolve().rename(gone)
        except OSError as error:
            raise ConfigError(f"'{path}' cannot be deleted: {error}") from error
    _remove(gone)


def _renamed(path: Path) -> Path:
    """The name of a run's folder while it is deleted."""
    place = path.resolve()
    return place.with_name(f".{place.name}.deleted")


def _found(path: Path) -> Path:
    """The folder of a run, or what an interrupted deletion left of it."""
    gone = _renamed(path)
    return gone if not os.path.lexists(path) and gone.is_dir() else path


def _remove(gone: Path) -> None:
    """Delete a folder that was renamed.

    ``config.json`` is deleted last: it shows that what an interrupted deletion leaves was a run.
    """
    try:
        with only_writer(gone, _DELETION):
            for entry in sorted(gone.iterdir()):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                elif entry.name not in ("config.json", _DELETION_LOCK):
                    entry.unlink()
            (gone / "config.json").unlink(missing_ok=True)
        gone.rmdir()
    except OSError as error:
        raise ConfigError(
            f"the run was deleted in part: {error}. The rest is in '{gone}'; remove the cause and "
            "give the same command again"
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
        if not _almost_deleted(path):
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


def _almost_deleted(path: Path) -> bool:
    """Whether a deletion was interrupted after its last file."""
    renamed = path.name.startswith(".") and path.name.endswith(".deleted")
    return renamed and all(entry.name == _DELETION_LOCK for entry in path.iterdir())
