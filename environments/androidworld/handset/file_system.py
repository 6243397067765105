"""The file system of the simulated device in memory, and the data of apps as SQLite files in it.

The screens read a database's file and the touches change it, so what a test puts into the file is
on the screen, and what a user types is in the file.
"""

from __future__ import annotations

import posixpath
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.errors import EnvironmentFault

if TYPE_CHECKING:
    from swarm_ui.environments.androidworld.handset.handset import Handset

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


# -- the data of apps ------------------------------------------------------------------------------

Row = Mapping[str, Any]
"""A row of a table by the names of its columns."""


class Database(msgspec.Struct, frozen=True):
    """A database file."""

    path: str
    schema: str
    """The statements that create its tables."""

    def empty(self) -> bytes:
        """The contents of a new file."""
        return _empty(self.schema)

    def rows(self, handset: Handset, table: str) -> dict[int, Row]:
        """All rows of a table by ``rowid``; none if the file does not exist."""
        with self._opened(handset) as connection:
            found = connection.execute(f'SELECT rowid AS "", * FROM "{table}" ORDER BY 1')
            names = [column[0] for column in found.description[1:]]
            return {key: dict(zip(names, row, strict=True)) for key, *row in found}

    def insert(self, handset: Handset, table: str, row: Row) -> int:
        """Add a row; columns that it does not give have their defaults. Returns its ``rowid``."""
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        with self._opened(handset) as connection:
            sql = f'INSERT INTO "{table}" ({names}) VALUES ({marks})'
            return int(connection.execute(sql, list(row.values())).lastrowid or 0)

    def run(self, handset: Handset, sql: str) -> str:
        """Execute an SQL statement. Returns the output of the ``sqlite3`` program.

        Raises:
            AdbFailure: the statement is wrong.
        """
        try:
            with self._opened(handset) as connection:
                rows = connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise AdbFailure(f"Error: in prepare, {error}") from error
        lines = ("|".join("" if value is None else str(value) for value in row) for row in rows)
        return "".join(f"{line}\n" for line in lines)

    @contextmanager
    def _opened(self, handset: Handset) -> Iterator[sqlite3.Connection]:
        """A connection; what is changed is written at the end of the block."""
        entry = handset.files.get(self.path)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize((entry and entry.data) or self.empty())
            yield connection
            connection.commit()
            if connection.total_changes:
                handset.files.make(parent(self.path))
                handset.files.write(self.path, connection.serialize())


@cache
def _empty(schema: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return connection.serialize()


def table(
    name: str, key: str = "", *, text: str = "", integer: str = "", real: str = "", other: str = ""
) -> str:
    """The statement that creates a table.

    Args:
        name: its name.
        key: its primary key, a number; empty: it has none.
        text, integer, real: names of columns, empty or 0 by default.
        other: further columns in SQL.
    """
    made = [f"{key} INTEGER PRIMARY KEY AUTOINCREMENT"] if key else []
    made += [f"\"{column}\" TEXT DEFAULT ''" for column in text.split()]
    made += [f'"{column}" INTEGER DEFAULT 0' for column in integer.split()]
    made += [f'"{column}" REAL DEFAULT 0' for column in real.split()]
    return f"CREATE TABLE {name} ({', '.join([*made, other] if other else made)});"
