"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import Self

from swarm_ui.rollout.distributed.resources import WorkerResources
from swarm_ui.rollout.intervention import Intervene
from swarm_ui.rollout.policy import Policy
from swarm_ui.rollout.pool import Job, MakeEnvironment, Restarts
from swarm_ui.rollout.rollouts import PerWorker
from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import OnWorkerEvent

LOSSES = Restarts(retries=3, limit=3, backoff=1.0)
"""The default behaviour after the loss of a worker."""


class RayRollout:
    """Plays episodes in workers of a cluster; a :class:`~swarm_ui.rollout.rollouts.Rollouts`::

        with ray_cluster():
            async with RayRollout(PhoneEnvironment, workers=4) as rollouts:
                async for number, episode in rollouts.stream(policy, jobs):
                    ...

    Each worker is a process (a Ray actor) with its own environments and its own copy of the policy.
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
        """
        raise NotImplementedError

    def stream(
        self,
        policy: Policy | PerWorker[Policy],
        jobs: Iterable[Job] | AsyncIterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; see :meth:`swarm_ui.rollout.rollouts.Rollouts.stream`.

        Raises:
            ConfigError: what a worker needs cannot be sent, or nothing in the cluster can hold one.
            EnvironmentFault: every worker was lost too often.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Cancel running episodes, close every environment, and end the workers."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.close()
