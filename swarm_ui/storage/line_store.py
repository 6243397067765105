"""The base of the stores: a run is open only once, calls are lines, and reading needs no lock."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Self

from swarm_ui.errors import ConfigError
from swarm_ui.files import claim
from swarm_ui.message import Message, Question
from swarm_ui.storage.protocol import Head, Journal, RecordedCall, RunRecord
from swarm_ui.storage.run_lines import (
    Past,
    call_line,
    end_line,
    file_name,
    question_line,
    read_first,
)
from swarm_ui.trace.records import Call

Written = tuple["asyncio.Future[None]", threading.Event]
"""A write in progress; see :meth:`swarm_ui.storage.write_batches.Batches.add`."""


class LineStore(ABC):
    """A store whose runs are lines. A subclass defines where the lines and the lock files are."""

    def __init__(self, path: str | os.PathLike[str], threads: int) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._open: set[str] = set()
        self._closed = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="swarm-ui-store")

    @abstractmethod
    def _take_up(self, head: Head) -> LineJournal:
        """Find or create a run and read its calls; called in a thread of the pool."""

    @abstractmethod
    def _lines(self, run: str) -> tuple[bytes, Iterable[bytes]] | None:
        """The first line of a run and those after it; ``None`` if there is no such run."""

    @abstractmethod
    def _where(self, run: str) -> str:
        """Where a run is, for errors."""

    @abstractmethod
    def _lock_file(self, run: str) -> Path:
        """The file whose lock marks a run as open."""

    async def open(self, head: Head) -> Journal:
        """The journal of a run; see :class:`~swarm_ui.storage.protocol.Store`."""
        if not head.run:
            raise ConfigError("a run that is saved in a store needs a unique name: run='...'")
        self._check_open()
        opening = self._pool.submit(self._take_up, head)
        opened = asyncio.wrap_future(opening)
        try:
            await asyncio.wait({opened})
            return opened.result()
        except asyncio.CancelledError:
            opening.cancel()
            try:  # the run can be opened again when this returns, unless it is cancelled twice
                await asyncio.gather(opened, return_exceptions=True)
            finally:
                opening.add_done_callback(_close)
            raise

    def read(self, run: str) -> RunRecord:
        """Read a run without executing it, also while it is running.

        Raises:
            ConfigError: there is no run of that name.
            TraceError: the run is damaged.
        """
        found = self._lines(run)
        if found is None:
            raise self._no_run(run)
        where, past = self._where(run), Past()
        head = read_first(found[0], where).head
        past.read(found[1], where, 2)
        return RunRecord(
            head=head,
            calls=tuple(past.calls.values()),
            finished=past.finished,
            questions=tuple(past.questions.values()),
        )

    def close(self) -> None:
        """Finish pending writes. A run that is still active fails at its next call."""
        self._closed = True
        self._pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigError(
                f"the store {self._path} is closed; close a store only after its runs have ended"
            )

    def _no_run(self, run: str) -> ConfigError:
        return ConfigError(f"there is no run {run!r} in {self._path}; runs() lists what there is")

    @contextmanager
    def _claimed(self, run: str) -> Iterator[FileIO]:
        """The locked file of a run; it is unlocked if the block raises or closes it."""
        path, name = self._lock_file(run), file_name(run)
        taken = ConfigError(
            f"the run {run!r} in {path} is open, here or in another process; wait until it is "
            "over, or stop it (a killed process holds no lock)"
        )
        with self._lock:
            if name in self._open:
                raise taken
            self._open.add(name)
        file = None
        try:
            file = claim(path)
            if file is None:
                raise taken
            yield file
        except OSError as error:
            self._give_free(run, file)
            raise not_kept(str(path), error) from error
        except BaseException:  # re-raised: whatever ends the block, the run is not left locked
            self._give_free(run, file)
            raise
        if file.closed:
            self._give_free(run, file)

    def _give_free(self, run: str, file: FileIO | None) -> None:
        if file is not None:
            file.close()
        self._open.discard(file_name(run))


class LineJournal:
    """A :class:`~swarm_ui.storage.protocol.Journal` that writes lines."""

    def __init__(
        self,
        store: LineStore,
        run: str,
        past: Past,
        file: FileIO,
        put: Callable[[bytes], Written | None],
    ) -> None:
        """
        Args:
            file: holds the lock.
            put: writes a line; returns ``None`` if the line is already on disk.
        """
        self._store, self._run, self._file, self._put = store, run, file, put
        self._past, self._finished = past.calls, past.finished
        self._questions = past.questions
        self._last: threading.Event | None = None

    @property
    def past(self) -> Mapping[str, RecordedCall]:
        return self._past

    async def write(self, message: Message, call: Call) -> None:
        self._finished = False
        await self._append(call_line(message, call))

    async def ask(self, question: Question) -> None:
        if self._questions.get(question.id) != question:
            self._questions[question.id] = question
            await self._append(question_line(question))

    async def finish(self) -> None:
        if not self._finished:
            await self._append(end_line(now()))
            self._finished = True

    async def _append(self, line: bytes) -> None:
        self._store._check_open()
        try:
            pending = self._put(line)
            if pending is not None:
                written, self._last = pending
                await written
        except (OSError, sqlite3.Error) as error:
            raise not_kept(self._store._where(self._run), error) from error

    def close(self) -> None:
        if self._last is not None:
            self._last.wait()
        self._store._give_free(self._run, self._file)


def _close(opening: Future[LineJournal]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def now() -> datetime:
    return datetime.now(UTC)


def not_kept(where: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{where} cannot be used: {error}. What was written before is safe. Correct the "
        "problem, then start the run again under the same name: it continues from there"
    )
