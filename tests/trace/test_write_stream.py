"""Episodes that are appended in groups: order, what is on disk when, full disks, interruptions."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError
from swarm_ui.trace.jsonl import Numbered, iter_jsonl, write_stream
from swarm_ui.trace.records import Episode

Stream = AsyncGenerator[Numbered, None]


def episode(seed: int) -> Episode:
    return Episode(environment="e", task="tâche" * (seed % 7), seed=seed, success=seed % 2 == 0)


EPISODES = [episode(seed) for seed in range(12)]


async def played(pauses: Sequence[int]) -> Stream:
    """Episodes, each after so many turns of the event loop."""
    for number, pause in enumerate(pauses):
        for _ in range(pause):
            await asyncio.sleep(0)
        yield number, EPISODES[number]


async def written(path: Path, stream: Stream) -> list[int]:
    """The numbers of the episodes; when one is reported, it must be on disk."""
    done: list[int] = []
    async with aclosing(write_stream(path, stream)) as found:
        async for number, _ in found:
            done.append(number)
            assert [e.seed for e in iter_jsonl(path)] == done
    return done


class Gate:
    """``os.fsync`` that waits until the gate is open."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._open, self.reached, fsync = threading.Event(), threading.Event(), os.fsync
        self.calls = 0

        def waiting(descriptor: int) -> None:
            self.calls += 1
            self.reached.set()
            assert self._open.wait(30)
            fsync(descriptor)

        patch.setattr(os, "fsync", waiting)

    def open(self) -> None:
        self._open.set()

    async def busy(self) -> None:
        """Wait until the disk is busy, and whatever can happen meanwhile has happened."""
        while not self.reached.is_set():
            await asyncio.sleep(0.001)
        for _ in range(50):
            await asyncio.sleep(0)


@contextmanager
def full_after(count: int, *, stuck: bool) -> Iterator[None]:
    """The disk takes so many bytes. ``stuck``: nor can a part of a line be removed from it."""
    write, left = os.write, count

    def writing(descriptor: int, data: Any) -> int:
        nonlocal left
        if bytes(data[:11]) != b'{"version":' and left > 0:
            return write(descriptor, data)
        taken = write(descriptor, data[: min(left, 97)]) if left else 0
        left -= taken
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return taken

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", writing)
        if stuck:
            patch.setattr(os, "ftruncate", failing)
        yield


@contextmanager
def no_waiting() -> Iterator[None]:
    """``os.fsync`` does nothing: a property of the bytes does not depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def failing(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=8),
    st.integers(0, 900),
    st.booleans(),
)
def test_a_disk_that_is_full_after_any_byte_leaves_whole_records(
    pauses: list[int], room: int, stuck: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.jsonl"
        counted: list[int] = []

        async def main() -> None:
            async with aclosing(write_stream(path, played(pauses))) as found:
                async for number, _ in found:
                    counted.append(number)

        with no_waiting(), full_after(room, stuck=stuck):
            try:
                asyncio.run(main())
                assert len(counted) == len(pauses)
            except ConfigError as error:
                assert str(error).startswith(f"cannot write '{path}': No space left on device")
        left = list(iter_jsonl(path, whole=False)) if path.exists() else []
        assert left == EPISODES[: len(left)] and counted == [*range(len(counted))]
        assert len(left) == len(counted) or (stuck and len(left) > len(counted))


@pytest.mark.parametrize("often", [1, 2])
def test_an_interruption_while_the_disk_is_busy_keeps_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    gate, path, closed = Gate(monkeypatch), tmp_path / "e.jsonl", []

    async def stream() -> Stream:
        try:
            for number in range(3):
                yield number, EPISODES[number]
        finally:
            closed.append(True)

    async def main() -> None:
        work = asyncio.create_task(written(path, stream()))
        await gate.busy()
        threading.Timer(0.1, gate.open).start()
        for _ in range(often):
            work.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    assert list(iter_jsonl(path)) == EPISODES[:1] and closed
