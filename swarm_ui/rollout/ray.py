"""Plays episodes in the workers of a Ray cluster, which may be this machine alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.environment import check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, brief
from swarm_ui.rollout.cluster import connected, imported, missing, reason, room_for
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.rollouts import Rollouts
from swarm_ui.rollout.worker import LocalWorker, PerWorker, Work, WorkerLost
from swarm_ui.trace.records import Episode
from swarm_ui.version import __version__

REPORT, PATIENCE = 10.0, 300.0
"""Seconds without resources after which the waiting is reported, and after which it ends."""
CONTROL_CALLS = 8
"""Calls that a worker accepts beside episodes."""
CLOSING = 15.0
"""Seconds that a worker has to close its environments before it is killed."""
_LONGEST = 60.0
"""Most seconds between two attempts to start a worker that is lost again and again."""
_KEPT_WORKS = 16
"""Streams whose policies a worker keeps; of older ones it reads them again."""


def ray_rollouts(
    make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
    *,
    workers: int | None = None,
    slots: int = 1,
    resources: Mapping[str, float] | None = None,
    losses: int = 3,
    warn: Callable[[str], None] = lambda _: None,
) -> Rollouts:
    """Rollouts in a cluster, or, with a local one, in processes of this machine::

        with ray_cluster():
            async with ray_rollouts(PhoneEnvironment, workers=4) as rollouts:
                episodes = await rollout_many(rollouts, team, jobs)

    Each worker is a process (a Ray actor) with its own environments and its own copy of the policy.
    What is sent to workers is pickled by Ray.

    Args:
        make_environment: called in each worker; it is sent there.
        workers: maximum number of workers; ``None``: as many as the cluster has room for.
        slots: environments of a worker, each with one episode at a time.
        resources: what Ray reserves for a worker, by Ray's names, such as ``{"CPU": 1, "GPU": 0.5,
            "emulator": 1}``; by default one CPU. Ray only counts them and limits no usage. A node
            declares its own with ``ray start --resources='{"emulator": 4}'``.
        losses: how often a job is played again after the loss of its worker, before its episode
            has a fault; and how often a worker is replaced in a row without a finished episode.
        warn: called with one line when a worker is lost, or waits for resources. After
            ``PATIENCE`` seconds the others play without it; if there are none, the stream raises
            ``ConfigError``.

    Raises ``ConfigError`` if a number is below 1, the environment cannot be sent, or this process
    is not connected to a cluster.
    """
    ray = connected("ray_rollouts")
    if not isinstance(make_environment, PerWorker):
        check_factory(make_environment)
    needs = dict({"CPU": 1.0} if resources is None else resources)
    workers = room_for(needs) if workers is None else workers
    if min(workers, slots) < 1:
        raise ConfigError(
            f"rollouts: {workers} workers with {slots} slots; expected at least 1 of each"
        )
    # In a tuple, because Ray would read it again for every call.
    make = (_sendable(make_environment, "the environment", ray.put),)
    send = lru_cache(_KEPT_WORKS)(
        lambda work: (_sendable(work, "the policy, or its intervention,", ray.put),)
    )
    fleet = [RayWorker(k, make, send, slots, losses, needs, warn) for k in range(workers)]
    return Rollouts(fleet, losses=losses)


class RayWorker:
    """A worker in the cluster, and those that replace it; see :func:`ray_rollouts`."""

    def __init__(
        self, number: int, make: tuple[Any], send: Callable[[Work], tuple[Any]], slots: int,
        losses: int, needs: Mapping[str, float], warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.number, self.slots = number, slots
        self._make, self._send = make, send
        self._losses, self._needs, self._warn = losses, needs, warn
        self.pid: int | None = None
        """The id of its process; ``None`` while it does not run."""
        self._starting = asyncio.Lock()
        self._actor: Any = None
        self._where = ""
        self._row = 0  # losses since the last finished episode
        self._last = ""
        self._refused: ConfigError | None = None

    async def start(self) -> None:
        """Start the process if it does not run; see :class:`~swarm_ui.rollout.Worker`."""
        async with self._starting:
            while self._actor is None:
                if self._refused is not None:
                    raise self._refused
                if self._row > self._losses:
                    raise WorkerLost(self._last)
                if self._row:
                    await asyncio.sleep(min(_LONGEST, 2.0 ** (self._row - 1)))
                try:
                    self._actor = await self._begin()
                except WorkerLost as loss:
                    self._lose(loss)
                except ConfigError as error:
                    self._refused = error
                    self._warn(f"worker {self.number} does not play: {error}")

    async def _begin(self) -> Any:
        """A running actor. Raises ``ConfigError`` if there is no room for it."""
        custom = dict(self._needs)
        kind = imported().remote(_Player).options(
            max_restarts=0, max_concurrency=self.slots + CONTROL_CALLS,
            num_cpus=custom.pop("CPU", 0), num_gpus=custom.pop("GPU", 0), resources=custom,
        )  # fmt: skip
        actor = kind.remote(os.getcwd(), self._make, self.slots)
        report = asyncio.get_running_loop().call_later(
            REPORT, lambda: self._warn(missing(self.number, self._needs))
        )
        try:
            hello = _answered(actor.hello.remote(), starting=True)
            node, self.pid, version = await asyncio.wait_for(hello, PATIENCE)
            if version != __version__:
                raise ConfigError(
                    f"the worker on {node} has swarm-ui {version}, this process {__version__}; "
                    "install the same version on every node"
                )
        except BaseException as error:
            _kill(actor)
            if isinstance(error, TimeoutError):
                raise ConfigError(missing(self.number, self._needs)) from error
            raise
        finally:
            report.cancel()
        self._where = f" on {node}"
        return actor

    async def play(self, job: Job, work: Work) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        actor = self._actor
        if actor is None:  # another slot has noticed the loss
            raise WorkerLost(self._last, begun=False)
        call = actor.play.remote(job, self._send(work))
        try:
            data, notes = await _answered(call)
        except asyncio.CancelledError:
            imported().cancel(call)
            raise
        except WorkerLost as loss:
            if self._actor is actor:  # several episodes may notice it; only the first counts
                _kill(actor)
                self._actor = self.pid = None
                self._lose(loss)
            raise
        episode = msgspec.json.decode(data, type=Episode)
        if episode.fault is None:
            self._row = 0
        return replace(episode, notes=notes) if notes else episode

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        actor, self._actor, self.pid = self._actor, None, None
        if actor is None:
            return
        try:  # if it was lost, nothing is left to be closed; if it hangs, it is killed
            with contextlib.suppress(WorkerLost, TimeoutError):
                await asyncio.wait_for(_answered(actor.close.remote()), CLOSING)
        except Exception as error:
            raise EnvironmentFault(f"a worker could not be closed: {error}") from error
        finally:
            _kill(actor)

    def _lose(self, loss: WorkerLost) -> None:
        self._row += 1
        self._last = f"worker {self.number}{self._where}: {loss}"
        end = "its episodes are played again elsewhere"
        if self._row > self._losses:
            end += "; it was lost too often and is not started again"
        self._warn(f"{self._last}; {end}")


class _Player:
    """The process in the cluster. Ray runs it as an actor, in one event loop."""

    def __init__(self, folder: str, make: tuple[Any], slots: int) -> None:
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        made: PerWorker[MakeEnvironment] = PerWorker(partial(_received, make))
        self._worker = LocalWorker(made, slots=slots)
        self._read = lru_cache(_KEPT_WORKS)(lambda sent: asyncio.ensure_future(_received(sent)))

    async def hello(self) -> tuple[str, int, str]:
        """The name of the node, process id and version."""
        return platform.node(), os.getpid(), __version__

    async def play(self, job: Job, sent: tuple[Any]) -> tuple[bytes, tuple[Any, ...]]:
        """An episode as JSON, which is smaller and faster than a pickle, and its notes."""
        episode = await self._worker.play(job, await asyncio.shield(self._read(sent)))
        return msgspec.json.encode(replace(episode, notes=())), episode.notes

    async def close(self) -> None:
        await self._worker.close()


async def _received(sent: tuple[Any]) -> Any:
    try:
        return await sent[0]
    except Exception as error:  # unpickling calls code of the values
        raise ConfigError(
            f"a worker on {platform.node()} could not read what it was sent; is the same code "
            f"installed there? {brief(error)}"
        ) from error


async def _answered(call: Any, *, starting: bool = False) -> Any:
    """The result of a call of a worker. ``starting``: it is the first one.

    Raises what the call raised there; ``WorkerLost`` if the worker, its node or the cluster failed.
    """
    errors = imported().exceptions
    try:
        return await call
    except errors.RayTaskError as error:
        raise error.cause from error
    except errors.RayError as error:
        if starting and getattr(error, "actor_init_failed", False):
            raise ConfigError(
                f"a worker could not be made; is swarm-ui {__version__} installed on every "
                f"node? {reason(error)}"
            ) from error
        raise WorkerLost(reason(error)) from error


def _sendable(value: Any, what: str, send: Callable[[Any], Any]) -> Any:
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


def _kill(actor: Any) -> None:
    with contextlib.suppress(Exception):  # Ray may have forgotten it
        imported().kill(actor)
