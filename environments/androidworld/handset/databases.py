"""The data of apps, kept as SQLite files.

The screens read a file and the touches change it, so what a test puts into the file is on the
screen, and what a user types is in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from swarm_ui.environments.androidworld.handset.file_system import AdbFailure, parent

if TYPE_CHECKING:
    from swarm_ui.environments.androidworld.handset.handset import Handset

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

    def delete(self, handset: Handset, table: str, key: int) -> None:
        with self._opened(handset) as connection:
            connection.execute(f'DELETE FROM "{table}" WHERE rowid = ?', [key])

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
