"""SQLite files as views of the phone's tables.

A file is built from the tables when it is read, and loaded into the tables when it is written.
Each row is a record of the phone, and each column is a field under the app's own name. Rows that
a test inserts with SQL appear on the screen, and records that a user types appear in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from decimal import Decimal

import msgspec

from swarm_ui.environments.androidworld.handset.file_system import AdbFailure
from swarm_ui.environments.phone.state import Device, Row

Value = str | int | float | bytes | None


class Column(msgspec.Struct, frozen=True):
    """A column and the field of the record that it holds."""

    name: str
    sql: str
    """Type and constraints of the column in SQL."""
    field: str
    to_sql: Callable[[str], Value]
    to_field: Callable[[Value], str]
    default: Value
    """Value for a record without this field."""


class SqlTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a database file."""

    name: str
    key: str
    """Column of the record's identity, an ``INTEGER PRIMARY KEY``. ``rowid`` for a table that has
    no such column."""
    columns: tuple[Column, ...]
    phone_table: str = ""
    """Table of the phone with the records. Empty: the table has no rows."""

    def row(self, identity: int, record: Row) -> dict[str, Value]:
        """Convert a record to a row."""
        values: dict[str, Value] = {}
        for column in self.columns:
            text = record.get(column.field)
            values[column.name] = column.default if text is None else column.to_sql(text)
        return {self.key: identity, **values}

    def record(self, row: Mapping[str, Value]) -> Row:
        """A row as a record. NULL values are left out."""
        return {
            column.field: column.to_field(row[column.name])
            for column in self.columns
            if row[column.name] is not None
        }

    def create(self) -> str:
        columns = [f'"{column.name}" {column.sql}' for column in self.columns]
        if self.key != "rowid":
            columns.insert(0, f'"{self.key}" INTEGER PRIMARY KEY AUTOINCREMENT')
        return f'CREATE TABLE "{self.name}" ({", ".join(columns)})'


class Database(msgspec.Struct, frozen=True):
    """A database file."""

    path: str
    tables: tuple[SqlTable, ...]

    def dump(self, device: Device) -> bytes:
        """The contents of the file."""
        with _in_memory() as connection:
            for table in self.tables:
                connection.execute(table.create())
                for identity, record in sorted(device.tables.get(table.phone_table, {}).items()):
                    row = table.row(identity, record)
                    names = ", ".join(f'"{name}"' for name in row)
                    marks = ", ".join("?" * len(row))
                    connection.execute(
                        f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', list(row.values())
                    )
            connection.commit()
            return connection.serialize()

    def load(self, device: Device, data: bytes) -> None:
        """Replace the records by the rows of another file.

        Raises:
            AdbFailure: the data are not an SQLite file, or a table or column is missing.
        """
        try:
            with _in_memory(data) as connection:
                self._take(device, connection)
        except sqlite3.Error as error:
            raise AdbFailure(f"{self.path}: {error}") from error

    def run(self, device: Device, sql: str) -> str:
        """Execute an SQL statement. Returns the output of the ``sqlite3`` program."""
        lines: list[str] = []
        try:
            with _in_memory(self.dump(device)) as connection:
                for row in connection.execute(sql):
                    lines.append("|".join("" if value is None else str(value) for value in row))
                connection.commit()
                self._take(device, connection)
        except sqlite3.Error as error:
            raise AdbFailure(f"Error: in prepare, {error}") from error
        return "".join(f"{line}\n" for line in lines)

    def clear(self, device: Device) -> None:
        for table in self.tables:
            if table.phone_table:
                device.tables = {**device.tables, table.phone_table: {}}

    def _take(self, device: Device, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        for table in self.tables:
            names = ", ".join(f'"{c}"' for c in (table.key, *(x.name for x in table.columns)))
            rows = connection.execute(f'SELECT {names} FROM "{table.name}" ORDER BY 1').fetchall()
            if not table.phone_table:
                continue
            # A record keeps its fields that are in no column of the file.
            before = device.tables.get(table.phone_table, {})
            stored = {column.field for column in table.columns}
            found: dict[int, Row] = {}
            try:
                for row in rows:
                    key = int(row[table.key])
                    kept = {k: v for k, v in before.get(key, {}).items() if k not in stored}
                    found[key] = {**kept, **table.record(row)}
            except ValueError as error:
                raise AdbFailure(f"{self.path}: a row of {table.name}: {error}") from error
            device.tables = {**device.tables, table.phone_table: found}
            device.next_row = max([device.next_row, *(key + 1 for key in found)])


def single_table(
    path: str, table: str, key: str, phone_table: str, columns: tuple[Column, ...]
) -> Database:
    """A database file with one table."""
    return Database(
        path, (SqlTable(name=table, key=key, columns=columns, phone_table=phone_table),)
    )


@contextmanager
def _in_memory(data: bytes = b"") -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        if data:
            connection.deserialize(data)
        yield connection


def text(name: str, field: str = "", default: str | None = "") -> Column:
    return Column(name, "TEXT", field or name, str, str, default)


def integer(
    name: str,
    field: str = "",
    default: int | None = 0,
    to_sql: Callable[[str], Value] = int,
    to_field: Callable[[Value], str] = str,
) -> Column:
    return Column(name, "INTEGER", field or name, to_sql, to_field, default)


def real(name: str, field: str = "", default: float = 0.0) -> Column:
    return Column(name, "REAL", field or name, float, str, default)


def integers(names: str, default: int = 0) -> list[Column]:
    """Columns under the names of their fields, which are separated by spaces."""
    return [integer(name, "", default) for name in names.split()]


def texts(names: str) -> list[Column]:
    return [text(name) for name in names.split()]


def reals(names: str) -> list[Column]:
    return [real(name) for name in names.split()]


def flag(name: str, field: str = "") -> Column:
    """``off`` or ``on`` on the phone, stored as 0 or 1."""
    return integer(name, field, 0, lambda t: int(t == "on"), lambda v: "on" if v else "off")


def cents(name: str, field: str) -> Column:
    """An amount such as ``12.50`` on the phone, stored in hundredths."""
    return integer(
        name, field, 0, lambda t: round(Decimal(t) * 100), lambda v: f"{int(str(v)) / 100:.2f}"
    )


def numbered(name: str, field: str, names: tuple[str, ...]) -> Column:
    """One of ``names`` on the phone, stored as its position, counted from 1."""
    places = range(1, len(names) + 1)  # its method ``index`` refuses other numbers

    def to_field(value: Value) -> str:
        return names[places.index(int(str(value)))]

    return integer(name, field, 1, lambda t: names.index(t) + 1, to_field)


def blob(name: str) -> Column:
    """Bytes, written as hexadecimal digits on the phone."""
    return Column(name, "BLOB", name, bytes.fromhex, lambda v: bytes(v).hex(), b"")  # type: ignore[arg-type]
