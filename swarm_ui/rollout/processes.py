"""Plays episodes in processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from swarm_ui.environment import check_factory
from swarm_ui.rollout.episode import MakeEnvironment
from swarm_ui.rollout.remote import Fleet, Player, sendable
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import PerWorker, WorkerLost

_BUFFER = 1 << 20
_HEAD = struct.Struct("!QQ")
"""Before each question and its answer: its number, and the bytes that follow. A question without
any cancels the earlier one."""


def process_rollouts(
    make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
    *,
    workers: int | None = None,
    slots: int = 1,
    retries: int = 1,
    losses: int = 3,
    warn: Callable[[str], None] = lambda _: None,
) -> Rollouts:
    """Rollouts in processes of this machine, for models and environments that need a core each::

        async with process_rollouts(PhoneEnvironment, workers=4) as rollouts:
            episodes = await rollout_many(rollouts, PerWorker(team), jobs)

    What is sent to a worker is pickled, so functions are those of a module. The script that calls
    this needs ``if __name__ == "__main__"``.

    Args:
        make_environment: called in each worker; it is sent there.
        workers: number of processes; ``None``: one for each core.
        slots: environments of a worker, each with one episode at a time.
        retries: how often an episode is played again in a worker after a fault.
        losses: how often a job is played again after the loss of its worker, before its episode
            has a fault; and how often a worker is replaced in a row without a finished episode.
        warn: called with one line when a worker is lost.

    Raises:
        ConfigError: a number is below 1, or the environment cannot be sent.
    """
    if not isinstance(make_environment, PerWorker):
        check_factory(make_environment)
    setup = sendable(make_environment, "the environment", pickle.dumps)
    fleet = Fleet(partial(_begin, (setup, slots, retries)), pickle.dumps, slots, losses, warn)
    return fleet.rollouts(os.cpu_count() or 1 if workers is None else workers)


async def _begin(arguments: tuple[bytes, int, int], number: int) -> _Process:
    # On macOS, forking a process that has loaded system frameworks is not safe.
    linux = sys.platform == "linux"
    context: Any = multiprocessing.get_context("forkserver" if linux else "spawn")
    if linux:
        context.set_forkserver_preload([__name__])
    here, there = socket.socketpair()
    process = context.Process(
        target=_serve, args=(there, arguments), name=f"worker {number}", daemon=True
    )
    with there:
        await asyncio.to_thread(process.start)  # it waits for the imports of the fork server
    return _Process(process, *await asyncio.open_connection(sock=here, limit=_BUFFER))


class _Process:
    """A process with a player, asked over a socket."""

    where = ""

    def __init__(
        self, process: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid: int = process.pid
        self._process, self._writer = process, writer
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._listening = asyncio.ensure_future(self._listen(reader))

    async def ask(self, method: str, *arguments: Any) -> bytes:
        if self._listening.done():
            raise self._ended()
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        _write(self._writer, number, pickle.dumps((method, arguments)))
        try:
            data: bytes = await answer
        except asyncio.CancelledError:
            _write(self._writer, number, b"")
            raise
        finally:
            del self._asked[number]
        return data

    def kill(self) -> None:
        self._process.kill()
        self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        async for number, data in _received(reader):
            if number in self._asked and not self._asked[number].done():
                self._asked[number].set_result(data)
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(self._ended())

    def _ended(self) -> WorkerLost:
        self._process.join(1.0)
        code = self._process.exitcode
        told = "unknown" if code is None else code
        return WorkerLost(f"its process {self.pid} ended (exit code {told})")


def _serve(asking: socket.socket, arguments: tuple[bytes, int, int]) -> None:
    """The main function of a process. It ends with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    asyncio.run(_answer_all(asking, arguments))


async def _answer_all(asking: socket.socket, arguments: tuple[bytes, int, int]) -> None:
    reader, writer = await asyncio.open_connection(sock=asking, limit=_BUFFER)
    player = Player(_loaded, *arguments)
    answering: dict[int, asyncio.Task[None]] = {}

    async def answer(number: int, question: bytes) -> None:
        method, given = pickle.loads(question)
        try:
            _write(writer, number, await getattr(player, method)(*given))
            with contextlib.suppress(ConnectionError):  # nobody is left to be answered
                await writer.drain()
        finally:
            del answering[number]

    async for number, question in _received(reader):
        if question:
            answering[number] = asyncio.ensure_future(answer(number, question))
        elif number in answering:
            answering[number].cancel()
    await player.close()


async def _loaded(sent: bytes) -> Any:
    return pickle.loads(sent)


def _write(writer: asyncio.StreamWriter, number: int, data: bytes) -> None:
    writer.write(_HEAD.pack(number, len(data)) + data)


async def _received(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, bytes]]:
    """Numbers and data, until the end."""
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            number, size = _HEAD.unpack(await reader.readexactly(_HEAD.size))
            yield number, await reader.readexactly(size)
