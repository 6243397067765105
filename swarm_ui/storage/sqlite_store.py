"""Many runs in one SQLite file."""

from __future__ import annotations

import datetime
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.storage.journal import (
    LineJournal,
    check_name,
    check_same,
    is_closed,
    is_open,
    no_run,
    not_kept,
    now,
    opened,
)
from swarm_ui.storage.protocol import Head, Journal, KeptRun, RunRecord
from swarm_ui.storage.run_lines import Past, escape, first_line, read_first, unescape
from swarm_ui.storage.run_lock import claim, file_name
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
    SELECT name, begun, count(line), sum(line LIKE '{"finished":%'), max(at),
        (SELECT line LIKE '{"finished":%' FROM lines WHERE run = runs.id ORDER BY place DESC
         LIMIT 1)
    FROM runs LEFT JOIN lines ON lines.run = runs.id GROUP BY runs.id ORDER BY begun, name
"""


class SQLiteStore:
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
        self._path, self._patience = Path(path), patience
        self._locks = self._path.with_name(self._path.name + "-locks")
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self._closed = False
        self._db = self._connect()
        try:
            with self._readable():
                _prepare(self._db, self._path, fsync, patience)
        except BaseException:
            self._db.close()
            raise
        # One thread: SQLite allows one writer at a time, and large batches are more efficient.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="swarm-ui-store")
        self._batches = Batches(self._pool, self._commit)
        self._end = weakref.finalize(self, _end, self._pool, self._db)

    async def open(self, head: Head) -> Journal:
        """The journal of a run; see :class:`~swarm_ui.storage.protocol.Store`."""
        check_name(head.run)
        if self._closed:
            raise is_closed(str(self._path))
        return await opened(self._pool, self._take_up, head)

    def runs(self) -> list[KeptRun]:
        """All runs, the oldest first."""
        with self._readable(), closing(self._connect()) as db:
            rows = db.execute(_LIST).fetchall()
        return [
            KeptRun(
                name=unescape(name),
                calls=count - (ends or 0),
                finished=bool(finished),
                begun=_time(begun),
                written=_time(begun if at is None else at),
            )
            for name, begun, count, ends, at, finished in rows
        ]

    def read(self, run: str) -> RunRecord:
        """Read a run without executing it, also while it is running.

        Raises:
            ConfigError: there is no run of that name.
            TraceError: the file is damaged.
        """
        with self._readable(), closing(self._connect()) as db:
            db.execute("BEGIN")  # head and lines of one moment
            found = _find(db, run)
            if found is None:
                raise no_run(run, str(self._path))
            number, line = found
            past = self._past(db, run, number)
        head = read_first(line, self._where(run)).head
        return RunRecord(head=head, calls=tuple(past.spoken.values()), finished=past.finished)

    def delete(self, run: str) -> None:
        """Delete a run. Raises ``ConfigError`` if there is no run of that name, or it is open."""
        with self._claimed(run) as file, self._readable(), closing(self._connect()) as db:
            try:
                with _transaction(db):
                    found = _find(db, run)
                    if found is None:
                        raise no_run(run, str(self._path))
                    db.execute("DELETE FROM lines WHERE run = ?", (found[0],))
                    db.execute("DELETE FROM runs WHERE id = ?", (found[0],))
            finally:
                self._give_free(file, file_name(run))

    def close(self) -> None:
        """Finish pending writes. A run that is still active fails at its next call."""
        self._closed = True
        self._pool.shutdown()
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _where(self, run: str) -> str:
        return f"{self._path}, run {run!r}"

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(
                self._path, timeout=self._patience, isolation_level=None, check_same_thread=False
            )
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

    @contextmanager
    def _claimed(self, run: str) -> Iterator[FileIO]:
        """A locked file that marks the run as open."""
        name = file_name(run)
        with self._lock:
            if name in self._open:
                raise is_open(run, str(self._path))
            self._open.add(name)
        file = None
        try:
            self._locks.mkdir(exist_ok=True)
            file = claim(self._locks / name)
            if file is None:
                raise is_open(run, str(self._path))
            yield file
        except BaseException as error:
            if file is not None:
                self._give_free(file, name)
            if isinstance(error, OSError):
                raise not_kept(str(self._locks), error) from error
            raise
        finally:
            if file is None:
                self._open.discard(name)

    def _give_free(self, file: FileIO, name: str) -> None:
        if not file.closed:
            with suppress(OSError):  # deleted while it is ours: who waits for it takes a new one
                os.unlink(self._locks / name)
            file.close()
        self._open.discard(name)

    def _take_up(self, head: Head) -> LineJournal:
        """Find or create a run and read its calls, in the writing thread."""
        run, begun = head.run, now()
        first = first_line(head, begun)
        with self._claimed(run) as file, self._readable():
            with _transaction(self._db):
                found = _find(self._db, run)
                if found is None:
                    insert = "INSERT INTO runs (name, begun, head) VALUES (?, ?, ?) RETURNING id"
                    row = (escape(run), begun.timestamp(), first.decode())
                    (number,) = self._db.execute(insert, row).fetchone()
                else:
                    number = found[0]
                    check_same(read_first(found[1], self._where(run)).head, head, str(self._path))
            past = self._past(self._db, run, number)
            return LineJournal(past, _Rows(self, number, file, file_name(run)))

    def _past(self, db: sqlite3.Connection, run: str, number: int) -> Past:
        past = Past()
        rows = db.execute("SELECT line FROM lines WHERE run = ? ORDER BY place", (number,))
        past.read((line.encode() for (line,) in rows), self._where(run), 2)
        return past

    def _commit(self, rows: list[_Row]) -> None:
        with _transaction(self._db):
            self._db.executemany("INSERT INTO lines (run, at, line) VALUES (?, ?, ?)", rows)


class _Row(NamedTuple):
    run: int
    at: float
    line: str


class _Rows:
    """Writes the lines of one run to the table."""

    def __init__(self, store: SQLiteStore, run: int, file: FileIO, name: str) -> None:
        self._store, self._run, self._file, self._name = store, run, file, name
        self._last: threading.Event | None = None

    async def append(self, line: bytes) -> None:
        store = self._store
        if store._closed:
            raise is_closed(str(store._path))
        try:
            row = _Row(self._run, time.time(), line.decode())
            written, self._last = store._batches.add(row)
            await written
        except sqlite3.Error as error:
            raise not_kept(str(store._path), error) from error

    def close(self) -> None:
        if self._last is not None:
            self._last.wait()
        self._store._give_free(self._file, self._name)


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
                "Go on with the swarm-ui that made it"
            )
    _log_ahead(db, path, patience)
    db.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")


def _log_ahead(db: sqlite3.Connection, path: Path, patience: float) -> None:
    """Switch to the write-ahead log. SQLite does not wait here by itself for other processes."""
    until = time.monotonic() + patience
    while True:
        try:
            (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
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
    """All or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _find(db: sqlite3.Connection, run: str) -> tuple[int, bytes] | None:
    """A run's number and first line."""
    row = db.execute("SELECT id, head FROM runs WHERE name = ?", (escape(run),)).fetchone()
    return None if row is None else (row[0], row[1].encode())


def _time(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC)


def _end(pool: ThreadPoolExecutor, db: sqlite3.Connection) -> None:
    pool.shutdown(wait=False)  # no write is in progress: a writer holds the store
    db.close()
