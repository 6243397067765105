"""The driver's side of a worker: started when it is needed, and replaced when it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from swarm_ui.errors import ConfigError, EnvironmentFault
from swarm_ui.rollout.distributed.cluster import imported, node_resources
from swarm_ui.rollout.distributed.job_queue import NumberedJob
from swarm_ui.rollout.distributed.ray_errors import reason
from swarm_ui.rollout.distributed.resources import WorkerResources
from swarm_ui.rollout.distributed.sent_error import SentError
from swarm_ui.rollout.distributed.worker import Hello, Played, remote_class
from swarm_ui.rollout.pool import Restarts
from swarm_ui.rollout.worker_reporter import told_elsewhere
from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import OnWorkerEvent, WorkerEvent, WorkerEventKind
from swarm_ui.version import __version__

FIRST_REPORT, NEXT_REPORTS = 10.0, 30.0
"""Seconds without resources after which the waiting is reported, first and then again."""
CLOSING = 15.0
"""Seconds that a worker has to close its environments before it is killed."""
CONTROL_CALLS = 8
"""Calls that a worker accepts beside episodes."""
_EPISODES = msgspec.json.Decoder(Episode)


class Lost(Exception):
    """The worker, or its node, is gone; what it was doing has no result."""


class NotBegun(Lost):
    """The worker was gone before it got the job."""


class GivenUp(Exception):
    """The worker was lost too often and is not started again."""


class Result(NamedTuple):
    """The result of a job that was played."""

    episode: Episode
    notes: object
    """Notes of the intervention on the episode; see
    :class:`~swarm_ui.rollout.intervention.KeepsNotes`."""
    fit: bool
    """Whether the place of the environment is still used; see ``Restarts.limit``."""


class RemoteWorker:
    """A worker of the cluster, and those that replace it."""

    def __init__(
        self,
        number: int,
        setup: Any,
        concurrency: int,
        resources: WorkerResources,
        losses: Restarts,
        patience: Callable[[], float],
        on_event: OnWorkerEvent,
    ) -> None:
        """
        Args:
            number: the worker's number in events.
            setup: reference to a ``Setup`` in the object store.
            concurrency: episodes at a time.
            resources, losses, on_event: see ``RayRollout``.
            patience: the remaining time to wait for resources, in seconds.
        """
        self.number = number
        self.given_up = False
        self.policy_name = ""
        self._setup, self._concurrency, self._resources = setup, concurrency, resources
        self._losses, self._patience, self._on_event = losses, patience, on_event
        self._starting = asyncio.Lock()
        self._actor: Any = None
        self._hello = Hello(node="", pid=0, version="", python="")
        self._asked: float | None = None
        """Time of the request for an actor that has not begun its first stream yet."""
        self._stream = 0
        self._row = 0  # losses since the last completed episode
        self._last = ""

    @property
    def started(self) -> bool:
        return self._actor is not None

    async def ready(self, stream: int, work: Any) -> None:
        """Start the worker if there is none, and prepare it for a stream.

        Args:
            stream: number of the stream, from 1.
            work: reference to a ``Work`` in the object store.

        Raises:
            Lost: the worker died.
            GivenUp: it was lost too often.
            ConfigError: the cluster does not have enough resources, or the worker has another
                version.
            SwarmError: what the worker raised when it made the environment or the policy.
        """
        async with self._starting:
            if self._actor is None:
                await self._start()
            if self._stream == stream:
                return
            name = await self._called(self._actor.begin.remote(work, self.number))
            if isinstance(name, SentError):
                raise name.error()
            self._stream, self.policy_name = stream, name
            if self._asked is not None:  # now it can play: its models are loaded
                self._tell("started", queued=self._asked)
                self._asked = None

    async def play(self, job: NumberedJob) -> Result:
        """Play a job.

        Raises:
            NotBegun: the worker was lost before it began the job, and its replacement is not ready.
            Lost: the worker is gone; another one must play the job.
            EnvironmentFault: the worker was stopped.
            Exception: what the episode raised.
        """
        actor = self._actor
        if actor is None or not self._stream:  # another slot is replacing it
            raise NotBegun(self._last)
        assigned = time.time()
        self._tell("assigned", job=job)
        try:
            played: Played = await self._called(actor.play.remote(job.job), actor)
        except Lost as loss:
            self._tell("lost", job=job, text=str(loss))
            raise
        if played.error is not None:
            raise played.error.error()
        if not played.encoded:
            raise EnvironmentFault(f"{job.job}: the worker cancelled the episode")
        episode = _EPISODES.decode(played.encoded)
        if episode.fault is None:
            self._row = 0
        self._tell_finished(job, played, assigned)
        return Result(episode, played.notes, played.fit)

    async def stop(self) -> None:
        """Cancel the running episodes; the environments are kept."""
        if self._actor is not None:
            with contextlib.suppress(Lost):
                await self._called(self._actor.stop.remote())

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        try:
            error = await asyncio.wait_for(self._called(actor.close.remote(), actor), CLOSING)
            if error is not None:
                raise EnvironmentFault(f"a worker could not be closed: {error.arguments}")
        except (Lost, TimeoutError):
            pass  # nothing is left to be closed, or it hangs and is killed
        finally:
            imported().kill(actor)
            self._tell("closed")

    async def _start(self) -> None:
        limit = self._losses.limit
        if self.given_up or (limit is not None and self._row > limit):
            if not self.given_up:
                self.given_up = True
                self._tell("given_up", text=self._last)
            raise GivenUp(self._last)
        if self._row:
            await asyncio.sleep(self._losses.pause(self._row - 1))
        asked = time.time()
        options = self._resources.options
        most = self._concurrency + CONTROL_CALLS
        actor = remote_class(**options, max_restarts=0, max_concurrency=most).remote(self._setup)
        try:
            self._hello = await self._placed(actor)
            self._expect_version()
        except BaseException:
            imported().kill(actor)
            raise
        self._actor, self._stream = actor, 0
        self._asked = asked

    async def _placed(self, actor: Any) -> Hello:
        """The first answer of a worker, when the cluster has room for it."""
        waiting = asyncio.ensure_future(
            self._called(actor.hello.remote(platform.node()), actor, starting=True)
        )
        pause = FIRST_REPORT
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=min(pause, self._patience()))
                if done:
                    return waiting.result()  # type: ignore[no-any-return]
                text = self._missing()
                self._tell("waiting", text=text)
                if self._patience() <= 0:
                    raise ConfigError(text)
                pause = NEXT_REPORTS
        finally:
            waiting.cancel()

    def _missing(self) -> str:
        """A description of the resources that the cluster lacks for this worker."""
        lacking = self._resources.lacking(node_resources())
        if lacking:
            return (
                f"worker {self.number} waits: no node of the cluster has {lacking}. A node says "
                "what it has with: ray start --resources='{\"NAME\": COUNT}'"
            )
        free = imported().available_resources()
        now = ", ".join(f"{name} {free.get(name, 0.0):g}" for name in self._resources.amounts)
        return (
            f"worker {self.number} is not running yet: it needs {self._resources}; free in the "
            f"cluster, beside what starting workers need: {now or 'nothing'}"
        )

    def _expect_version(self) -> None:
        if self._hello.version != __version__:
            raise ConfigError(
                f"the worker on {self._hello.node} has swarm-ui {self._hello.version}, this "
                f"process {__version__}; install the same version on every node"
            )

    async def _called(self, reference: Any, actor: Any = None, *, starting: bool = False) -> Any:
        """The result of a call.

        Args:
            reference: the reference to the call's result.
            actor: the worker that was called; ``None``: the present one.
            starting: it is the first call, which fails if the worker cannot be made.

        Raises:
            Lost: the worker or its node died.
            ConfigError: the worker could not be made, or not read what it was sent.
            EnvironmentFault: any other failure of the cluster.
        """
        errors = imported().exceptions
        called = actor or self._actor
        try:
            return await reference
        except errors.RayTaskError as error:
            raise ConfigError(
                f"a worker on {self._hello.node or 'a node'} could not read or send data; is "
                f"the same code installed there? {reason(error)}"
            ) from error
        except (
            errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError,
            errors.WorkerCrashedError, errors.OutOfMemoryError, errors.LocalRayletDiedError,
        ) as error:  # fmt: skip
            if starting and getattr(error, "actor_init_failed", False):
                raise ConfigError(
                    f"a worker could not be made; is swarm-ui {__version__} installed on every "
                    f"node? {reason(error)}"
                ) from error
            self._lose(called, reason(error), starting)
            raise Lost(reason(error)) from error
        except errors.RayError as error:
            raise EnvironmentFault(f"the Ray cluster failed: {reason(error)}") from error

    def _lose(self, actor: Any, reason: str, starting: bool) -> None:
        """Handle the loss of the worker. Several calls may notice it; only the first has an
        effect."""
        if not starting and self._actor is not actor:
            return
        where = f" on {self._hello.node}" if self._hello.node and not starting else ""
        self._last = f"worker {self.number}{where}: {reason}"
        self._row += 1
        self._actor, self._stream = None, 0
        self._tell("lost", text=self._last)
        with contextlib.suppress(Exception):  # Ray may have forgotten it
            imported().kill(actor)

    def _tell_finished(self, job: NumberedJob, played: Played, assigned: float) -> None:
        """Report every attempt of the worker at a job."""
        for event in told_elsewhere(played.attempts, queued=assigned, now=time.time()):
            self._on_event(
                msgspec.structs.replace(
                    event, worker=self.number, node=self._hello.node, pid=self._hello.pid,
                    job=job.number, attempt=job.losses,
                )
            )  # fmt: skip

    def _tell(
        self,
        kind: WorkerEventKind,
        *,
        job: NumberedJob | None = None,
        text: str = "",
        queued: float | None = None,
    ) -> None:
        task, seed = ("", 0) if job is None else job.job
        self._on_event(
            WorkerEvent(
                kind=kind,
                worker=self.number,
                at=time.time(),
                node=self._hello.node,
                pid=self._hello.pid,
                job=None if job is None else job.number,
                task=task,
                seed=seed,
                attempt=0 if job is None else job.losses,
                text=text,
                queued=queued,
            )
        )
