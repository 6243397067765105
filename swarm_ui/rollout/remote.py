"""Workers in other processes: what processes of this machine and of a Ray cluster have in common.

A :class:`RemoteWorker` is in the process that asks for episodes, a :class:`Player` in the one that
plays them. Between them is a :class:`Remote`, which a :class:`Fleet` starts.
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
from swarm_ui.rollout.rollouts import Rollouts
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

Played = tuple[bytes, tuple[Any, ...]] | Exception
"""An episode as JSON, which is smaller and faster than a pickle, and its notes; or an error."""
Setup = tuple[MakeEnvironment | PerWorker[MakeEnvironment], int, int]
"""The arguments of a :class:`Player`."""


class Remote(Protocol):
    """A running process with a :class:`Player`."""

    pid: int
    where: str
    """The machine, such as ``" on 10.0.0.7"``; empty: this one."""

    async def ask(self, method: str, *arguments: Any) -> Any:
        """The result of a method of the player; cancelling this cancels it there.

        Raises:
            WorkerLost: the process is gone.
        """
        ...

    def kill(self) -> None:
        """End the process; no error if it is gone."""
        ...


class Fleet(Protocol):
    """Starts the processes of workers."""

    def send(self, value: Any) -> Any:
        """What stands for a value on the way to the workers; raises if it is not data."""
        ...

    async def begin(self, number: int) -> Remote:
        """Start the process of a worker.

        Raises:
            WorkerLost: it ends at once.
            ConfigError: there is no room for it, or it cannot read the environment.
        """
        ...


def remote_rollouts(
    fleet: Fleet, workers: int, slots: int, losses: int, warn: Callable[[str], None]
) -> Rollouts:
    """Rollouts with workers of a fleet; see :func:`~swarm_ui.rollout.process_rollouts`."""
    sent: dict[str, Any] = {}
    return Rollouts(
        [RemoteWorker(k, slots, fleet, sent, losses, warn) for k in range(workers)], losses=losses
    )


class RemoteWorker:
    """A worker in another process, and in those that replace it."""

    def __init__(
        self,
        number: int,
        slots: int,
        fleet: Fleet,
        sent: dict[str, Any],
        losses: int,
        warn: Callable[[str], None],
    ) -> None:
        """
        Args:
            number: of the worker, for messages.
            slots: episodes at the same time.
            sent: what the workers of the fleet were sent.
            losses: how often the process is replaced in a row without a finished episode.
            warn: called with one line when the process is lost.
        """
        self.number, self.slots = number, slots
        self._fleet, self._sent, self._losses, self._warn = fleet, sent, losses, warn
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
                    self._remote = await self._fleet.begin(self.number)
                except WorkerLost as loss:
                    self._lose("", loss)

    async def play(self, job: Job, work: Work) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        remote = self._remote
        if remote is None:  # another slot has noticed the loss
            raise WorkerLost(self._last, begun=False)
        told = "the policy, or its intervention,"
        sent = newest(self._sent, work.key, lambda: sendable(work, told, self._fleet.send))
        try:
            played: Played = await remote.ask("play", job, work.key, sent)
        except WorkerLost as loss:
            if self._remote is remote:  # several episodes may notice it; only the first counts
                self._remote = None
                remote.kill()
                self._lose(remote.where, loss)
            raise
        if isinstance(played, Exception):
            raise played
        episode = _EPISODES.decode(played[0])
        if episode.fault is None:
            self._row = 0
        return replace(episode, notes=played[1]) if played[1] else episode

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        remote, self._remote = self._remote, None
        if remote is None:
            return
        try:
            error: Exception | None = await asyncio.wait_for(remote.ask("close"), CLOSING)
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

    def __init__(self, setup: Setup, read: Callable[[Any], Awaitable[Work]]) -> None:
        """``read``: the work of what :meth:`Fleet.send` made of it."""
        make, slots, retries = setup
        self._worker = LocalWorker(make, slots=slots, retries=retries)
        self._read = read
        self._works: dict[str, asyncio.Future[Work]] = {}
        self._running: set[asyncio.Task[Episode]] = set()

    async def play(self, job: Job, key: str, sent: Any) -> Played:
        """Play an episode. ``sent``: the work with this key, which is read at its first episode."""
        try:
            reading = newest(self._works, key, lambda: asyncio.ensure_future(self._work(sent)))
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
            return msgspec.json.encode(bare), episode.notes
        except Exception as error:
            return portable(error)

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

    async def _work(self, sent: Any) -> Work:
        try:
            return await self._read(sent)
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
    episodes. Others become a ``RuntimeError`` with their name.
    """
    where = f"in the worker with process id {os.getpid()} on {platform.node()}"
    told = f"{where}:\n{''.join(traceback.format_exception(error))}"
    same: Exception = RuntimeError(f"{type(error).__name__}: {error}")
    if isinstance(error, SwarmError) or type(error).__module__ == "builtins":
        with contextlib.suppress(Exception):  # it holds something that cannot be sent
            same = pickle.loads(pickle.dumps(error))
    same.add_note(told)
    return same
