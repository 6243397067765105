"""The errors of commands for the simulated device, and its file system in memory."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

import msgspec

from swarm_ui.errors import EnvironmentFault

SHARED = "/storage/emulated/0"
"""Folder of the user's files. ``/sdcard`` is an alias of it."""
_ALIASES = ("/mnt/sdcard", "/data/media/0", "/storage/self/primary", "/sdcard")


class AdbFailure(EnvironmentFault):
    """A command failed as on a real device: a file is missing, or an app is not installed."""

    def __init__(self, message: str, *, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class UnsupportedCommand(AdbFailure):
    """A command that the simulated device does not support. A real device may support it."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(f"the simulated device does not support 'adb {command}': {why}", code=127)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A file, or a folder if ``data`` is ``None``."""

    data: bytes | None
    time: int
    """Time of the last change, in seconds since 1970."""


name, parent = posixpath.basename, posixpath.dirname


def canonical(path: str) -> str:
    """The absolute path without trailing slash, ``.``, ``..`` or aliases."""
    found = posixpath.normpath("/" + path.lstrip("/"))  # adb's shell starts in the root
    for alias in _ALIASES:
        if found == alias or found.startswith(alias + "/"):
            return SHARED + found[len(alias) :]
    return found


class FileSystem:
    """All files and folders. Its methods take any path."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """``clock`` gives the time of a change, in seconds since 1970."""
        self.entries: dict[str, Entry] = {}
        self._clock = clock

    def get(self, path: str) -> Entry | None:
        return self.entries.get(canonical(path))

    def is_folder(self, path: str) -> bool:
        entry = self.get(path)
        return canonical(path) == "/" or (entry is not None and entry.data is None)

    def is_file(self, path: str) -> bool:
        entry = self.get(path)
        return entry is not None and entry.data is not None

    def children(self, path: str) -> list[str]:
        """Paths of the files and folders directly in a folder, sorted by name."""
        place = canonical(path)
        return sorted(p for p in self.entries if parent(p) == place)

    def walk(self, path: str) -> Iterator[str]:
        """``path`` and everything below it. A folder comes before its contents."""
        place = canonical(path)
        yield place
        yield from sorted(p for p in self.entries if p.startswith(place.rstrip("/") + "/"))

    def read(self, path: str) -> bytes:
        """Contents of a file.

        Raises:
            AdbFailure: there is no such file.
        """
        entry = self.get(path)
        if entry is None:
            raise AdbFailure(f"{path}: No such file or directory")
        if entry.data is None:
            raise AdbFailure(f"{path}: Is a directory")
        return entry.data

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file.

        Raises:
            AdbFailure: its folder does not exist, or the path is a folder.
        """
        place = canonical(path)
        if not self.is_folder(parent(place)):
            raise AdbFailure(f"{path}: No such file or directory")
        if self.is_folder(place):
            raise AdbFailure(f"{path}: Is a directory")
        self.entries[place] = Entry(data, self._clock())

    def make(self, path: str) -> None:
        """Create a folder and those above it, where they do not exist.

        Raises:
            AdbFailure: a file has that name.
        """
        place = canonical(path)
        if self.is_file(place):
            raise AdbFailure(f"mkdir: '{path}': Not a directory")
        if not self.is_folder(place):
            self.make(parent(place))
            self.entries[place] = Entry(None, self._clock())

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its contents."""
        for place in list(self.walk(path)):
            self.entries.pop(place, None)

    def copy(self, source: str, target: str) -> None:
        """Copy a file or a folder to a path that does not exist yet.

        Raises:
            AdbFailure: ``source`` or the parent folder of ``target`` does not exist.
        """
        if self.get(source) is None or not self.is_folder(parent(canonical(target))):
            raise AdbFailure(f"cp: {source}: No such file or directory")
        for path in list(self.walk(source)):
            self.entries[canonical(target) + path[len(canonical(source)) :]] = self.entries[path]
