"""Locks that ensure one writer for each run. A lock ends with the process that holds it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from io import FileIO
from pathlib import Path

from swarm_ui.errors import ConfigError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


def claim(path: Path) -> FileIO | None:
    """Open a file to read and append, and lock it for this process.

    The file and its folder are created if they do not exist.

    The lock ends when the file is closed or the process ends, also by ``kill -9``. A forked process
    holds it too. Without ``fcntl`` (Windows) there is no lock.

    Returns:
        ``None`` if another process holds the lock.

    Raises:
        OSError: it cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = FileIO(path, "a+")
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.close()
                    return None
            if _is_at(file, path):
                return file
        except BaseException:  # re-raised: an interrupt must not leave the file locked
            file.close()
            raise
        file.close()  # deleted between opening and locking: the path now has another file


_TRIES, _PAUSE = 5, 0.02
"""Number of attempts to get a lock, and the seconds between them: :func:`being_written` holds it
briefly."""


@contextmanager
def only_writer(folder: Path, part: str) -> Iterator[None]:
    """Lock a part of a run's folder for writing while the block runs.

    Raises:
        ConfigError: another process (or task) is writing it; nothing was changed.
    """
    path = folder / f".{part}.lock"
    try:
        file = claim(path)
        for _ in range(_TRIES - 1):
            if file is not None:
                break
            time.sleep(_PAUSE)
            file = claim(path)
    except OSError as error:
        raise ConfigError(f"'{folder}' cannot be written: {error}") from error
    if file is None:
        raise ConfigError(
            f"the run '{folder}' is open in another process ({part}); wait until that process "
            "ends, or stop it (a killed process holds no lock)"
        )
    try:
        yield
    finally:
        with suppress(OSError):  # deleted while locked: a waiting process opens a new file
            path.unlink()
        file.close()


def being_written(folder: Path) -> bool:
    """Whether a process holds a lock of :func:`only_writer` in a folder; changes nothing there.

    Always false without ``fcntl`` (Windows). If the file system does not share ``flock`` between
    machines, only processes of this machine are seen.
    """
    if fcntl is None:
        return False
    for path in folder.glob(".*.lock"):
        if not path.is_file():  # a pipe would block
            continue
        with suppress(OSError), FileIO(path) as file:  # deleted: its holder has ended
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def file_name(run: str) -> str:
    """A file name for a run, without suffix: the printable part of the run's name, and a hash.

    It is the same on every system, different for each run, and never leads out of the folder.
    """
    readable = "".join([c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in run])
    digest = blake2b(run.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return f"{readable[:48].strip('-') or 'run'}-{digest}"
