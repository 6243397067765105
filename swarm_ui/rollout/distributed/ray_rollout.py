"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sized
from dataclasses import dataclass
from typing import Any, Self

from swarm_ui.errors import ConfigError, EnvironmentFault, Failure, brief
from swarm_ui.rollout.distributed.cluster import connected, imported, node_resources
from swarm_ui.rollout.distributed.job_queue import JobQueue, NumberedJob
from swarm_ui.rollout.distributed.remote_worker import (
    GivenUp,
    Lost,
    NotBegun,
    RemoteWorker,
    Result,
)
from swarm_ui.rollout.distributed.resources import WorkerResources
from swarm_ui.rollout.distributed.worker import Setup, Work
from swarm_ui.rollout.episode_spans import current_headers
from swarm_ui.rollout.intervention import Intervene, KeepsNotes
from swarm_ui.rollout.policy import Policy
from swarm_ui.rollout.pool import Job, MakeEnvironment, Restarts
from swarm_ui.rollout.rollouts import PerWorker
from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import OnWorkerEvent

LOSSES = Restarts(retries=3, limit=3, backoff=1.0)
"""The default behaviour after the loss of a worker."""
_Item = tuple[int, Episode, object] | BaseException | None
"""An episode with its number and notes, an error that ends the stream, or its end."""


@dataclass(slots=True)
class _Slot:
    """A place for one episode at a time in a worker."""

    worker: RemoteWorker
    fit: bool = True
    """False after the limit of consecutive replacements of its environment."""


@dataclass(slots=True)
class _Stream:
    """A stream that is played."""

    number: int
    queue: JobQueue
    work: Any
    """Reference to the ``Work`` in the object store."""
    slots: list[_Slot]
    ready: asyncio.Queue[_Item]
    active: int
    """Number of slots that still take jobs."""


class RayRollout:
    """Plays episodes in workers of a cluster; a :class:`~swarm_ui.rollout.rollouts.Rollouts`::

        with ray_cluster():
            async with RayRollout(PhoneEnvironment, workers=4) as rollouts:
                async for number, episode in rollouts.stream(policy, jobs):
                    ...

    Each worker is a process (a Ray actor) with its own environments and its own copy of the policy.
    What is sent to workers is pickled by Ray.
    """

    def __init__(
        self,
        make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
        *,
        workers: int | None = None,
        concurrency_per_worker: int = 1,
        resources: WorkerResources | None = None,
        restarts: Restarts | None = None,
        losses: Restarts = LOSSES,
        patience: float = 300.0,
        on_event: OnWorkerEvent = lambda _: None,
    ) -> None:
        """
        Args:
            make_environment: called in each worker; it is sent there.
            workers: maximum number of workers; ``None``: as many as the cluster has room for.
            concurrency_per_worker: environments of a worker, each with one episode at a time.
            resources: what a worker needs; by default one CPU.
            restarts: what happens in a worker after a fault of an environment.
            losses: what happens after the loss of a worker. ``retries``: how often a job is played
                again on another worker; after that, its episode has a fault. ``limit``: how often a
                worker is replaced in a row without a completed episode.
            patience: seconds to wait for resources while no worker could be started.
            on_event: called with what happens to workers.

        Raises:
            MissingExtra: Ray is not installed.
            ConfigError: a number is below 1, or this process is not connected to a cluster.
        """
        for name, number in (
            ("workers", workers), ("concurrency_per_worker", concurrency_per_worker)
        ):  # fmt: skip
            if number is not None and number < 1:
                raise ConfigError(f"RayRollout: '{name}' must be at least 1, got {number}")
        connected("RayRollout")
        self._setup = Setup(
            make_environment=make_environment,
            concurrency=concurrency_per_worker,
            restarts=restarts or Restarts(),
            folder=os.getcwd(),
        )
        self._count, self._resources = workers, resources or WorkerResources()
        self._losses, self._patience, self._on_event = losses, patience, on_event
        self._workers: list[RemoteWorker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams = 0
        self._began = time.monotonic()
        self._environment = ""

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent episodes."""
        if self._count is None:
            self._count = max(1, self._resources.fits(node_resources()))
        return self._count * self._setup.concurrency

    @property
    def workers(self) -> int:
        """The number of workers that are running."""
        return sum(worker.started for worker in self._workers)

    async def stream(
        self,
        policy: Policy | PerWorker[Policy],
        jobs: Iterable[Job] | AsyncIterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; see :meth:`swarm_ui.rollout.rollouts.Rollouts.stream`.

        Raises:
            ConfigError: what a worker needs cannot be sent, or no node has the resources for one.
            EnvironmentFault: every worker was lost too often.
        """
        if self._tasks:
            raise ConfigError(
                "these workers are already in use: they play one stream of episodes at a time"
            )
        queue = JobQueue(jobs)
        try:
            first = await queue.take()
            if first is None:
                return
            queue.put_back(first)
            self._began = time.monotonic()
            work = Work(
                policy=policy, intervention=intervention, max_steps=max_steps,
                headers=current_headers(),
            )  # fmt: skip
            most = len(jobs) if isinstance(jobs, Sized) else self.concurrency
            stream = self._begin(queue, work, most)
            create = asyncio.get_running_loop().create_task
            self._tasks = {create(self._fill(slot, stream)) for slot in stream.slots}
            while (item := await stream.ready.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                number, episode, notes = item
                if notes is not None and isinstance(intervention, KeepsNotes):
                    intervention.add_notes(episode, notes)
                yield number, episode
        finally:
            await self._stop()
            await queue.close()

    async def close(self) -> None:
        """Cancel running episodes, close every environment, and end the workers.

        Raises:
            EnvironmentFault: an environment could not be closed; all others are closed.
        """
        await self._stop()
        workers, self._workers = self._workers, []
        ended = await asyncio.gather(*(w.close() for w in workers), return_exceptions=True)
        for error in ended:
            if isinstance(error, BaseException):
                raise error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # An exception from the block takes precedence over a failure to close.
        with contextlib.suppress(*(() if error is None else (EnvironmentFault,))):
            await self.close()

    def _begin(self, queue: JobQueue, work: Work, most: int) -> _Stream:
        """A stream with at most ``most`` slots."""
        if not self._workers:
            setup = _sent(self._setup, "the environment")
            self._workers = [
                RemoteWorker(
                    number, setup, self._setup.concurrency, self._resources, self._losses,
                    self._left, self._on_event,
                )
                for number in range(self.concurrency // self._setup.concurrency)
            ]  # fmt: skip
        self._streams += 1
        # The first slots are on different workers, so that few jobs are spread.
        slots = [_Slot(worker) for _ in range(self._setup.concurrency) for worker in self._workers]
        del slots[most:]
        reference = _sent(work, "the policy, or its intervention,")
        size = len(slots)
        return _Stream(self._streams, queue, reference, slots, asyncio.Queue(size), size)

    def _left(self) -> float:
        """Remaining seconds to wait for resources, counted since the stream began or the last
        worker was lost."""
        if self.workers:
            self._began = time.monotonic()
        return max(0.0, self._patience - (time.monotonic() - self._began))

    async def _fill(self, slot: _Slot, stream: _Stream) -> None:
        """Play jobs in one slot until none remain, or its worker is given up."""
        try:
            while slot.fit or not any(other.fit for other in stream.slots):
                try:
                    await slot.worker.ready(stream.number, stream.work)
                except Lost:
                    self._began = time.monotonic()
                    continue
                taken = await stream.queue.take()
                if taken is None:
                    await stream.ready.put(None)
                    return
                await self._play(slot, stream, taken)
        except asyncio.CancelledError:
            raise
        except GivenUp as error:
            slot.fit = False
            if stream.active == 1:
                await stream.ready.put(EnvironmentFault(
                    f"every worker was lost too often; the last: {error}. All finished episodes "
                    "were delivered"
                ))  # fmt: skip
        except BaseException as error:  # raised by the stream: no job is lost in silence
            await stream.ready.put(error)
        finally:
            stream.active -= 1

    async def _play(self, slot: _Slot, stream: _Stream, taken: NumberedJob) -> None:
        """Play one job. If the worker is lost, put the job back, up to the limit of losses."""
        try:
            played = await slot.worker.play(taken)
        except NotBegun:  # no loss of this job
            stream.queue.put_back(taken)
            return
        except Lost as loss:
            self._began = time.monotonic()
            again = taken._replace(losses=taken.losses + 1)
            if again.losses <= self._losses.retries:
                stream.queue.put_back(again)
                return
            played = Result(self._lost_episode(slot, again, loss), None, slot.fit)
        slot.fit = played.fit
        self._environment = played.episode.environment or self._environment
        await stream.ready.put((taken.number, played.episode, played.notes))
        stream.queue.finish()

    def _lost_episode(self, slot: _Slot, lost: NumberedJob, loss: Lost) -> Episode:
        fault = EnvironmentFault(f"the episode's worker was lost {lost.losses} times; {loss}")
        return Episode(
            environment=self._environment,
            task=lost.job[0],
            seed=lost.job[1],
            policy=slot.worker.policy_name,
            fault=Failure.of(fault),
        )

    async def _stop(self) -> None:
        """End the stream's tasks, and the episodes that are still running."""
        tasks, self._tasks = self._tasks, set()
        running = any(not task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if running:
            await asyncio.gather(*(w.stop() for w in self._workers), return_exceptions=True)


def _sent(value: Any, what: str) -> Any:
    """The reference to a value in the object store. Raises ``ConfigError`` if it is not data."""
    ray = imported()
    try:
        return ray.put(value)
    except ConfigError:  # of a model, which says what to do
        raise
    except Exception as error:  # pickling calls code of the values
        lines = [line for line in str(error).splitlines() if line.strip(" =")]
        why = brief(Exception(" ".join(lines[:3])))
        raise ConfigError(
            f"{what} cannot be sent to workers ({why}); give PerWorker(function), which makes it "
            "in each worker"
        ) from error
