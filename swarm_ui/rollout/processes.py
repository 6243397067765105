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
from collections.abc import Awaitable, Callable
from typing import Any

from swarm_ui.errors import ConfigError, brief
from swarm_ui.rollout.episode import MakeEnvironment
from swarm_ui.rollout.remote import Player, portable, remote_rollouts, sendable
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
    workers = workers or os.cpu_count() or 1
    if min(workers, slots) < 1:
        raise ConfigError(f"process_rollouts: {workers} workers with {slots} slots; expected 1 up")
    fleet = _Fleet(sendable((make_environment, slots, retries), "the environment", pickle.dumps))
    return remote_rollouts(fleet, workers, slots, losses, warn)


class _Fleet:
    def __init__(self, setup: bytes) -> None:
        self._setup = setup
        # On macOS, forking a process that has loaded system frameworks is not safe.
        linux = sys.platform == "linux"
        self._context: Any = multiprocessing.get_context("forkserver" if linux else "spawn")
        if linux:
            self._context.set_forkserver_preload([__name__])

    def send(self, value: Any) -> bytes:
        return pickle.dumps(value)

    async def begin(self, number: int) -> _Process:
        here, there = socket.socketpair()
        process = self._context.Process(
            target=_serve, args=(there, self._setup), name=f"worker {number}", daemon=True
        )
        with there:
            await asyncio.to_thread(process.start)  # it waits for the imports of the fork server
        begun = _Process(process, *await asyncio.open_connection(sock=here, limit=_BUFFER))
        try:
            error = await begun.ask("begin")
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
        self, process: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid: int = process.pid
        self._process, self._writer = process, writer
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._listening = asyncio.ensure_future(self._listen(reader))

    async def ask(self, method: str, *arguments: Any) -> Any:
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

    def kill(self) -> None:
        self._process.kill()
        self._writer.close()

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
    asyncio.run(_answer_all(asking, setup))


async def _answer_all(asking: socket.socket, setup: bytes) -> None:
    reader, writer = await asyncio.open_connection(sock=asking, limit=_BUFFER)
    answering: dict[int, asyncio.Task[None]] = {}
    player: Player | None = None

    async def answer(number: int, doing: Awaitable[Any]) -> None:
        try:
            value = await doing
            try:
                _write(writer, (number, value))
            except Exception as error:  # pickling calls code of the values
                _write(writer, (number, portable(ConfigError(f"notes cannot be sent: {error}"))))
            await writer.drain()
        finally:
            del answering[number]

    while (asked := await _read(reader)) is not None:
        number, method, arguments = asked
        if method == "begin":
            error = None
            try:
                player = Player(pickle.loads(setup), _loaded)
            except Exception as failure:  # unpickling calls code of the values
                error = ConfigError(f"a worker could not read its environment: {brief(failure)}")
            _write(writer, (number, error))
        elif method == "cancel":
            if number in answering:
                answering[number].cancel()
        else:
            answering[number] = asyncio.ensure_future(
                answer(number, getattr(player, method)(*arguments))
            )
    if player is not None:
        await player.close()


async def _loaded(sent: bytes) -> Work:
    work: Work = pickle.loads(sent)
    return work


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
