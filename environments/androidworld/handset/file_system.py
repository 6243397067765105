"""The errors of commands for the simulated device, and its file system in memory.

The file system is immutable, so copies of a device can share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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


class UnsupportedArguments(AdbFailure):
    """A program of the shell does not support its arguments. The message lists those it does."""


class UnsupportedCommand(AdbFailure):
    """A command that the simulated device does not support. A real device may support it."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(f"the simulated device does not support 'adb {command}': {why}", code=127)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A file, or a folder if ``data`` is ``None``."""

    data: bytes | None
    time: int
    """Time of the last change, in seconds since 1970."""


def canonical(path: str) -> str:
    """The absolute path without trailing slash, ``.``, ``..`` or aliases."""
    if not path.startswith("/"):
        path = "/" + path  # adb's shell starts in the root
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    found = "/" + "/".join(parts)
    for alias in _ALIASES:
        if found == alias or found.startswith(alias + "/"):
            return SHARED + found[len(alias) :]
    return found


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def name(path: str) -> str:
    return path.rpartition("/")[2]


class FileSystem(msgspec.Struct, frozen=True):
    """All files and folders by path. Every method takes canonical paths."""

    entries: Mapping[str, Entry]

    def get(self, path: str) -> Entry | None:
        return self.entries.get(path)

    def is_folder(self, path: str) -> bool:
        entry = self.entries.get(path)
        return path == "/" or (entry is not None and entry.data is None)

    def is_file(self, path: str) -> bool:
        entry = self.entries.get(path)
        return entry is not None and entry.data is not None

    def children(self, path: str) -> list[str]:
        """Paths of the files and folders directly in a folder, sorted by name."""
        return sorted(p for p in self.entries if parent(p) == path)

    def walk(self, path: str) -> Iterator[str]:
        """``path`` and everything below it. A folder comes before its contents."""
        prefix = path.rstrip("/") + "/"
        yield path
        yield from sorted(p for p in self.entries if p.startswith(prefix))

    def write(self, path: str, data: bytes, time: int) -> FileSystem:
        """Create or replace a file. Returns the new file system.

        Raises:
            AdbFailure: its folder does not exist, or the path is a folder.
        """
        if not self.is_folder(parent(path)):
            raise AdbFailure(f"{path}: No such file or directory")
        if self.is_folder(path):
            raise AdbFailure(f"{path}: Is a directory")
        return FileSystem({**self.entries, path: Entry(data, time)})

    def make(self, path: str, time: int) -> FileSystem:
        """Create a folder and those above it, where they do not exist. Returns the new file system.

        Raises:
            AdbFailure: a file has that name.
        """
        new = dict(self.entries)
        while path != "/" and path not in new:
            new[path] = Entry(None, time)
            path = parent(path)
        if path != "/" and new[path].data is not None:
            raise AdbFailure(f"mkdir: '{path}': Not a directory")
        return FileSystem(new)

    def remove(self, path: str) -> FileSystem:
        """Remove a file, or a folder with its contents. Returns the new file system."""
        gone = set(self.walk(path))
        return FileSystem({p: e for p, e in self.entries.items() if p not in gone})

    def move(self, source: str, target: str) -> FileSystem:
        """Move a file or a folder. Returns the new file system.

        Raises:
            AdbFailure: ``source`` or the parent folder of ``target`` does not exist.
        """
        if source not in self.entries:
            raise AdbFailure(f"mv: {source}: No such file or directory")
        if not self.is_folder(parent(target)):
            raise AdbFailure(f"mv: {target}: No such file or directory")
        moved: dict[str, Entry] = {}
        for path, entry in self.entries.items():
            inside = path == source or path.startswith(source + "/")
            moved[target + path[len(source) :] if inside else path] = entry
        return FileSystem(moved)
