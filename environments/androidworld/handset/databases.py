"""SQLite files as views of the phone's tables: read them and they are written, write and they load.

A file's rows are records of the phone, its columns their fields under the app's own names, so what
a test bench inserts with SQL is on the screen, and what is typed on the screen is in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from decimal import Decimal

import msgspec

from swarm_ui.environments.androidworld.handset.errors import AdbFailure
from swarm_ui.environments.phone.device.device import Device, Row

Value = str | int | float | bytes | None


class Column(msgspec.Struct, frozen=True):
    """One column, and the field it shows."""

    name: str
    sql: str
    """Type and constraints."""
    field: str
    to_sql: Callable[[str], Value]
    to_field: Callable[[Value], str]
    default: Value
    """Where a record has no such field."""


class SqlTable(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a file."""

    name: str
    key: str
    """Column of the identity, an ``INTEGER PRIMARY KEY``."""
    columns: tuple[Column, ...]
    of: str = ""
    """Table of the phone that it shows; empty: it holds nothing."""
    key_last: bool = False
    """The identity is the last column instead of the first."""

    def row(self, identity: int, record: Row) -> dict[str, Value]:
        """A record as a row."""
        values: dict[str, Value] = {}
        for column in self.columns:
            text = record.get(column.field)
            values[column.name] = column.default if text is None else column.to_sql(text)
        own: dict[str, Value] = {self.key: identity}
        return {**values, **own} if self.key_last else {**own, **values}

    def record(self, row: Mapping[str, Value]) -> Row:
        """A row as a record; what is NULL is left out."""
        return {
            column.field: column.to_field(row[column.name])
            for column in self.columns
            if row[column.name] is not None
        }

    def create(self) -> str:
        key = f'"{self.key}" INTEGER PRIMARY KEY AUTOINCREMENT'
        columns = [f'"{column.name}" {column.sql}' for column in self.columns]
        parts = [*columns, key] if self.key_last else [key, *columns]
        return f'CREATE TABLE "{self.name}" ({", ".join(parts)})'


class Database(msgspec.Struct, frozen=True):
    """One file."""

    path: str
    tables: tuple[SqlTable, ...]

    def dump(self, device: Device) -> bytes:
        """The file as it would be now."""
        connection = sqlite3.connect(":memory:")
        try:
            for table in self.tables:
                connection.execute(table.create())
                for identity, record in sorted(device.tables.get(table.of, {}).items()):
                    row = table.row(identity, record)
                    names = ", ".join(f'"{name}"' for name in row)
                    marks = ", ".join("?" * len(row))
                    connection.execute(
                        f'INSERT INTO "{table.name}" ({names}) VALUES ({marks})', list(row.values())
                    )
            connection.commit()
            return connection.serialize()
        finally:
            connection.close()

    def load(self, device: Device, data: bytes) -> None:
        """Take over the rows of a file that was put in this one's place.

        Raises:
            AdbFailure: it is no SQLite file, or lacks one of the tables or columns.
        """
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(data)
            self._take(device, connection)
        except sqlite3.Error as error:
            raise AdbFailure(f"{self.path}: {error}") from error
        finally:
            connection.close()

    def run(self, device: Device, sql: str) -> str:
        """Execute statements as the ``sqlite3`` program does; returns what it prints."""
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(self.dump(device))
            lines: list[str] = []
            for statement in _statements(sql):
                for row in connection.execute(statement):
                    lines.append("|".join("" if value is None else str(value) for value in row))
            connection.commit()
            self._take(device, connection)
            return "".join(f"{line}\n" for line in lines)
        except sqlite3.Error as error:
            raise AdbFailure(f"Error: in prepare, {error}") from error
        finally:
            connection.close()

    def clear(self, device: Device) -> None:
        for table in self.tables:
            if table.of:
                device.tables = {**device.tables, table.of: {}}

    def _take(self, device: Device, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        for table in self.tables:
            names = ", ".join(f'"{c}"' for c in (table.key, *(x.name for x in table.columns)))
            rows = connection.execute(f'SELECT {names} FROM "{table.name}" ORDER BY 1').fetchall()
            if not table.of:
                continue
            # A row that the file shows as it was keeps the fields that the file does not know.
            before = device.tables.get(table.of, {})
            found = {
                int(row[table.key]): {**before.get(int(row[table.key]), {}), **table.record(row)}
                for row in rows
            }
            device.tables = {**device.tables, table.of: found}
            device.next_row = max([device.next_row, *(key + 1 for key in found)])


def _statements(sql: str) -> list[str]:
    """Statements apart, as far as their semicolons end them."""
    found: list[str] = []
    rest = ""
    for part in sql.split(";"):
        rest = f"{rest};{part}" if rest else part
        if rest.strip() and sqlite3.complete_statement(rest + ";"):
            found.append(rest)
            rest = ""
    return [*found, rest] if rest.strip() else found


def text(name: str, field: str = "", default: str | None = "") -> Column:
    return Column(name, "TEXT", field or name, str, str, default)


def integer(name: str, field: str = "", default: int | None = 0) -> Column:
    return Column(name, "INTEGER", field or name, int, str, default)


def real(name: str, field: str = "", default: float = 0.0) -> Column:
    return Column(name, "REAL", field or name, float, repr, default)


def blob(name: str, field: str = "") -> Column:
    return Column(name, "BLOB", field or name, bytes.fromhex, _hex, b"")


def flag(name: str, field: str = "") -> Column:
    """0 or 1, ``off`` or ``on`` on the phone."""
    return Column(name, "INTEGER", field or name, _from_switch, _to_switch, 0)


def cents(name: str, field: str) -> Column:
    """An amount in hundredths, shown as ``12.50``."""
    return Column(name, "INTEGER", field, _to_cents, _from_cents, 0)


def numbered(name: str, field: str, names: tuple[str, ...]) -> Column:
    """A choice stored as its place among ``names``, counted from 1."""
    return Column(
        name,
        "INTEGER",
        field,
        lambda text: names.index(text) + 1,
        lambda value: names[int(str(value)) - 1],
        1,
    )


def _hex(value: Value) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _to_cents(text: str) -> int:
    return int((Decimal(text) * 100).to_integral_value())


def _from_cents(value: Value) -> str:
    return f"{int(str(value)) / 100:.2f}"


def _from_switch(text: str) -> int:
    return int(text == "on")


def _to_switch(value: Value) -> str:
    return "on" if value else "off"
