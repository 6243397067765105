"""A file of lines that survives ``kill -9``: appended to by whole lines, repaired when opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


class Lines:
    """An open file of JSON lines. What a kill cut off in the last line is cut away first."""

    def __init__(self, path: Path, *, end: int | None = None) -> None:
        """
        Args:
            path: made if it is not there.
            end: bytes that count; what stands after them was never finished. ``None``: all whole
                lines count.
        """
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._file).st_size
        keep = size if end is None else end
        if end is None and size and os.pread(self._file, 1, size - 1) != b"\n":
            keep = path.read_bytes().rfind(b"\n") + 1
        if keep < size:
            os.ftruncate(self._file, keep)
            os.fsync(self._file)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._file).st_size

    def append(self, *lines: bytes) -> None:
        """Append lines, on disk before this returns; all or, if the disk is full, none."""
        self.extend(lines)

    def extend(self, lines: Sequence[bytes]) -> None:
        """As :meth:`append`. Raises ``OSError``; then the file is as it was before."""
        data = b"".join(line + b"\n" for line in lines)
        before = self.size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def close(self) -> None:
        """Let go of the file; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
