"""Plays episodes in processes of this machine."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from multiprocessing.context import BaseContext
from typing import Any

from swarm_ui.errors import ConfigError, brief
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.remote import Played, Player, RemoteWorker, newest, portable, sendable
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import PerWorker, Work, WorkerLost

_BUFFER = 1 << 20


def process_rollouts(
    make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
    *,
    workers: int | None = None,
    slots: int = 1,
    retries: int = 1,
    losses: int = 3,
    preload: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> Rollouts:
    """Rollouts in processes of this machine, for models and environments that need a core each::

        async with process_rollouts(PhoneEnvironment, workers=4) as rollouts:
            episodes = await rollout_many(rollouts, PerWorker(team), jobs)

    Each worker is a process with its own environments and its own copy of the policy. What is sent
    to it is pickled, so functions are those of a module. The script that calls this needs ``if
    __name__ == "__main__"``.

    Args:
        make_environment: called in each worker; it is sent there.
        workers: number of processes; ``None``: one for each core.
        slots: environments of a worker, each with one episode at a time.
        retries: how often an episode is played again in a worker after a fault.
        losses: how often a job is played again after the loss of its worker, before its episode
            has a fault; and how often a worker is replaced in a row without a finished episode.
        preload: modules that are imported once for all processes (on Linux).
        warn: called with one line when a worker is lost.

    Raises:
        ConfigError: a number is below 1, or the environment cannot be sent.
    """
    workers = workers or os.cpu_count() or 1
    for name, number in (("workers", workers), ("slots", slots)):
        if number < 1:
            raise ConfigError(f"process_rollouts: '{name}' must be at least 1, got {number}")
    setup = sendable((make_environment, slots, retries), "the environment", pickle.dumps)
    begin = partial(_begun, _context(preload), setup, {})
    return Rollouts(
        [RemoteWorker(k, slots, begin, losses=losses, warn=warn) for k in range(workers)],
        losses=losses,
    )


def _context(preload: Sequence[str]) -> BaseContext:
    """How processes are started: from a fork server, which imports modules once for all of them.

    On macOS, forking a process that has loaded system frameworks is not safe.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *preload])
    return context


async def _begun(context: Any, setup: bytes, works: dict[str, bytes], number: int) -> _Process:
    """A process that answers.

    Raises:
        WorkerLost: it ends before.
        ConfigError: it cannot read the environment.
    """
    here, there = socket.socketpair()
    process = context.Process(
        target=_serve, args=(there, setup), name=f"worker {number}", daemon=True
    )
    with there:
        await asyncio.to_thread(process.start)  # it waits for the imports of the fork server
    begun = _Process(process, works, *await asyncio.open_connection(sock=here, limit=_BUFFER))
    try:
        error: Exception | None = await begun.asked("hello")
        if error is not None:
            raise error
    except BaseException:
        begun.kill()
        raise
    return begun


class _Process:
    """A process with a player, asked over a socket."""

    where = ""

    def __init__(
        self,
        process: Any,
        works: dict[str, bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid: int = process.pid
        self._process, self._works, self._writer = process, works, writer
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.ensure_future(self._listen(reader))

    async def play(self, job: Job, work: Work) -> Played:
        send = partial(sendable, work, "the policy, or its intervention,", pickle.dumps)
        played: Played = await self.asked(
            "play", job, work.key, newest(self._works, work.key, send)
        )
        return played

    async def close(self) -> Exception | None:
        error: Exception | None = await self.asked("close")
        self._writer.close()
        await self._listening
        return error

    def kill(self) -> None:
        self._process.kill()
        self._writer.close()

    async def asked(self, method: str, *arguments: Any) -> Any:
        """The answer of a method of :class:`_Served`. Raises ``WorkerLost``."""
        if self._listening.done():
            raise WorkerLost(self._ended())
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        _write(self._writer, (number, method, arguments))
        try:
            return await self._asked[number]
        except asyncio.CancelledError:
            _write(self._writer, (number, "cancel", ()))
            raise
        finally:
            del self._asked[number]

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        try:
            while (answer := await _read(reader)) is not None:
                number, value = answer
                if number in self._asked and not self._asked[number].done():
                    self._asked[number].set_result(value)
        except Exception as error:  # unpickling calls code of the values
            why = f"an answer of its process {self.pid} cannot be read: {brief(error)}"
        else:
            why = self._ended()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(WorkerLost(why))

    def _ended(self) -> str:
        self._process.join(1.0)
        code = self._process.exitcode
        return f"its process {self.pid} ended (exit code {'unknown' if code is None else code})"


def _serve(asking: socket.socket, setup: bytes) -> None:
    """The main function of a process. It ends with the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started it
    asyncio.run(_Served(setup).serve(asking))


class _Served:
    """Answers in the process that plays."""

    def __init__(self, setup: bytes) -> None:
        self._setup = setup
        self._player: Player | None = None
        self._answering: dict[int, asyncio.Task[None]] = {}

    async def serve(self, asking: socket.socket) -> None:
        """Answer until the other end is closed."""
        reader, writer = await asyncio.open_connection(sock=asking, limit=_BUFFER)
        while (asked := await _read(reader)) is not None:
            number, method, arguments = asked
            if method != "cancel":
                answer = self._answer(writer, number, getattr(self, method)(*arguments))
                self._answering[number] = asyncio.ensure_future(answer)
            elif number in self._answering:
                self._answering[number].cancel()
        await self.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, number: int, value: Awaitable[Any]
    ) -> None:
        try:
            _write(writer, (number, await value))
            await writer.drain()
        finally:
            del self._answering[number]

    async def hello(self) -> Exception | None:
        """Get ready; returns the reason if this is not possible."""
        try:
            self._player = Player(*pickle.loads(self._setup))
        except Exception as error:  # unpickling calls code of the values
            return ConfigError(f"a worker could not read its environment: {brief(error)}")
        return None

    async def play(self, job: Job, key: str, work: bytes) -> Played:
        """See :meth:`Player.play`. ``work``: as bytes."""

        async def read() -> Work:
            loaded: Work = pickle.loads(work)
            return loaded

        assert self._player is not None
        played = await self._player.play(job, key, read)
        try:
            pickle.dumps(played.notes)
        except Exception as error:  # pickling calls code of the values
            told = ConfigError(f"the notes of {job} cannot be sent: {brief(error)}")
            return Played(error=portable(told))
        return played

    async def close(self) -> Exception | None:
        """See :meth:`Player.close`."""
        return None if self._player is None else await self._player.close()


def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    data = pickle.dumps(value)
    writer.write(len(data).to_bytes(8, "big") + data)


async def _read(reader: asyncio.StreamReader) -> Any:
    """The next value; ``None`` at the end."""
    try:
        size = int.from_bytes(await reader.readexactly(8), "big")
        return pickle.loads(await reader.readexactly(size))
    except (EOFError, ConnectionError):
        return None
