"""The process in a cluster that plays episodes: a Ray actor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from contextlib import AsyncExitStack
from typing import Any

import msgspec

from swarm_ui.errors import MissingExtra, TraceError
from swarm_ui.rollout.distributed.cluster import imported
from swarm_ui.rollout.distributed.sent_error import SentError
from swarm_ui.rollout.episode_spans import SpanParent
from swarm_ui.rollout.episodes import attempt_of
from swarm_ui.rollout.intervention import Intervene, KeepsNotes
from swarm_ui.rollout.policy import Policy
from swarm_ui.rollout.pool import Attempt, Job, MakeEnvironment, Restarts, Seat
from swarm_ui.rollout.rollouts import OpenPolicy, PerWorker
from swarm_ui.rollout.worker_reporter import WorkerReporter
from swarm_ui.trace.canonical_json import Unwritable, encoded
from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import WorkerEvent
from swarm_ui.version import __version__


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments with which a worker is created."""

    make_environment: MakeEnvironment | PerWorker[MakeEnvironment]
    concurrency: int
    restarts: Restarts
    folder: str
    """The driver's working directory; the worker's own, if it has a folder of that name."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The settings shared by the episodes of a stream."""

    policy: Policy | PerWorker[Policy]
    intervention: Intervene | None
    max_steps: int | None
    headers: dict[str, str] = {}
    """The driver's current span; see :mod:`swarm_ui.rollout.episode_spans`."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worker runs, and its versions of swarm-ui and Python."""

    node: str
    pid: int
    version: str
    """Version of swarm-ui."""
    python: str


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job."""

    encoded: bytes = b""
    """The episode as in a trace file, which is smaller and faster than a pickle. Empty: there is an
    error, or the episode was cancelled."""
    notes: object = None
    """Notes of the intervention; see :class:`~swarm_ui.rollout.intervention.KeepsNotes`."""
    fit: bool = True
    """Whether the place of the environment is still used; see ``Restarts.limit``."""
    error: SentError | None = None
    attempts: tuple[WorkerEvent, ...] = ()
    """The attempts at the episode that ended here, by the clock of this process."""


class RolloutWorker:
    """Plays up to ``Setup.concurrency`` episodes at a time. All methods run in one event loop."""

    def __init__(self, setup: Setup) -> None:
        if os.path.isdir(setup.folder):
            os.chdir(setup.folder)
        self._setup = setup
        self._stack, self._open_policy = AsyncExitStack(), OpenPolicy()
        self._free: asyncio.Queue[Seat] = asyncio.Queue()
        self._seats: list[Seat] = []
        self._told: list[list[WorkerEvent]] = []
        self._policy: Policy | None = None
        self._intervention: Intervene | None = None
        self._attempt: Attempt | None = None
        self._running: set[asyncio.Task[Played]] = set()
        self._beginning = asyncio.Lock()

    async def hello(self, node: str) -> Hello:
        """Report that the worker has started. ``node``: its address if Ray knows none."""
        with contextlib.suppress(MissingExtra):
            node = str(imported().util.get_node_ip_address())
        return Hello(
            node=node, pid=os.getpid(), version=__version__, python=platform.python_version()
        )

    async def begin(self, work: Work, worker: int = 0) -> SentError | str:
        """Prepare for a stream; returns the name of the policy, or why it cannot be played.

        ``worker``: its number, for spans.
        """
        # The driver may give up a stream while this still loads its model, and begin the next one.
        async with self._beginning:
            try:
                await self._open_seats()
                self._policy = await self._open_policy.take(work.policy)
            except Exception as error:
                return SentError.of(error, self._where)
            self._intervention = work.intervention
            parent = SpanParent(work.headers, worker, platform.node())
            self._attempt = attempt_of(self._policy, work.intervention, work.max_steps, parent)
            return self._policy.name

    async def play(self, job: Job) -> Played:
        """Play one job of the stream that was begun."""
        playing = asyncio.get_running_loop().create_task(self._play(job))
        self._running.add(playing)
        try:
            await asyncio.wait({playing})
        finally:
            self._running.discard(playing)
        return Played() if playing.cancelled() else playing.result()

    async def stop(self) -> None:
        """Cancel the running episodes."""
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def close(self) -> SentError | None:
        """Cancel the running episodes and close everything; returns the first fault."""
        await self.stop()
        faults: list[SentError] = []
        for closing in (
            *(seat.leave for seat in self._seats), self._open_policy.close, self._stack.aclose
        ):  # fmt: skip
            try:
                await closing()
            except Exception as error:
                faults.append(SentError.of(error, self._where))
        self._seats.clear()
        return next(iter(faults), None)

    @property
    def _where(self) -> str:
        return f"the worker with process id {os.getpid()} on {platform.node()}"

    async def _open_seats(self) -> None:
        if self._seats:
            return
        given = self._setup.make_environment
        make = await given.opened(self._stack) if isinstance(given, PerWorker) else given
        count = self._setup.concurrency
        self._told = [[] for _ in range(count)]
        self._seats = [
            Seat(place, make, self._setup.restarts, WorkerReporter(place, told.append))
            for place, told in enumerate(self._told)
        ]
        for seat in self._seats:
            self._free.put_nowait(seat)

    async def _play(self, job: Job) -> Played:
        assert self._attempt is not None and self._policy is not None
        seat = await self._free.get()
        told = self._told[seat.place]
        told.clear()
        try:
            episode = await seat.play(self._attempt, *job, self._policy.name)
            notes = None
            if isinstance(self._intervention, KeepsNotes):
                notes = self._intervention.take_notes(episode)
            text = _encoded(episode)
        except Exception as error:
            return Played(error=SentError.of(error, self._where))
        finally:
            self._free.put_nowait(seat)
        ended = tuple(event for event in told if event.kind == "finished")
        return Played(encoded=text, notes=notes, fit=seat.fit, attempts=ended)


def _encoded(episode: Episode) -> bytes:
    try:
        return encoded(episode)
    except Unwritable as error:
        told = f"{episode.task}, seed {episode.seed}: the episode cannot be sent: {error}"
        raise TraceError(told) from error


def remote_class(**options: Any) -> Any:
    """The actor class with Ray's options."""
    return imported().remote(RolloutWorker).options(**options)
