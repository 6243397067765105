"""Workers in other processes, of this machine or of a Ray cluster.

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
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError, EnvironmentFault, SwarmError, brief
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import LocalWorker, PerWorker, Work, WorkerLost
from swarm_ui.trace.records import Episode

K = TypeVar("K")
T = TypeVar("T")

CLOSING = 15.0
"""Seconds that a process has to close its environments before it is killed."""
_LONGEST = 60.0
"""Most seconds between two attempts to start a worker that is lost again and again."""
_KEPT_WORKS = 16
"""Streams whose policies a process keeps; of older ones it reads them again."""
_EPISODES = msgspec.json.Decoder(Episode)


class Remote(Protocol):
    """A running process with a :class:`Player`."""

    pid: int
    where: str
    """The machine, such as ``" on 10.0.0.7"``; empty: this one."""

    async def ask(self, method: str, *arguments: Any) -> bytes:
        """The answer of a method of the player; cancelling this cancels it there.

        Raises:
            WorkerLost: the process is gone.
        """
        ...

    def kill(self) -> None:
        """End the process; no error if it is gone."""
        ...


@dataclass
class Fleet:
    """What workers of one kind have in common."""

    begin: Callable[[int], Awaitable[Remote]]
    """Starts the process of the worker with this number. It raises ``WorkerLost`` if the process
    ends at once, ``ConfigError`` if there is no room for it."""
    send: Callable[[Any], Any]
    """What stands for a value on the way to the workers, hashable; raises if it is not data."""
    slots: int
    losses: int
    warn: Callable[[str], None]
    sent: dict[Work, Any] = field(default_factory=dict)

    def rollouts(self, workers: int) -> Rollouts:
        """Rollouts with so many workers; see :func:`~swarm_ui.rollout.process_rollouts`."""
        if min(workers, self.slots) < 1:
            raise ConfigError(
                f"rollouts: {workers} workers with {self.slots} slots; expected at least 1 of each"
            )
        return Rollouts([RemoteWorker(k, self) for k in range(workers)], losses=self.losses)


class RemoteWorker:
    """A worker in another process, and in those that replace it."""

    def __init__(self, number: int, fleet: Fleet) -> None:
        self.number, self.slots = number, fleet.slots
        self._fleet = fleet
        self._starting = asyncio.Lock()
        self._remote: Remote | None = None
        self._row = 0  # losses since the last finished episode
        self._last = ""
        self._refused: ConfigError | None = None

    @property
    def pid(self) -> int | None:
        """The id of its process; ``None`` while it does not run."""
        return None if self._remote is None else self._remote.pid

    async def start(self) -> None:
        """Start the process if it does not run; see :class:`~swarm_ui.rollout.Worker`."""
        async with self._starting:
            while self._remote is None:
                if self._refused is not None:
                    raise self._refused
                if self._row > self._fleet.losses:
                    raise WorkerLost(self._last)
                if self._row:
                    await asyncio.sleep(min(_LONGEST, 2.0 ** (self._row - 1)))
                try:
                    self._remote = await self._fleet.begin(self.number)
                except WorkerLost as loss:
                    self._lose("", loss)
                except ConfigError as error:
                    self._refused = error
                    self._fleet.warn(f"worker {self.number} does not play: {error}")

    async def play(self, job: Job, work: Work) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        remote, fleet = self._remote, self._fleet
        if remote is None:  # another slot has noticed the loss
            raise WorkerLost(self._last, begun=False)
        told = "the policy, or its intervention,"
        sent = newest(fleet.sent, work, lambda: sendable(work, told, fleet.send))
        try:
            data, notes = _read(await remote.ask("play", job, sent))
        except WorkerLost as loss:
            if self._remote is remote:  # several episodes may notice it; only the first counts
                self._remote = None
                remote.kill()
                self._lose(remote.where, loss)
            raise
        episode = _EPISODES.decode(data)
        if episode.fault is None:
            self._row = 0
        return replace(episode, notes=notes) if notes else episode

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        remote, self._remote = self._remote, None
        if remote is None:
            return
        try:
            _read(await asyncio.wait_for(remote.ask("close"), CLOSING))
        except (WorkerLost, TimeoutError):
            pass  # nothing is left to be closed, or it hangs and is killed
        except Exception as error:
            raise EnvironmentFault(f"a worker could not be closed: {error}") from error
        finally:
            remote.kill()

    def _lose(self, where: str, loss: WorkerLost) -> None:
        self._row += 1
        self._last = f"worker {self.number}{where}: {loss}"
        end = "its episodes are played again elsewhere"
        if self._row > self._fleet.losses:
            end += "; it was lost too often and is not started again"
        self._fleet.warn(f"{self._last}; {end}")


def _read(answer: bytes) -> Any:
    """The value of an answer; raises the exception that it holds."""
    try:
        value = pickle.loads(answer)
    except Exception as error:  # unpickling calls code of the values
        raise ConfigError(
            f"the answer of a worker cannot be read: {brief(error)}. A note of an intervention is "
            "data that pickle can copy"
        ) from error
    if isinstance(value, Exception):
        raise value
    return value


class Player:
    """Plays in a process that was started for it. All methods run in one event loop, and answer
    with a pickled result or exception."""

    def __init__(
        self, read: Callable[[Any], Awaitable[Any]], setup: Any, slots: int, retries: int
    ) -> None:
        """
        Args:
            read: the value of what :attr:`Fleet.send` made of it.
            setup: the function that makes environments, sent.
            slots, retries: see :class:`~swarm_ui.rollout.LocalWorker`.
        """
        self._read = read
        make: PerWorker[MakeEnvironment] = PerWorker(partial(self._received, setup))
        self._worker = LocalWorker(make, slots=slots, retries=retries)
        self._works: dict[Any, asyncio.Future[Work]] = {}

    async def play(self, job: Job, sent: Any) -> bytes:
        """Play an episode: its JSON, which is smaller and faster than a pickle, and its notes."""
        return await _answer(self._play(job, sent))

    async def close(self) -> bytes:
        """Cancel the running episodes and close everything."""
        return await _answer(self._worker.close())

    async def _play(self, job: Job, sent: Any) -> tuple[bytes, tuple[Any, ...]]:
        reading = newest(self._works, sent, lambda: asyncio.ensure_future(self._received(sent)))
        episode = await self._worker.play(job, await asyncio.shield(reading))
        bare = replace(episode, notes=()) if episode.notes else episode
        return msgspec.json.encode(bare), episode.notes

    async def _received(self, sent: Any) -> Any:
        try:
            return await self._read(sent)
        except Exception as error:
            raise ConfigError(
                f"a worker on {platform.node()} could not read what it was sent; is the same code "
                f"installed there? {brief(error)}"
            ) from error


async def _answer(doing: Awaitable[Any]) -> bytes:
    try:
        value = await doing
        try:
            return pickle.dumps(value)
        except Exception as error:  # pickling calls code of the values
            raise ConfigError(f"notes cannot be sent: {error}") from error
    except asyncio.CancelledError:
        return pickle.dumps(EnvironmentFault("the worker cancelled the episode"))
    except Exception as error:
        return pickle.dumps(portable(error))


def newest(known: dict[K, T], key: K, make: Callable[[], T]) -> T:
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
