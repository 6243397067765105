"""Ray: a cluster, which may be this machine alone, and the workers that play episodes in it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.engine.tasks import cancelled
from swarm_ui.environment import check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra, brief
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.rollouts import Attempt, LocalWorker, OpenEnvironments, Rollouts, WorkerLost
from swarm_ui.trace.records import Episode
from swarm_ui.version import __version__

CONNECT = 10.0
"""Seconds in which the head of a cluster has to answer."""
REPORT, PATIENCE = 10.0, 300.0
"""Seconds without resources after which the waiting is reported, and after which it ends."""
CONTROL_CALLS = 8
"""Calls that a worker accepts beside episodes."""
CLOSING = 15.0
"""Seconds that a worker has to end an episode, or to close its environments, before it is left."""
_KEPT = 16
"""Streams whose policies a worker keeps; of older ones it reads them again."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RAISED = re.compile(r"[\w.]*(Error|Exception|Failure)\b.*: ")
"""The line of a traceback that names the exception."""
Sent = tuple[Any]
"""A reference to an object that was sent. Ray would read one outside of a tuple for every call."""


@contextmanager
def ray_cluster(
    address: str = "", *, cpus: int | None = None, resources: Mapping[str, float] | None = None
) -> Iterator[str]:
    """A running cluster by its address, or one on this machine that is stopped at the end.

    If this process is connected already, its cluster is used and stays running. Yields the address
    of the cluster.

    Args:
        address: ``HOST:PORT``; empty: the variable ``RAY_ADDRESS``, or else a local cluster.
        cpus, resources: what the local cluster has; by default what Ray finds.

    Raises ``MissingExtra`` without Ray, and ``ConfigError`` if no cluster answers there, or its
    version of Ray or Python differs.
    """
    ray = imported()
    if ray.is_initialized():
        yield ray.get_runtime_context().gcs_address
        return
    address = address or os.environ.get("RAY_ADDRESS", "")
    settings: dict[str, Any] = {"address": address}
    failed = f"no Ray cluster that can be used at '{address}'"
    expected = (
        ". Expected HOST:PORT of a running head, as 'ray start --head' prints it, with the same "
        "versions of Ray and Python as here"
    )
    if address in ("", "local"):
        # Ray reports the usage of clusters to its authors, unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        settings = {
            "address": "local", "num_cpus": cpus, "resources": dict(resources or {}) or None,
            "include_dashboard": False,
        }  # fmt: skip
        failed, expected = "no Ray cluster could be started here", ""
    try:
        if settings["address"] not in ("local", "auto"):  # Ray would wait minutes for an answer
            host, _, port = address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
        ray.init(**settings, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises plain ones when its processes start too slowly
        ray.shutdown()
        raise ConfigError(f"{failed}: {reason(error)}{expected}") from error
    # Keep Ray's messages about lost workers off standard output, which belongs to the program. Ray
    # has no public setting for it.
    from ray._private import worker

    worker._worker_logs_enabled = False  # type: ignore[attr-defined, unused-ignore]
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        worker._worker_logs_enabled = True  # type: ignore[attr-defined, unused-ignore]
        ray.shutdown()


def ray_rollouts(
    make_environment: MakeEnvironment | OpenEnvironments,
    *,
    workers: int | None = None,
    slots: int = 1,
    resources: Mapping[str, float] | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Rollouts:
    """Rollouts in a cluster, or, with a local one, in processes of this machine::

        with ray_cluster():
            async with ray_rollouts(PhoneEnvironment, workers=4) as rollouts:
                episodes = await rollout_many(rollouts, team, jobs)

    Each worker is a process (a Ray actor) with its own environments and its own copy of the policy.
    What is sent to workers is pickled by Ray.

    Args:
        make_environment: as for :class:`LocalWorker`; it is sent to each worker, and called there.
        workers: maximum number of workers; ``None``: as many as the cluster has room for.
        slots: environments of a worker, each with one episode at a time.
        resources: what Ray reserves for a worker, by Ray's names, such as ``{"CPU": 1, "GPU": 0.5,
            "emulator": 1}``; by default one CPU. Ray only counts them and limits no usage. A node
            declares its own with ``ray start --resources='{"emulator": 4}'``.
        warn: called with one line when a worker is lost, or waits for resources. After
            ``PATIENCE`` seconds the others play without it; if there are none, the stream raises
            ``ConfigError``.

    Raises ``ConfigError`` if a number is below 1, the environment cannot be sent, or this process
    is not connected to a cluster.
    """
    ray = connected("ray_rollouts")
    check_factory(make_environment)
    needs = dict({"CPU": 1.0} if resources is None else resources)
    if workers is None:
        room = ray.cluster_resources()
        fitting = [int(room.get(name, 0.0) / n + 1e-9) for name, n in needs.items() if n > 0]
        workers = max(1, min(fitting, default=1))
    if min(workers, slots) < 1:
        raise ConfigError(
            f"rollouts: {workers} workers with {slots} slots; expected at least 1 of each"
        )
    make = _sent(make_environment, "the environment")
    send = lru_cache(_KEPT)(lambda attempt: _sent(attempt, "the policy, or its intervention,"))
    fleet = [RayWorker(k, make, send, slots, needs, warn) for k in range(workers)]
    return Rollouts(fleet)


class RayWorker:
    """A process in the cluster, which Ray restarts when it is lost; see :func:`ray_rollouts`."""

    def __init__(
        self, number: int, make: Sent, send: Callable[[Attempt], Sent], slots: int,
        needs: Mapping[str, float], warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.slots = slots
        self._number, self._make, self._send = number, make, send
        self._needs, self._warn = needs, warn
        self.pid: int | None = None
        """The id of its process; ``None`` while it does not run."""
        self._ready: asyncio.Task[None] | None = None
        self._actor: Any = None

    async def start(self) -> None:
        """Wait until the process runs; see :class:`~swarm_ui.rollout.Worker`."""
        if self._ready is None:
            self._ready = asyncio.create_task(self._begin())
        await asyncio.shield(self._ready)

    async def _begin(self) -> None:
        if self._actor is None:
            custom = dict(self._needs)
            kind = imported().remote(_Player).options(
                max_restarts=-1, max_concurrency=self.slots + CONTROL_CALLS,
                num_cpus=custom.pop("CPU", 0), num_gpus=custom.pop("GPU", 0), resources=custom,
            )  # fmt: skip
            self._actor = kind.remote(os.getcwd())
        begin = self._actor.begin.options(max_task_retries=-1)
        loop = asyncio.get_running_loop()
        report = loop.call_later(REPORT, lambda: self._warn(self._missing()))
        try:
            begun = _answered(begin.remote(self._make, self.slots))
            node, self.pid, there = await asyncio.wait_for(begun, PATIENCE)
            if there != __version__:
                raise WorkerLost(f"{node} has version {there}, this process {__version__}")
        except (TimeoutError, WorkerLost) as error:
            told = f"is the same swarm-ui installed on every node? {error}"
            if isinstance(error, TimeoutError):
                told = self._missing()
            self._kill()
            self._warn(told := f"worker {self._number} does not play: {told}")
            raise ConfigError(told) from error
        finally:
            report.cancel()

    def _missing(self) -> str:
        """A description of the resources that the cluster lacks for it."""
        ray = imported()
        there, free = ray.cluster_resources(), ray.available_resources()
        listed = ", ".join(
            f"{name} {n:g} (the cluster has {there.get(name, 0.0):g}, free {free.get(name, 0.0):g})"
            for name, n in self._needs.items()
        )
        return (
            f"worker {self._number} waits for resources: it needs {listed} on one node. A node "
            "says what it has with: ray start --resources='{\"NAME\": COUNT}'"
        )

    async def play(self, job: Job, attempt: Attempt) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        ready = self._ready
        if ready is None or not ready.done():  # another slot has noticed the loss
            raise WorkerLost("it is being restarted", begun=False)
        call = self._actor.play.remote(job, self._send(attempt))
        try:
            data, notes = await _answered(call)
        except asyncio.CancelledError:
            imported().cancel(call)
            with contextlib.suppress(Exception):  # until it has ended, it needs its slot
                await asyncio.wait_for(_answered(call), CLOSING)
            raise
        except WorkerLost as loss:
            if self._ready is ready:  # several episodes may notice it; only the first counts
                self._ready = self.pid = None
                told = f"worker {self._number}: {loss}"
                self._warn(f"{told}; its episodes are played again elsewhere")
            raise
        return replace(msgspec.json.decode(data, type=Episode), notes=notes)

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        await cancelled([self._ready] if self._ready else [])
        running, self._ready, self.pid = self.pid is not None, None, None
        try:  # if it was lost, nothing is left to be closed; if it hangs, it is killed
            if running:
                with contextlib.suppress(WorkerLost, TimeoutError):
                    await asyncio.wait_for(_answered(self._actor.close.remote()), CLOSING)
        except Exception as error:
            raise EnvironmentFault(f"a worker could not be closed: {error}") from error
        finally:
            self._kill()

    def _kill(self) -> None:
        actor, self._actor = self._actor, None
        with contextlib.suppress(Exception):  # there is none, or Ray has forgotten it
            imported().kill(actor)


class _Player:
    """The process in the cluster. Ray runs it as an actor, in one event loop."""

    def __init__(self, folder: str) -> None:
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        self._worker: LocalWorker | None = None
        self._read = lru_cache(_KEPT)(lambda sent: asyncio.ensure_future(sent[0]))

    async def begin(self, make: Sent, slots: int) -> tuple[str, int, str]:
        """Get ready to play; gives the name of the node, the process id and the version."""
        self._worker = LocalWorker(await make[0], slots=slots)
        return platform.node(), os.getpid(), __version__

    async def play(self, job: Job, sent: Sent) -> tuple[bytes, tuple[Any, ...]]:
        """An episode as JSON, which is smaller and faster than a pickle, and its notes."""
        if self._worker is None:
            raise WorkerLost("its process was lost, and Ray has restarted it")
        episode = await self._worker.play(job, await asyncio.shield(self._read(sent)))
        return msgspec.json.encode(replace(episode, notes=())), episode.notes

    async def close(self) -> None:
        if self._worker is not None:
            await self._worker.close()


async def _answered(call: Any) -> Any:
    """The result of a call of a worker. Raises what the call raised there; ``WorkerLost`` if the
    worker, its node or the cluster failed; ``ConfigError`` if it cannot read what it was sent."""
    errors = imported().exceptions
    try:
        return await call
    except errors.RayTaskError as error:
        if isinstance(error.cause, errors.RayError):  # unpickling calls code of the values
            raise ConfigError(
                "a worker could not read what it was sent; is the same code installed there? "
                f"{reason(error)}"
            ) from error
        raise error.cause from error
    except errors.RayError as error:
        raise WorkerLost(reason(error)) from error


def _sent(value: Any, what: str) -> Sent:
    """A reference to a copy of a value. Raises ``ConfigError`` if the value cannot be pickled."""
    try:
        return (imported().put(value),)
    except ConfigError:  # of a model, which says what to do
        raise
    except Exception as error:  # pickling calls code of the values
        lines = [line for line in str(error).splitlines() if line.strip(" =")]
        why = brief(Exception(" ".join(lines[:3])))
        raise ConfigError(
            f"{what} cannot be sent to workers ({why}); a model can be held by an actor, which all "
            "workers ask: hold_model(factory) of swarm_ui.nodes"
        ) from error


def imported() -> Any:
    """The module ``ray``. Raises ``MissingExtra`` if it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", "a cluster", error.name or "ray") from error
    return ray


def connected(needed_for: str) -> Any:
    """The module ``ray``; raises ``ConfigError`` if this process is not connected to a cluster."""
    ray = imported()
    if not ray.is_initialized():
        raise ConfigError(
            f"{needed_for} needs a Ray cluster, and this process is not connected to one. "
            "Use it inside: with ray_cluster(): (swarm_ui.rollout), or after ray.init()"
        )
    return ray


def reason(error: BaseException) -> str:
    """The reason that Ray gives for a failure, in one line; of a traceback, only the last
    exception."""
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines()]
    raised = [line for line in lines if _RAISED.match(line)]
    told = raised[-1] if raised else " ".join(filter(None, lines))
    return brief(Exception(told or type(error).__name__), most=250)
