"""A directory of runs, one file each, readable with a text editor."""

from __future__ import annotations

import datetime
import os
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.storage.durable import LineFile, sync_folder
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
from swarm_ui.storage.run_lines import Past, first_line, is_end, may_begin, read_first, read_name
from swarm_ui.storage.run_lock import claim, file_name
from swarm_ui.storage.write_batches import Batches

_THREADS = (
    16  # number of runs that wait for the disk concurrently; file systems commit them together
)


class DirectoryStore:
    """Keeps each run in a separate file, ``<name>-<hash>.jsonl``, to which lines are appended.

    A call that was written survives ``kill -9`` at any moment. With ``fsync`` it also survives a
    power cut, if the disk honours it; without it, the last seconds before a power cut may
    be lost, and their calls are made again. A truncated line counts as not written.

    With ``fsync`` calls are written in a thread, and those of a run that end while the disk is
    busy share the next write, so that neither the event loop nor other runs wait for the disk.

    A run can be open only once: opening it a second time, also from another process, is an error
    until the first run has finished or its process has died. This needs ``flock``; on systems
    without it (Windows), and on network file systems that do not support it, only a second opening
    by the same store object is detected.

    Examples:
        ``with DirectoryStore("runs") as store: team.run_sync(screen, run_id="mon", store=store)``
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: bool = True) -> None:
        """
        Args:
            folder: folder of the store; created if it does not exist.
            fsync: wait for the disk after each call. That adds half a millisecond to a call on a
                virtual disk and a few on others, which is little compared with the call of a
                model. Without it, a write takes about 15 microseconds.

        Raises:
            ConfigError: the folder cannot be created.
        """
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot create the store '{self._folder}': {error}") from error
        self._fsync = fsync
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self._closed = False
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="swarm-ui-store")
        weakref.finalize(self, self._pool.shutdown, wait=False)

    async def open(self, head: Head) -> Journal:
        """The journal of a run; see :class:`~swarm_ui.storage.protocol.Store`."""
        check_name(head.run)
        if self._closed:
            raise is_closed(str(self._folder))
        return await opened(self._pool, self._take_up, head)

    def runs(self) -> list[KeptRun]:
        """All runs, the oldest first. Raises ``TraceError`` if a file is not a run's."""
        found = [run for path in self._folder.glob("*.jsonl") if (run := _summary(path))]
        return sorted(found, key=lambda run: (run.begun, run.name))

    def read(self, run: str) -> RunRecord:
        """Read a run without executing it, also while it is running.

        Raises:
            ConfigError: there is no run of that name.
            TraceError: its file is damaged.
        """
        path = self._path(run)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        lines = data.split(b"\n")[:-1]
        if not lines:
            raise no_run(run, str(self._folder))
        head = read_first(lines[0], str(path)).head
        past = Past()
        past.read(lines[1:], str(path), 2)
        return RunRecord(head=head, calls=tuple(past.spoken.values()), finished=past.finished)

    def delete(self, run: str) -> None:
        """Delete a run. Raises ``ConfigError`` if there is no run of that name, or it is open."""
        path = self._path(run)
        if not path.exists():
            raise no_run(run, str(self._folder))
        with self._claimed(run) as file:
            if os.name == "nt":
                file.close()  # what is open cannot be deleted there
            path.unlink()
            file.close()

    def close(self) -> None:
        """Finish pending writes. A run that is still active fails at its next call."""
        self._closed = True
        self._pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _path(self, run: str) -> Path:
        return self._folder / f"{file_name(run)}.jsonl"

    @contextmanager
    def _claimed(self, run: str) -> Iterator[FileIO]:
        """The locked file of a run; it is unlocked if the block raises or closes it."""
        path, name = self._path(run), file_name(run)
        with self._lock:
            if name in self._open:
                raise is_open(run, str(path))
            self._open.add(name)
        file = None
        try:
            file = claim(path)
            if file is None:
                raise is_open(run, str(path))
            yield file
        except BaseException:
            if file is not None:
                file.close()
            raise
        finally:
            if file is None or file.closed:
                self._open.discard(name)

    def _take_up(self, head: Head) -> LineJournal:
        """Open and read a run's file, or create it."""
        where = str(self._path(head.run))
        first = first_line(head, now())
        try:
            with self._claimed(head.run) as file:
                size, past = _load(file, head, where)
                lines = _File(self, file, file_name(head.run), where, size)
                if size == 0:
                    lines.put([first])
                    if self._fsync:
                        sync_folder(self._folder)
                return LineJournal(past, lines)
        except OSError as error:
            raise not_kept(where, error) from error


class _File:
    """Writes the lines of one run to its file."""

    def __init__(self, store: DirectoryStore, file: FileIO, name: str, where: str, size: int):
        self._store, self._name, self._where = store, name, where
        self._lines = LineFile(file, end=size, fsync=store._fsync)
        self._broken: Exception | None = None
        self._last: threading.Event | None = None
        self._batches = Batches(store._pool, self.put) if store._fsync else None

    async def append(self, line: bytes) -> None:
        if self._store._closed:
            raise is_closed(self._where)
        try:
            if self._batches is None:
                self.put([line])
            else:
                written, self._last = self._batches.add(line)
                await written
        except OSError as error:
            raise not_kept(self._where, error) from error

    def put(self, lines: list[bytes]) -> None:
        """Write all of these lines or none. After an ``OSError`` every later call fails too."""
        if self._broken is not None:
            raise self._broken
        try:
            self._lines.extend(lines)
        except OSError as error:
            self._broken = error
            raise

    def close(self) -> None:
        if self._last is not None:
            self._last.wait()
        self._lines.close()
        self._store._open.discard(self._name)


def _load(file: FileIO, head: Head, where: str) -> tuple[int, Past]:
    """The size of the whole lines of a file, and the calls in them."""
    file.seek(0)
    data = file.readall()
    size, past = data.rfind(b"\n") + 1, Past()
    if size:
        lines = data[:size].split(b"\n")[:-1]
        check_same(read_first(lines[0], where).head, head, where)
        past.read(lines[1:], where, 2)
    elif not may_begin(data):
        raise TraceError(f"{where}: not a run of a store: move the file away")
    return size, past


def _summary(path: Path) -> KeptRun | None:
    """The list entry of a file; ``None`` if its run has not started yet or was just deleted."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            if not first.endswith(b"\n"):
                return None
            calls, finished = 0, False
            for line in file:
                if line.endswith(b"\n"):
                    finished = is_end(line)
                    calls += not finished
            written = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    name, begun = read_name(first, str(path))
    at = datetime.datetime.fromtimestamp(written, datetime.UTC)
    return KeptRun(name=name, calls=calls, finished=finished, begun=begun, written=at)
