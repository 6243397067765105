"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable
from typing import Any

from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.rollout.cluster import (
    WorkerResources,
    connected,
    imported,
    listed,
    node_resources,
    reason,
)
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.remote import Played, Player, Setup, remote_rollouts, sendable
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import PerWorker, Work, WorkerLost
from swarm_ui.version import __version__

REPORT = 10.0
"""Seconds without resources after which the waiting is reported."""
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
        workers: maximum number of workers; ``None``: as many as the cluster has room for.
        resources: what a worker needs; by default one CPU.
        patience: seconds that a worker waits for resources. If no worker runs then, the stream
            raises ``ConfigError``.
        make_environment, slots, retries, losses, warn: see
            :func:`~swarm_ui.rollout.process_rollouts`.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: a number is below 1, or this process is not connected to a cluster.
    """
    connected("ray_rollouts")
    needs = resources or WorkerResources()
    if workers is None:
        workers = max(1, needs.fits(node_resources()))
    if min(workers, slots) < 1:
        raise ConfigError(f"ray_rollouts: {workers} workers with {slots} slots; expected 1 up")
    fleet = _Fleet((make_environment, slots, retries), needs, patience, warn)
    return remote_rollouts(fleet, workers, slots, losses, warn)


class _Fleet:
    """The workers of one cluster."""

    def __init__(
        self, setup: Setup, needs: WorkerResources, patience: float, warn: Callable[[str], None]
    ) -> None:
        self._setup, self._needs, self._patience, self._warn = setup, needs, patience, warn
        self._sent: Any = None
        self.running = 0

    def send(self, value: Any) -> list[Any]:
        # In a list, because Ray would read it again for every call.
        return [imported().put(value)]

    async def begin(self, number: int) -> _Actor:
        ray, needs = imported(), self._needs
        if self._sent is None:
            self._sent = sendable(self._setup, "the environment", ray.put)
        kind = ray.remote(_Served).options(
            max_restarts=0, max_concurrency=self._setup[1] + CONTROL_CALLS,
            num_cpus=needs.cpus, num_gpus=needs.gpus, resources=dict(needs.custom),
        )  # fmt: skip
        handle = kind.remote(self._sent, os.getcwd())
        report = asyncio.get_running_loop().call_later(
            REPORT, lambda: self._warn(self._missing(number))
        )
        try:
            hello = _answered(handle.hello.remote(platform.node()), "", starting=True)
            node, pid, version = await asyncio.wait_for(hello, self._patience)
            if version != __version__:
                raise ConfigError(
                    f"the worker on {node} has swarm-ui {version}, this process {__version__}; "
                    "install the same version on every node"
                )
        except TimeoutError as error:
            _kill(handle)
            # Without resources for it, the other workers play.
            kind = WorkerLost if self.running else ConfigError
            raise kind(self._missing(number)) from error
        except BaseException:
            _kill(handle)
            raise
        finally:
            report.cancel()
        self.running += 1
        return _Actor(handle, pid, f" on {node}", self)

    def _missing(self, number: int) -> str:
        """A description of the resources that the cluster lacks for a worker."""
        nodes, names = node_resources(), self._needs.amounts
        most = {name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in names}
        free = imported().available_resources()
        return (
            f"worker {number} waits for resources: it needs {self._needs}; most on a node of the "
            f"cluster: {listed(most)}; free in the cluster, beside what starting workers need: "
            f"{listed({name: free.get(name, 0.0) for name in names})}. A node says what it has "
            "with: ray start --resources='{\"NAME\": COUNT}'"
        )


class _Actor:
    """A worker that runs in the cluster."""

    def __init__(self, handle: Any, pid: int, where: str, fleet: _Fleet) -> None:
        self.pid, self.where = pid, where
        self._handle, self._fleet = handle, fleet

    async def ask(self, method: str, *arguments: Any) -> Any:
        call = getattr(self._handle, method).remote(*arguments)
        try:
            return await _answered(call, self.where)
        except asyncio.CancelledError:
            imported().cancel(call)
            raise

    def kill(self) -> None:
        self._fleet.running -= 1
        _kill(self._handle)


class _Served:
    """The process in the cluster. Ray runs it as an actor, in one event loop."""

    def __init__(self, setup: Setup, folder: str) -> None:
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        self._player = Player(setup, _loaded)

    async def hello(self, node: str) -> tuple[str, int, str]:
        """The address of the node (``node`` if Ray knows none), process id and version."""
        with contextlib.suppress(MissingExtra):
            node = str(imported().util.get_node_ip_address())
        return node, os.getpid(), __version__

    async def play(self, job: Job, key: str, sent: list[Any]) -> Played:
        return await self._player.play(job, key, sent)

    async def close(self) -> Exception | None:
        return await self._player.close()


async def _loaded(sent: list[Any]) -> Work:
    work: Work = await sent[0]
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
