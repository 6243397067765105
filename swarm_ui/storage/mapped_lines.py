"""Lines of a large file that is mapped into memory, not read into it."""

from __future__ import annotations

import mmap
import os
from array import array
from pathlib import Path


class MappedLines:
    """The lines of a file; their positions are determined when they are first needed.

    Lines that are appended later are not seen. The file must not be truncated meanwhile.
    """

    def __init__(self, path: Path) -> None:
        """Raise ``OSError`` if the file cannot be opened."""
        self.path = path
        self._ends = array("Q")  # of the lines found so far
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            # An empty file cannot be mapped.
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else None
        self._view: memoryview | None = memoryview(b"" if self._map is None else self._map)

    @property
    def view(self) -> memoryview:
        """All bytes of the file. Raises ``ValueError`` if it was closed."""
        if self._view is None:
            raise ValueError(f"{self.path} was closed")
        return self._view

    def __len__(self) -> int:
        self._find(None)
        return len(self._ends)

    def __getitem__(self, index: int) -> memoryview:
        """A line with its line feed; the last line of a file may have none."""
        self._find(index)
        if not 0 <= index < len(self._ends):
            raise IndexError(f"no line {index}: {self.path} has {len(self._ends)} lines")
        return self.view[self._ends[index - 1] if index else 0 : self._ends[index]]

    def _find(self, index: int | None) -> None:
        """Find where the lines up to ``index`` end; if ``index`` is ``None``, all lines."""
        size = len(self.view)
        start = self._ends[-1] if self._ends else 0
        while start < size and (index is None or len(self._ends) <= index):
            assert self._map is not None
            start = self._map.find(b"\n", start) + 1 or size
            self._ends.append(start)

    def close(self) -> None:
        """Close the file. Lines that were already read stay valid."""
        self._view = self._map = None
