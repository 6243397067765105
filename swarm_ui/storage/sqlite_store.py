"""Many runs in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.storage.line_store import LineJournal, LineStore, not_kept, now
from swarm_ui.storage.protocol import Head, KeptRun
from swarm_ui.storage.run_lines import (
    Past,
    check_same,
    escape,
    file_name,
    first_line,
    read_first,
    unescape,
)
from swarm_ui.storage.write_batches import Batches

_MARK = 0x73776172  # "swar": identifies our files
_VERSION = 1
_SCHEMA = (
    # AUTOINCREMENT: a deleted run's number is never given again.
    "CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, "
    "begun REAL NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE lines (place INTEGER PRIMARY KEY, run INTEGER NOT NULL, at REAL NOT NULL, "
    "line TEXT NOT NULL)",
    "CREATE INDEX lines_of_run ON lines (run)",
    f"PRAGMA application_id = {_MARK}",
    f"PRAGMA user_version = {_VERSION}",
)
_LIST = """
    SELECT name, begun, count(line), 
        sum(line LIKE '{"finished":%' OR line LIKE '{"question":%'), max(at),
        (SELECT line LIKE '{"finished":%' FROM lines WHERE run = runs.id ORDER BY place DESC
         LIMIT 1)
    FROM runs LEFT JOIN lines ON lines.run = runs.id GROUP BY runs.id ORDER BY begun, name
"""


class SQLiteStore(LineStore):
    """Keeps any number of runs in one SQLite file, also for several processes at once.

    A call that was written survives ``kill -9`` at any moment. With ``fsync`` it also survives a
    power cut, if the disk honours it; without it, the last calls before a power cut may be
    lost, and are made again. Calls are written in a thread, and all calls that finish while
    the disk is busy share the next transaction, also those of different runs.

    Next to the file are SQLite's own ``-wal`` and ``-shm`` files and a folder ``-locks`` with a
    file for each open run. A run can be open only once, until it has finished or its process has
    died (``flock``; on systems without it, only a second opening by the same store object is
    detected). The write-ahead log needs a local disk, not a network file system. Do not use a
    store in a forked process.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, fsync: bool = True, patience: float = 30.0
    ) -> None:
        """
        Args:
            path: path of the file; created if it does not exist.
            fsync: wait for the disk after each transaction.
            patience: seconds to wait while another process writes.

        Raises:
            ConfigError: the file cannot be opened or written.
            TraceError: it is not a store of this release.
        """
        # One thread: SQLite allows one writer at a time, and large batches are more efficient.
        super().__init__(path, 1)
        self._patience = patience
        self._locks = self._path.with_name(self._path.name + "-locks")
        self._db = self._connect()
        try:
            with self._readable():
                _prepare(self._db, self._path, fsync, patience)
        except BaseException:  # re-raised: a store that was not made leaves no connection
            self._db.close()
            raise
        self._batches = Batches(self._pool, self._commit)
        self._end = weakref.finalize(self, _end, self._pool, self._db)

    def runs(self) -> list[KeptRun]:
        """All runs, the oldest first."""
        with self._readable(), closing(self._connect()) as db:
            rows = db.execute(_LIST).fetchall()
        try:
            return [
                KeptRun(
                    name=unescape(name.decode()),
                    calls=count - (others or 0),
                    finished=bool(finished),
                    begun=datetime.fromtimestamp(begun, UTC),
                    written=datetime.fromtimestamp(begun if at is None else at, UTC),
                )
                for name, begun, count, others, at, finished in rows
            ]
        except (AttributeError, TypeError, ValueError, OverflowError, OSError) as error:
            raise TraceError(f"{self._path}: its list of runs is damaged: {error}") from error

    def delete(self, run: str) -> None:
        """Delete a run. Raises ``ConfigError`` if there is no run of that name, or it is open."""
        with self._claimed(run) as file, self._readable(), closing(self._connect()) as db:
            with _transaction(db):
                found = _find(db, run)
                if found is None:
                    raise self._no_run(run)
                db.execute("DELETE FROM lines WHERE run = ?", (found[0],))
                db.execute("DELETE FROM runs WHERE id = ?", (found[0],))
            self._give_free(run, file)

    def close(self) -> None:
        """Finish pending writes. A run that is still active fails at its next call."""
        super().close()
        self._end()

    def _where(self, run: str) -> str:
        return f"{self._path}, run {run!r}"

    def _lock_file(self, run: str) -> Path:
        return self._locks / file_name(run)

    def _connect(self) -> sqlite3.Connection:
        try:
            db = sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
            db.text_factory = bytes  # so that text which is no UTF-8 is an error like any other
            return db
        except sqlite3.Error as error:
            raise ConfigError(f"cannot open the store '{self._path}': {error}") from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Converts errors of SQLite to errors with a remedy."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise not_kept(str(self._path), error) from error
        except sqlite3.DatabaseError as error:
            raise TraceError(
                f"{self._path}: {error}. If it is a store, it is damaged: SQLite's shell may "
                "save most of it (.recover); if not, choose another path"
            ) from error

    def _give_free(self, run: str, file: FileIO | None) -> None:
        if file is not None and not file.closed:
            with suppress(OSError):  # deleted while locked: a waiting process opens a new file
                os.unlink(self._lock_file(run))
        super()._give_free(run, file)

    def _lines(self, run: str) -> tuple[bytes, list[bytes]] | None:
        with self._readable(), closing(self._connect()) as db:
            db.execute("BEGIN")  # head and lines from one snapshot
            found = _find(db, run)
            return None if found is None else (found[1], list(_lines_of(db, found[0])))

    def _take_up(self, head: Head) -> LineJournal:
        run, begun, past = head.run, now(), Past()
        first, where = first_line(head, begun), self._where(head.run)
        with self._claimed(run) as file, self._readable():
            with _transaction(self._db):
                found = _find(self._db, run)
                if found is None:
                    insert = "INSERT INTO runs (name, begun, head) VALUES (?, ?, ?) RETURNING id"
                    row = (escape(run), begun.timestamp(), first.decode())
                    (number,) = self._db.execute(insert, row).fetchone()
                else:
                    number = found[0]
                    check_same(read_first(found[1], where).head, head, str(self._path))
            past.read(_lines_of(self._db, number), where, 2)
            return LineJournal(
                self,
                run,
                past,
                file,
                lambda line: self._batches.add((number, time.time(), line.decode())),
            )

    def _commit(self, rows: list[tuple[int, float, str]]) -> None:
        with _transaction(self._db):
            self._db.executemany("INSERT INTO lines (run, at, line) VALUES (?, ?, ?)", rows)


def _prepare(db: sqlite3.Connection, path: Path, fsync: bool, patience: float) -> None:
    """Create the tables, or check that they are those of a store."""
    with _transaction(db):
        (mark,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not mark:
            for statement in _SCHEMA:
                db.execute(statement)
        elif mark != _MARK:
            raise TraceError(
                f"{path}: this SQLite database was not created by swarm-ui; choose another path"
            )
        elif version != _VERSION:
            raise TraceError(
                f"{path}: a store of version {version}; this release reads {_VERSION}. "
                "Use the version of swarm-ui that created it"
            )
    _log_ahead(db, path, patience)
    db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")


def _log_ahead(db: sqlite3.Connection, path: Path, patience: float) -> None:
    """Switch to the write-ahead log. SQLite does not wait here by itself for other processes."""
    until = time.monotonic() + patience
    while True:
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0].decode()
            break
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise ConfigError(
            f"{path}: the file system cannot keep a write-ahead log (mode '{mode}'); "
            "put the store on a local disk"
        )


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:  # re-raised: an interrupt must not leave half a transaction
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _find(db: sqlite3.Connection, run: str) -> tuple[int, bytes] | None:
    """A run's number and first line."""
    row = db.execute("SELECT id, head FROM runs WHERE name = ?", (escape(run),)).fetchone()
    return None if row is None else (row[0], _line(row[1]))


def _lines_of(db: sqlite3.Connection, number: int) -> Iterable[bytes]:
    rows = db.execute("SELECT line FROM lines WHERE run = ? ORDER BY place", (number,))
    return (_line(line) for (line,) in rows)


def _line(value: object) -> bytes:
    """A line of the table. A value of another type counts as an unreadable line."""
    return value if isinstance(value, bytes) else repr(value).encode()


def _end(pool: ThreadPoolExecutor, db: sqlite3.Connection) -> None:
    pool.shutdown(wait=False)  # no write is in progress: a writer holds the store
    db.close()
