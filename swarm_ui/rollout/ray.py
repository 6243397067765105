"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.rollout.cluster import WorkerResources, connected, imported, node_resources, reason
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.remote import Played, Player, RemoteWorker, newest, sendable
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import PerWorker, Work, WorkerLost
from swarm_ui.version import __version__

FIRST_REPORT, NEXT_REPORTS = 10.0, 30.0
"""Seconds without resources after which the waiting is reported, first and then again."""
CONTROL_CALLS = 8
"""Calls that a worker accepts beside episodes."""


def ray_rollouts(
    make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
    *,
    workers: int | None = None,
    slots: int = 1,
    resources: WorkerResources | None = None,
    retries: int = 1,
    losses: int = 3,
    patience: float = 300.0,
    warn: Callable[[str], None] = lambda _: None,
) -> Rollouts:
    """Rollouts in a cluster::

        with ray_cluster():
            async with ray_rollouts(PhoneEnvironment, workers=4) as rollouts:
                episodes = await rollout_many(rollouts, team, jobs)

    Each worker is a process (a Ray actor) with its own environments and its own copy of the policy.
    What is sent to workers is pickled by Ray.

    Args:
        make_environment: called in each worker; it is sent there.
        workers: maximum number of workers; ``None``: as many as the cluster has room for.
        slots: environments of a worker, each with one episode at a time.
        resources: what a worker needs; by default one CPU.
        retries: how often an episode is played again in a worker after a fault.
        losses: how often a job is played again after the loss of its worker, before its episode
            has a fault; and how often a worker is replaced in a row without a finished episode.
        patience: seconds to wait for resources while no worker could be started.
        warn: called with one line when a worker waits for resources or is lost.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: a number is below 1, or this process is not connected to a cluster.
    """
    for name, number in (("workers", workers), ("slots", slots)):
        if number is not None and number < 1:
            raise ConfigError(f"ray_rollouts: '{name}' must be at least 1, got {number}")
    connected("ray_rollouts")
    needs = resources or WorkerResources()
    if workers is None:
        workers = max(1, needs.fits(node_resources()))
    setup = (make_environment, slots, retries)
    begin = _Fleet(setup, slots, needs, patience, warn).begin
    return Rollouts(
        [RemoteWorker(k, slots, begin, losses=losses, warn=warn) for k in range(workers)],
        losses=losses,
    )


class _Fleet:
    """Starts the workers of one cluster, and knows what was sent to them."""

    def __init__(
        self,
        setup: Any,
        slots: int,
        needs: WorkerResources,
        patience: float,
        warn: Callable[[str], None],
    ) -> None:
        self._setup, self._slots, self._needs = setup, slots, needs
        self._patience, self._warn = patience, warn
        self._sent: Any = None
        self._works: dict[str, Any] = {}
        self._running = 0
        self._since: float | None = None
        """When the first worker was asked for, or the last one was lost."""

    async def begin(self, number: int) -> _Actor:
        """Start a worker; see :class:`~swarm_ui.rollout.remote.RemoteWorker`.

        Raises:
            WorkerLost: it was lost before it answered.
            ConfigError: the cluster does not have enough resources, or the worker has another
                version.
        """
        ray = imported()
        if self._sent is None:
            self._sent = sendable(self._setup, "the environment", ray.put)
        options = {**self._needs.options, "max_concurrency": self._slots + CONTROL_CALLS}
        kind = ray.remote(_Served).options(max_restarts=0, **options)
        handle = kind.remote(self._sent, os.getcwd())
        try:
            node, pid, version = await self._hello(handle, number)
            if version != __version__:
                raise ConfigError(
                    f"the worker on {node} has swarm-ui {version}, this process {__version__}; "
                    "install the same version on every node"
                )
        except BaseException:
            _kill(handle)
            self._since = time.monotonic()
            raise
        self._running += 1
        return _Actor(handle, pid, f" on {node}", self)

    def reference(self, work: Work) -> Any:
        """The reference to a work, which is sent once. Raises ``ConfigError`` if it is not data."""
        what = "the policy, or its intervention,"
        return newest(self._works, work.key, lambda: sendable(work, what, imported().put))

    def ended(self) -> None:
        """A worker has ended."""
        self._running -= 1
        self._since = time.monotonic()

    async def _hello(self, handle: Any, number: int) -> tuple[str, int, str]:
        """The first answer of a worker, when the cluster has room for it."""
        hello = _answered(handle.hello.remote(platform.node()), "", starting=True)
        waiting, pause = asyncio.ensure_future(hello), FIRST_REPORT
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=min(pause, self._left()))
                if done:
                    return waiting.result()  # type: ignore[no-any-return]
                if self._left() <= 0:
                    raise ConfigError(self._missing(number))
                self._warn(self._missing(number))
                pause = NEXT_REPORTS
        finally:
            waiting.cancel()

    def _left(self) -> float:
        """Remaining seconds to wait for resources."""
        if self._running or self._since is None:
            self._since = time.monotonic()
        return max(0.0, self._patience - (time.monotonic() - self._since))

    def _missing(self, number: int) -> str:
        """A description of the resources that the cluster lacks for a worker."""
        nodes, names = node_resources(), self._needs.amounts
        if not self._needs.fits(nodes):
            most = {
                name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in names
            }
            return (
                f"worker {number} waits: no node of the cluster has {self._needs} (most on a node: "
                f"{_listed(most)}). A node says what it has with: ray start "
                "--resources='{\"NAME\": COUNT}'"
            )
        free = imported().available_resources()
        return (
            f"worker {number} is not running yet: it needs {self._needs}; free in the cluster, "
            f"beside what starting workers need: {_listed({n: free.get(n, 0.0) for n in names})}"
        )


class _Actor:
    """A worker that runs in the cluster."""

    def __init__(self, handle: Any, pid: int, where: str, fleet: _Fleet) -> None:
        self.pid, self.where = pid, where
        self._handle, self._fleet = handle, fleet

    async def play(self, job: Job, work: Work) -> Played:
        # In a list, because Ray would read it again for every call.
        call = self._handle.play.remote(job, work.key, [self._fleet.reference(work)])
        try:
            played: Played = await _answered(call, self.where)
        except asyncio.CancelledError:
            imported().cancel(call)
            raise
        return played

    async def close(self) -> Exception | None:
        error: Exception | None = await _answered(self._handle.close.remote(), self.where)
        return error

    def kill(self) -> None:
        self._fleet.ended()
        _kill(self._handle)


class _Served:
    """The process in the cluster. Ray runs it as an actor, in one event loop."""

    def __init__(self, setup: Any, folder: str) -> None:
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        self._player = Player(*setup)

    async def hello(self, node: str) -> tuple[str, int, str]:
        """The address of the node (``node`` if Ray knows none), process id and version."""
        with contextlib.suppress(MissingExtra):
            node = str(imported().util.get_node_ip_address())
        return node, os.getpid(), __version__

    async def play(self, job: Job, key: str, reference: list[Any]) -> Played:
        """See :meth:`Player.play`. ``reference``: the one to the work, in a list."""
        return await self._player.play(job, key, partial(_read, reference[0]))

    async def close(self) -> Exception | None:
        """See :meth:`Player.close`."""
        return await self._player.close()


def _listed(amounts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in amounts.items()) or "nothing"


async def _read(reference: Any) -> Work:
    work: Work = await reference
    return work


async def _answered(call: Any, where: str, *, starting: bool = False) -> Any:
    """The result of a call of a worker. ``starting``: it is the first one.

    Raises:
        WorkerLost: the worker or its node died.
        ConfigError: the worker could not be made, or not read what it was sent.
        EnvironmentFault: any other failure of the cluster.
    """
    errors = imported().exceptions
    try:
        return await call
    except errors.RayTaskError as error:
        raise ConfigError(
            f"a worker{where} could not read or send data; is the same code installed there? "
            f"{reason(error)}"
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
        raise WorkerLost(reason(error)) from error
    except errors.RayError as error:
        raise EnvironmentFault(f"the Ray cluster failed: {reason(error)}") from error


def _kill(handle: Any) -> None:
    with contextlib.suppress(Exception):  # Ray may have forgotten it
        imported().kill(handle)
