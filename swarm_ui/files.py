"""Files that survive ``kill -9``: replaced whole, or appended to by whole lines; and their locks.

A lock (:func:`claim`, :func:`only_writer`) ensures one writer, and ends with its process.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from io import FileIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from swarm_ui.errors import ConfigError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

_TRIES, _PAUSE = 5, 0.02
"""Number of attempts to get a lock, and the seconds between them: :func:`being_written` holds it
briefly."""
CACHE_VARIABLE = "SWARM_UI_CACHE"
"""The variable that names another cache folder."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a new version of a file, which replaces the old one when the block ends; if it raises,
    the old file stays. The folder must exist."""
    part = path.with_name(f".{path.name}.{token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:  # re-raised after the partial file was removed
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Write a file so that it holds either its old contents or all of ``data``, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Write a new version of a folder into an empty one beside it, which gets the name when the
    block ends; if it raises, the old folder stays. A kill leaves the old folder or none, never a
    part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
    try:
        made = part / "new"
        made.mkdir()
        yield made
        for folder, _, names in os.walk(made):
            for name in names:
                file = os.path.join(folder, name)
                os.chmod(file, 0o644)
                with open(file, "rb+") as written:
                    os.fsync(written.fileno())
            sync_folder(Path(folder))
        old = part / "old"
        try:
            if os.path.lexists(path):
                os.rename(path, old)
            os.rename(made, path)
        except BaseException:  # re-raised: also an interrupt between the two keeps the old folder
            if os.path.lexists(old):
                os.rename(old, path)
            raise
        sync_folder(path.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


class LineFile:
    """A file open for appending lines. An incomplete last line is removed when it is opened."""

    def __init__(self, file: Path | FileIO, *, fsync: bool = True) -> None:
        """``file``: a path, created if missing; or a file open to read and append. ``fsync``:
        whether :meth:`append` waits until the lines are on disk."""
        self._file = file if isinstance(file, FileIO) else FileIO(file, "a+")
        self._fsync = fsync
        self.size = 0
        """Bytes in the file."""
        there = os.fstat(self._file.fileno()).st_size
        if there:  # an empty file has no map
            with mmap(self._file.fileno(), 0, access=ACCESS_READ) as data:
                self.size = data.rfind(b"\n") + 1
        if self.size < there:
            self._file.truncate(self.size)
            os.fsync(self._file.fileno())

    def append(self, *lines: bytes) -> None:
        """Append lines, all or none. Raises ``OSError`` (a full disk); the file is as before."""
        data = b"".join([line + b"\n" for line in lines])
        left = memoryview(data)
        descriptor = self._file.fileno()
        try:
            while left:
                left = left[os.write(descriptor, left) :]
            if self._fsync:
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):  # the rest is removed when the file is opened again
                os.ftruncate(descriptor, self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()


def append_line(path: Path, line: bytes) -> None:
    """Append one line and wait for the disk. An incomplete last line is removed first."""
    with closing(LineFile(path)) as file:
        file.append(line)


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file without their ends. Empty and incomplete lines are left out."""
    if not path.exists():
        return []
    return [line for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def claim(path: Path) -> FileIO | None:
    """Open a file to read and append, made with its folder if missing, and lock it for this
    process; ``None`` if another process holds the lock. Raises ``OSError``.

    The lock ends when the file is closed or the process ends, also by ``kill -9``. A forked process
    holds it too. Without ``fcntl`` (Windows) there is no lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = FileIO(path, "a+")
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if isinstance(error, BlockingIOError):
            return None
        raise
    return file


@contextmanager
def only_writer(folder: Path, part: str) -> Iterator[None]:
    """Lock a part of a run's folder for writing while the block runs; the file ``.<part>.lock``
    stays. Raises ``ConfigError`` if another process (or task) is writing it; nothing was changed.
    """
    try:
        for _ in range(_TRIES):
            if (file := claim(folder / f".{part}.lock")) is not None:
                break
            time.sleep(_PAUSE)
    except OSError as error:
        raise ConfigError(f"'{folder}' cannot be written: {error}") from error
    if file is None:
        raise ConfigError(
            f"the run '{folder}' is open in another process ({part}); wait until that process "
            "ends, or stop it (a killed process holds no lock)"
        )
    with file:
        yield


def being_written(folder: Path) -> bool:
    """Whether a process holds a lock of :func:`only_writer` in a folder; changes nothing there.

    Always false without ``fcntl`` (Windows). If the file system does not share ``flock`` between
    machines, only processes of this machine are seen.
    """
    for path in folder.glob(".*.lock"):
        if fcntl is not None and path.is_file():  # a pipe would block
            with suppress(OSError), FileIO(path) as file:  # deleted: its holder has ended
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
    return False


def cache_folder() -> Path:
    """The user's cache folder of this library, which may not exist yet: ``SWARM_UI_CACHE`` if it is
    set, or ``swarm-ui`` under ``XDG_CACHE_HOME`` or ``~/.cache``."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says that a relative path is to be ignored.
    return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "swarm-ui"
