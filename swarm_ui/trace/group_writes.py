"""Appends episodes to a trace file as they finish, several with one write.

A thread waits for the disk, so neither the event loop nor the workers do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path

from swarm_ui.errors import ConfigError
from swarm_ui.trace.jsonl import append_jsonl
from swarm_ui.trace.records import Episode

Numbered = tuple[int, Episode]
"""An episode and the number of its job."""

UNWRITTEN = 64
"""Maximum number of finished episodes that are not yet on disk."""


async def write_in_groups(
    path: Path, stream: AsyncGenerator[Numbered, None], *, most: int = UNWRITTEN
) -> AsyncGenerator[list[Numbered], None]:
    """Append the episodes of a stream to a trace file; yields each group when it is on disk.

    A group is all episodes that have finished when a write begins: one write and one ``fsync``. The
    records are in the order of the stream. While ``most`` episodes are not yet on disk, the stream
    is not read further. If the caller stops before the end, or is cancelled, the episodes that were
    read from the stream are written too.

    Args:
        path: made if missing. If its last line is cut off, repair it first
            (:func:`swarm_ui.trace.jsonl.repair_jsonl`). Only this call may write to it.
        stream: the result of :meth:`swarm_ui.rollout.rollouts.Rollouts.stream`; it is closed at the
            end.
        most: the maximum number of episodes that were read and are not yet on disk; at least 1.

    Raises:
        ConfigError: the disk is full or fails; the file has whole records only, or a cut-off last
            line. What was yielded before is kept.
        TraceError: a record has a value that JSON cannot represent; its group is not written.
        Exception: what the stream raises, after the episodes before it are written.
    """
    waiting: list[Numbered] = []
    arrived, room = asyncio.Event(), asyncio.Semaphore(most - 1)

    async def read() -> None:
        async with aclosing(stream) as episodes:
            async for numbered in episodes:
                waiting.append(numbered)
                arrived.set()
                await room.acquire()

    reader = asyncio.create_task(read())
    reader.add_done_callback(lambda _: arrived.set())
    disk = _Disk(path)
    try:
        while waiting or not reader.done():
            if not waiting:
                await arrived.wait()
            arrived.clear()
            group = waiting.copy()
            waiting.clear()
            if group:
                await disk.write(group)
                for _ in group:
                    room.release()
                yield group
        reader.result()
    finally:
        reader.cancel()
        try:
            await asyncio.gather(reader, return_exceptions=True)
        finally:
            await disk.finish(waiting)


class _Disk:
    """Appends groups in a thread, one after the other. After an error nothing more is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(1, "traces")
        self._failure: Exception | None = None

    async def write(self, group: Sequence[Numbered]) -> None:
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(self._pool, self._append, [e for _, e in group])
        await asyncio.wait({writing})  # a cancellation of the waiting leaves the write
        if self._failure is not None:
            raise self._failure

    async def finish(self, rest: Sequence[Numbered]) -> None:
        """Write the rest, after a write that was under way at a cancellation."""
        try:
            await self.write(rest)
        finally:
            self._pool.shutdown()  # the rest is written although this is cancelled too

    def _append(self, episodes: Sequence[Episode]) -> None:
        try:
            if episodes and self._failure is None:
                append_jsonl(self._path, episodes)
        except OSError as error:
            self._failure = ConfigError(
                f"cannot write '{self._path}': {error.strerror or error}. The episodes that were "
                "counted before are kept: make room, or repair the disk, and continue the run"
            )
            self._failure.__cause__ = error
        except Exception as error:  # raised by those who wait
            self._failure = error
