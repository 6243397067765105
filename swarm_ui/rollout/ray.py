"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from swarm_ui.environment import check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra
from swarm_ui.rollout.cluster import connected, fitting, imported, missing, node_resources, reason
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.remote import Fleet, Player, sendable
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import PerWorker, WorkerLost
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
    resources: Mapping[str, float] | None = None,
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
        resources: what Ray reserves for a worker, by Ray's names, such as ``{"CPU": 1, "GPU": 0.5,
            "emulator": 1}``; by default one CPU. Ray only counts them and limits no usage. A node
            declares its own with ``ray start --resources='{"emulator": 4}'``.
        patience: seconds that a worker waits for resources. Then the others play without it; if
            there are none, the stream raises ``ConfigError``.
        make_environment, slots, retries, losses, warn: see
            :func:`~swarm_ui.rollout.process_rollouts`.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: a number is below 1, or this process is not connected to a cluster.
    """
    ray = connected("ray_rollouts")
    if not isinstance(make_environment, PerWorker):
        check_factory(make_environment)
    needs = dict({"CPU": 1.0} if resources is None else resources)
    if workers is None:
        workers = max(1, fitting(needs, node_resources()))
    setup = (sendable(make_environment, "the environment", ray.put),)
    begin = partial(_begin, (setup, slots, retries), needs, patience, warn)
    # In a tuple, because Ray would read it again for every call.
    return Fleet(begin, lambda value: (ray.put(value),), slots, losses, warn).rollouts(workers)


async def _begin(
    arguments: tuple[Any, int, int],
    needs: Mapping[str, float],
    patience: float,
    warn: Callable[[str], None],
    number: int,
) -> _Actor:
    custom, calls = dict(needs), arguments[1] + CONTROL_CALLS
    kind = imported().remote(_Served).options(
        max_restarts=0, max_concurrency=calls, num_cpus=custom.pop("CPU", 0),
        num_gpus=custom.pop("GPU", 0), resources=custom,
    )  # fmt: skip
    handle = kind.remote(os.getcwd(), *arguments)
    report = asyncio.get_running_loop().call_later(REPORT, lambda: warn(missing(number, needs)))
    try:
        hello = _answered(handle.hello.remote(platform.node()), starting=True)
        node, pid, version = await asyncio.wait_for(hello, patience)
        if version != __version__:
            raise ConfigError(
                f"the worker on {node} has swarm-ui {version}, this process {__version__}; "
                "install the same version on every node"
            )
    except BaseException as error:
        _kill(handle)
        if isinstance(error, TimeoutError):
            raise ConfigError(missing(number, needs)) from error
        raise
    finally:
        report.cancel()
    return _Actor(handle, pid, f" on {node}")


class _Actor:
    """A worker that runs in the cluster."""

    def __init__(self, handle: Any, pid: int, where: str) -> None:
        self._handle, self.pid, self.where = handle, pid, where

    async def ask(self, method: str, *arguments: Any) -> bytes:
        call = getattr(self._handle, method).remote(*arguments)
        try:
            answer: bytes = await _answered(call)
        except asyncio.CancelledError:
            imported().cancel(call)
            raise
        return answer

    def kill(self) -> None:
        _kill(self._handle)


class _Served:
    """The process in the cluster. Ray runs it as an actor, in one event loop."""

    def __init__(self, folder: str, setup: tuple[Any], slots: int, retries: int) -> None:
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        self._player = Player(_loaded, setup, slots, retries)

    async def hello(self, node: str) -> tuple[str, int, str]:
        """The address of the node (``node`` if Ray knows none), process id and version."""
        with contextlib.suppress(MissingExtra):
            node = str(imported().util.get_node_ip_address())
        return node, os.getpid(), __version__

    async def play(self, job: Job, sent: tuple[Any]) -> bytes:
        return await self._player.play(job, sent)

    async def close(self) -> bytes:
        return await self._player.close()


async def _loaded(sent: tuple[Any]) -> Any:
    return await sent[0]


async def _answered(call: Any, *, starting: bool = False) -> Any:
    """The result of a call of a worker. ``starting``: it is the first one.

    Raises:
        WorkerLost: the worker or its node died.
        ConfigError: the worker could not be made.
        EnvironmentFault: any other failure of the cluster.
    """
    errors = imported().exceptions
    try:
        return await call
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
