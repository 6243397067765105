"""Files that survive ``kill -9``: replaced whole, or appended to by whole lines.

Every file of a run is written in one of two ways. :func:`replacing` and :func:`write_atomic` leave
either the old or the new contents, never a part; :func:`replacing_folder` does the same for a
folder. :class:`LineFile` appends lines; an incomplete last line, which a kill may leave, is removed
when the file is opened again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Self

_BLOCK = 65536


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a new version of a file, which replaces the old one when the block ends.

    If the block raises, the old file stays. The folder must exist.
    """
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
    """Write a new version of a flat or nested folder; it gets its name when the block ends.

    The block writes into an empty sibling folder, whose name begins with ``.<name>-``. If the
    block raises, an old folder stays. A kill leaves the old folder or none, never a part.
    """
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

    def __init__(self, file: Path | FileIO, *, end: int | None = None, fsync: bool = True) -> None:
        """
        Args:
            file: a path, created if it does not exist; or a file open to read and append.
            end: number of bytes to keep; the rest is removed. ``None``: all complete lines.
            fsync: whether :meth:`append` waits until the lines are on disk.
        """
        self._file = file if isinstance(file, FileIO) else FileIO(file, "a+")
        self._fsync = fsync
        self.size = whole_size(self._file) if end is None else end
        """Bytes in the file."""
        if self.size < os.fstat(self._file.fileno()).st_size:
            self._file.truncate(self.size)
            os.fsync(self._file.fileno())

    def append(self, *lines: bytes) -> None:
        """Append lines, all or none.

        Raises:
            OSError: they could not be written, such as on a full disk; the file is as before.
        """
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_line(path: Path, line: bytes) -> None:
    """Append one line and wait for the disk. An incomplete last line is removed first."""
    if b"\n" in line:
        raise ValueError(f"a line of {path.name} must not hold a line break")
    with LineFile(path) as file:
        file.append(line)


def whole_lines(path: Path) -> list[bytes]:
    """The lines of a file without their ends. Empty and incomplete lines are left out."""
    if not path.exists():
        return []
    return [line for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]


def whole_size(file: FileIO) -> int:
    """Number of bytes of the complete lines of a file."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def sync_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
