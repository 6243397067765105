"""Workers in other processes: what processes of this machine and of a Ray cluster have in common.

A :class:`RemoteWorker` is in the process that asks for episodes, a :class:`Player` in the one that
plays them. Between them is a :class:`Remote`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError, EnvironmentFault, SwarmError, brief
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.worker import LocalWorker, PerWorker, Work, WorkerLost
from swarm_ui.trace.records import Episode

T = TypeVar("T")

CLOSING = 15.0
"""Seconds that a process has to close its environments before it is killed."""
_LONGEST = 60.0
"""Most seconds between two attempts to start a worker that is lost again and again."""
_KEPT_WORKS = 16
"""Streams whose policies a process keeps; of older ones it asks again."""
_EPISODES = msgspec.json.Decoder(Episode)


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a player."""

    episode: bytes = b""
    """As JSON, which is smaller and faster than a pickle; without its notes."""
    notes: tuple[Any, ...] = ()
    error: Exception | None = None


class Remote(Protocol):
    """A running process with a :class:`Player`."""

    @property
    def pid(self) -> int: ...

    @property
    def where(self) -> str:
        """The machine, such as ``" on 10.0.0.7"``; empty: this one."""
        ...

    async def play(self, job: Job, work: Work) -> Played:
        """Play an episode; cancelling this cancels it there. Raises ``WorkerLost`` if the process
        is gone."""
        ...

    async def close(self) -> Exception | None:
        """Cancel what runs and close everything; returns the first fault."""
        ...

    def kill(self) -> None:
        """End the process; no error if it is gone."""
        ...


class RemoteWorker:
    """A worker in another process, and in those that replace it."""

    def __init__(
        self,
        number: int,
        slots: int,
        begin: Callable[[int], Awaitable[Remote]],
        *,
        losses: int,
        warn: Callable[[str], None],
    ) -> None:
        """
        Args:
            number: of the worker, for messages.
            slots: episodes at the same time.
            begin: starts a process for the worker of this number. Raises ``WorkerLost`` if the
                process ends at once, and ``ConfigError`` if there is no room for it.
            losses: how often the process is replaced in a row without a finished episode.
            warn: called with one line when the process is lost.
        """
        self.number, self.slots = number, slots
        self._begin, self._losses, self._warn = begin, losses, warn
        self._starting = asyncio.Lock()
        self._remote: Remote | None = None
        self._row = 0  # losses since the last finished episode
        self._last = ""

    @property
    def pid(self) -> int | None:
        """The id of its process; ``None`` while it does not run."""
        return None if self._remote is None else self._remote.pid

    async def start(self) -> None:
        """Start the process if it does not run; see :class:`~swarm_ui.rollout.Worker`."""
        async with self._starting:
            while self._remote is None:
                if self._row > self._losses:
                    raise WorkerLost(self._last)
                if self._row:
                    await asyncio.sleep(min(_LONGEST, 2.0 ** (self._row - 1)))
                try:
                    self._remote = await self._begin(self.number)
                except WorkerLost as loss:
                    self._lose("", loss)

    async def play(self, job: Job, work: Work) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        remote = self._remote
        if remote is None:  # another slot has noticed the loss
            raise WorkerLost(self._last, begun=False)
        try:
            played = await remote.play(job, work)
        except WorkerLost as loss:
            if self._remote is remote:  # several episodes may notice it; only the first counts
                self._remote = None
                remote.kill()
                self._lose(remote.where, loss)
            raise
        if played.error is not None:
            raise played.error
        episode = _EPISODES.decode(played.episode)
        if episode.fault is None:
            self._row = 0
        return replace(episode, notes=played.notes) if played.notes else episode

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        remote, self._remote = self._remote, None
        if remote is None:
            return
        try:
            error = await asyncio.wait_for(remote.close(), CLOSING)
            if error is not None:
                raise EnvironmentFault(f"a worker could not be closed: {error}") from error
        except (WorkerLost, TimeoutError):
            pass  # nothing is left to be closed, or it hangs and is killed
        finally:
            remote.kill()

    def _lose(self, where: str, loss: WorkerLost) -> None:
        self._row += 1
        self._last = f"worker {self.number}{where}: {loss}"
        end = "its episodes are played again elsewhere"
        if self._row > self._losses:
            end += "; it was lost too often and is not started again"
        self._warn(f"{self._last}; {end}")


class Player:
    """Plays in a process that was started for it. All methods run in one event loop."""

    def __init__(
        self,
        make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
        slots: int,
        retries: int,
    ) -> None:
        self._worker = LocalWorker(make_environment, slots=slots, retries=retries)
        self._works: dict[str, asyncio.Future[Work]] = {}
        self._running: set[asyncio.Task[Episode]] = set()

    async def play(self, job: Job, key: str, read: Callable[[], Awaitable[Work]]) -> Played:
        """Play an episode.

        Args:
            job: task and seed.
            key: of the work.
            read: reads the work, at its first episode here.
        """
        try:
            reading = newest(self._works, key, lambda: asyncio.ensure_future(_work(read)))
            work = await asyncio.shield(reading)
            task = asyncio.ensure_future(self._worker.play(job, work))
            self._running.add(task)
            # Until it has ended, also after a cancellation: close() waits for its environment.
            task.add_done_callback(self._running.discard)
            try:
                await asyncio.wait({task})
            finally:
                task.cancel()
            if task.cancelled():
                raise EnvironmentFault(f"{job}: the worker cancelled the episode")
            episode = task.result()
            bare = replace(episode, notes=()) if episode.notes else episode
            return Played(episode=msgspec.json.encode(bare), notes=episode.notes)
        except Exception as error:
            return Played(error=portable(error))

    async def close(self) -> Exception | None:
        """Cancel the running episodes and close everything; returns the first fault."""
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        try:
            await self._worker.close()
        except Exception as error:
            return portable(error)
        return None


async def _work(read: Callable[[], Awaitable[Work]]) -> Work:
    try:
        return await read()
    except Exception as error:
        raise ConfigError(
            f"a worker on {platform.node()} could not read what it was sent; is the same code "
            f"installed there? {brief(error)}"
        ) from error


def newest(known: dict[str, T], key: str, make: Callable[[], T]) -> T:
    """The value of a key in a dictionary that keeps the values of the newest streams."""
    if key not in known:
        while len(known) >= _KEPT_WORKS:
            del known[next(iter(known))]
        known[key] = make()
    return known[key]


def sendable(value: Any, what: str, send: Callable[[Any], T]) -> T:
    """What ``send`` makes of a value. Raises ``ConfigError`` if the value is not data."""
    try:
        return send(value)
    except ConfigError:  # of a model, which says what to do
        raise
    except Exception as error:  # pickling calls code of the values
        lines = [line for line in str(error).splitlines() if line.strip(" =")]
        why = brief(Exception(" ".join(lines[:3])))
        raise ConfigError(
            f"{what} cannot be sent to workers ({why}); give PerWorker(function), which makes it "
            "in each worker"
        ) from error


def portable(error: Exception) -> Exception:
    """An exception as another process can read it; a note holds the traceback of this one.

    Errors of this library and built-in ones keep their type and attributes, such as partial
    episodes. Others, which the other process may not be able to import, become a ``RuntimeError``
    with their name.
    """
    where = f"in the worker with process id {os.getpid()} on {platform.node()}"
    told = f"{where}:\n{''.join(traceback.format_exception(error))}"
    same: Exception = RuntimeError(f"{type(error).__name__}: {error}")
    if isinstance(error, SwarmError) or type(error).__module__ == "builtins":
        with contextlib.suppress(Exception):  # it holds something that cannot be sent
            same = pickle.loads(pickle.dumps(error))
    same.add_note(told)
    return same
