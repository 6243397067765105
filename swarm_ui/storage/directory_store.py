"""A directory of runs, one file each, readable with a text editor."""

from __future__ import annotations

import os
import weakref
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from swarm_ui.errors import ConfigError, TraceError
from swarm_ui.files import LineFile, sync_folder
from swarm_ui.storage.line_store import LineJournal, LineStore, Written, now
from swarm_ui.storage.protocol import Head, KeptRun
from swarm_ui.storage.run_lines import (
    Past,
    check_same,
    file_name,
    first_line,
    is_end,
    is_question,
    may_begin,
    read_first,
    read_name,
)
from swarm_ui.storage.write_batches import Batches

_THREADS = 16  # runs that wait for the disk at the same time; file systems commit them together


class DirectoryStore(LineStore):
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
        super().__init__(folder, _THREADS)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot create the store '{self._path}': {error}") from error
        self._fsync = fsync
        weakref.finalize(self, self._pool.shutdown, wait=False)

    def runs(self) -> list[KeptRun]:
        """All runs, the oldest first. Raises ``TraceError`` if a file is not a run's."""
        found = [run for path in self._path.glob("*.jsonl") if (run := _summary(path))]
        return sorted(found, key=lambda run: (run.begun, run.name))

    def delete(self, run: str) -> None:
        """Delete a run. Raises ``ConfigError`` if there is no run of that name, or it is open."""
        path = self._lock_file(run)
        if not path.exists():
            raise self._no_run(run)
        with self._claimed(run) as file:
            if os.name == "nt":
                file.close()  # what is open cannot be deleted there
            path.unlink()
            file.close()

    def _lock_file(self, run: str) -> Path:
        return self._path / f"{file_name(run)}.jsonl"

    def _where(self, run: str) -> str:
        return str(self._lock_file(run))

    def _lines(self, run: str) -> tuple[bytes, list[bytes]] | None:
        try:
            lines = self._lock_file(run).read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return None
        return (lines[0], lines[1:]) if lines else None

    def _take_up(self, head: Head) -> LineJournal:
        first = first_line(head, now())
        with self._claimed(head.run) as file:
            size, past = _load(file, head, self._where(head.run))
            lines = _RunFile(file, end=size, fsync=self._fsync)
            if size == 0:
                lines.write([first])
                if self._fsync:
                    sync_folder(self._path)
            put = Batches(self._pool, lines.write).add if self._fsync else lines.put
            return LineJournal(self, head.run, past, file, put)


class _RunFile(LineFile):
    """The file of one run. After a failed write, every later write fails too."""

    _broken: OSError | None = None

    def put(self, line: bytes) -> Written | None:
        self.write([line])
        return None

    def write(self, lines: list[bytes]) -> None:
        if self._broken is not None:
            raise self._broken
        try:
            self.append(*lines)
        except OSError as error:
            self._broken = error
            raise


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
        raise TraceError(f"{where}: not the file of a run; move it to another folder")
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
                    calls += not (finished or is_question(line))
            written = os.fstat(file.fileno()).st_mtime
    except FileNotFoundError:
        return None
    name, begun = read_name(first, str(path))
    at = datetime.fromtimestamp(written, UTC)
    return KeptRun(name=name, calls=calls, finished=finished, begun=begun, written=at)
