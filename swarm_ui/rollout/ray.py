"""Plays episodes in the workers of a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from swarm_ui.errors import ConfigError, EnvironmentFault, MissingExtra, SwarmError, brief
from swarm_ui.rollout.cluster import WorkerResources, connected, imported, node_resources, reason
from swarm_ui.rollout.episode import Job, MakeEnvironment
from swarm_ui.rollout.rollouts import Attempt, LocalWorker, PerWorker, Rollouts, Work, WorkerLost
from swarm_ui.trace.records import Episode
from swarm_ui.version import __version__

FIRST_REPORT, NEXT_REPORTS = 10.0, 30.0
"""Seconds without resources after which the waiting is reported, first and then again."""
CLOSING = 15.0
"""Seconds that a worker has to close its environments before it is killed."""
CONTROL_CALLS = 8
"""Calls that a worker accepts beside episodes."""
_LONGEST = 60.0
"""Most seconds between two attempts to start a worker that is lost again and again."""
_KEPT_WORKS = 16
"""Streams whose policies a worker keeps; of older ones it asks again."""
_EPISODES = msgspec.json.Decoder(Episode)


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
    setup = (make_environment, slots, retries, os.getcwd())
    fleet = _Fleet(setup=setup, resources=needs, losses=losses, patience=patience, warn=warn)
    return Rollouts([RayWorker(k, slots, fleet) for k in range(workers)], losses=losses)


@dataclass(slots=True, kw_only=True)
class _Fleet:
    """What the workers of one cluster share."""

    setup: Any
    resources: WorkerResources
    losses: int
    patience: float
    warn: Callable[[str], None]
    running: int = 0
    since: float | None = None
    """When the first worker was asked for, or the last one was lost."""
    sent: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """References to what was sent to the object store, and the values."""

    def left(self) -> float:
        """Remaining seconds to wait for resources."""
        if self.running or self.since is None:
            self.since = time.monotonic()
        return max(0.0, self.patience - (time.monotonic() - self.since))

    def reference(self, key: str, value: Any, what: str) -> Any:
        """The reference to a value, which is sent once. Raises ``ConfigError`` if it is not
        data."""
        if key not in self.sent:
            while len(self.sent) > _KEPT_WORKS:
                del self.sent[next(k for k in self.sent if k != "setup")]
            self.sent[key] = (_put(value, what), value)  # kept, so that no other gets its id
        return self.sent[key][0]


def _put(value: Any, what: str) -> Any:
    try:
        return imported().put(value)
    except ConfigError:  # of a model, which says what to do
        raise
    except Exception as error:  # pickling calls code of the values
        lines = [line for line in str(error).splitlines() if line.strip(" =")]
        why = brief(Exception(" ".join(lines[:3])))
        raise ConfigError(
            f"{what} cannot be sent to workers ({why}); give PerWorker(function), which makes it "
            "in each worker"
        ) from error


class RayWorker:
    """A worker of the cluster, and those that replace it."""

    def __init__(self, number: int, slots: int, fleet: _Fleet) -> None:
        self.number, self.slots, self.pid = number, slots, 0
        self._fleet = fleet
        self._starting = asyncio.Lock()
        self._actor: Any = None
        self._node = ""
        self._row = 0  # losses since the last finished episode
        self._last = ""
        self._given_up = False

    @property
    def running(self) -> bool:
        """Whether its process runs now."""
        return self._actor is not None

    async def start(self) -> None:
        """Start the process if it does not run; see :class:`~swarm_ui.rollout.Worker`.

        Raises:
            WorkerLost: it was lost too often.
            ConfigError: the cluster does not have enough resources, or the worker has another
                version.
        """
        async with self._starting:
            while self._actor is None:
                if self._row > self._fleet.losses:
                    if not self._given_up:
                        self._given_up = True
                        self._fleet.warn(f"worker {self.number} is not started again: {self._last}")
                    raise WorkerLost(self._last)
                if self._row:
                    await asyncio.sleep(min(_LONGEST, 2.0 ** (self._row - 1)))
                with contextlib.suppress(WorkerLost):
                    await self._start()

    async def play(self, job: Job, work: Work | Attempt) -> Episode:
        """Play one episode; see :class:`~swarm_ui.rollout.Worker`."""
        actor = self._actor
        if actor is None:  # another slot has noticed the loss
            raise WorkerLost(self._last, begun=False)
        key = work.key if isinstance(work, Work) else f"attempt {id(work)}"
        reference = self._fleet.reference(key, work, "the policy, or its intervention,")
        # In a list, because Ray would read it again for every call.
        call = actor.play.remote(job, key, [reference])
        try:
            played: _Played = await self._called(call, actor)
        except asyncio.CancelledError:
            imported().cancel(call)
            raise
        if played.error is not None:
            raise played.error
        episode = _EPISODES.decode(played.episode)
        if episode.fault is None:
            self._row = 0
        return replace(episode, notes=played.notes) if played.notes else episode

    async def close(self) -> None:
        """Close the environments and end the process. Raises ``EnvironmentFault`` if one could
        not be closed; the process is ended anyway."""
        actor, self._actor = self._actor, None
        if actor is None:
            return
        self._fleet.running -= 1
        try:
            error = await asyncio.wait_for(self._called(actor.close.remote(), actor), CLOSING)
            if error is not None:
                raise EnvironmentFault(f"a worker could not be closed: {error}") from error
        except (WorkerLost, TimeoutError):
            pass  # nothing is left to be closed, or it hangs and is killed
        finally:
            imported().kill(actor)

    async def _start(self) -> None:
        fleet = self._fleet
        options = {**fleet.resources.options, "max_concurrency": self.slots + CONTROL_CALLS}
        setup = fleet.reference("setup", fleet.setup, "the environment")
        actor = imported().remote(_Actor).options(max_restarts=0, **options).remote(setup)
        try:
            self._node, self.pid, version = await self._placed(actor)
            if version != __version__:
                raise ConfigError(
                    f"the worker on {self._node} has swarm-ui {version}, this process "
                    f"{__version__}; install the same version on every node"
                )
        except BaseException:
            with contextlib.suppress(Exception):  # Ray may have forgotten it
                imported().kill(actor)
            raise
        self._actor = actor
        fleet.running += 1

    async def _placed(self, actor: Any) -> tuple[str, int, str]:
        """The first answer of a worker, when the cluster has room for it."""
        hello = self._called(actor.hello.remote(platform.node()), actor, starting=True)
        waiting, pause = asyncio.ensure_future(hello), FIRST_REPORT
        try:
            while True:
                done, _ = await asyncio.wait({waiting}, timeout=min(pause, self._fleet.left()))
                if done:
                    return waiting.result()  # type: ignore[no-any-return]
                text = self._missing()
                if self._fleet.left() <= 0:
                    raise ConfigError(text)
                self._fleet.warn(text)
                pause = NEXT_REPORTS
        finally:
            waiting.cancel()

    def _missing(self) -> str:
        """A description of the resources that the cluster lacks for this worker."""
        needs = self._fleet.resources
        lacking = needs.lacking(node_resources())
        if lacking:
            return (
                f"worker {self.number} waits: no node of the cluster has {lacking}. A node says "
                "what it has with: ray start --resources='{\"NAME\": COUNT}'"
            )
        free = imported().available_resources()
        now = ", ".join(f"{name} {free.get(name, 0.0):g}" for name in needs.amounts)
        return (
            f"worker {self.number} is not running yet: it needs {needs}; free in the cluster, "
            f"beside what starting workers need: {now or 'nothing'}"
        )

    async def _called(self, reference: Any, actor: Any, *, starting: bool = False) -> Any:
        """The result of a call. ``starting``: it is the first one.

        Raises:
            WorkerLost: the worker or its node died.
            ConfigError: the worker could not be made, or not read what it was sent.
            EnvironmentFault: any other failure of the cluster.
        """
        errors = imported().exceptions
        try:
            return await reference
        except errors.RayTaskError as error:
            raise ConfigError(
                f"a worker on {self._node or 'a node'} could not read or send data; is the same "
                f"code installed there? {reason(error)}"
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
            self._lose(actor, reason(error), starting)
            raise WorkerLost(reason(error)) from error
        except errors.RayError as error:
            raise EnvironmentFault(f"the Ray cluster failed: {reason(error)}") from error

    def _lose(self, actor: Any, why: str, starting: bool) -> None:
        """Note the loss of the worker. Several calls may notice it; only the first has an
        effect."""
        if not starting and self._actor is not actor:
            return
        where = f" on {self._node}" if self._node and not starting else ""
        self._last = f"worker {self.number}{where}: {why}"
        self._row += 1
        if self._actor is not None:
            self._actor = None
            self._fleet.running -= 1
        self._fleet.since = time.monotonic()
        self._fleet.warn(f"{self._last}; its episodes are played again elsewhere")
        with contextlib.suppress(Exception):  # Ray may have forgotten it
            imported().kill(actor)


class _Played(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a worker."""

    episode: bytes = b""
    """As JSON, which is smaller and faster than a pickle; without its notes."""
    notes: tuple[Any, ...] = ()
    error: Exception | None = None


class _Actor:
    """The process in the cluster. All methods run in one event loop."""

    def __init__(self, setup: tuple[MakeEnvironment, int, int, str]) -> None:
        make_environment, slots, retries, folder = setup
        if os.path.isdir(folder):  # of the driver, if this machine has it too
            os.chdir(folder)
        self._worker = LocalWorker(make_environment, slots=slots, retries=retries)
        self._works: dict[str, asyncio.Future[Work | Attempt]] = {}
        self._running: set[asyncio.Task[Episode]] = set()

    async def hello(self, node: str) -> tuple[str, int, str]:
        """The address of the node (``node`` if Ray knows none), process id and version."""
        with contextlib.suppress(MissingExtra):
            node = str(imported().util.get_node_ip_address())
        return node, os.getpid(), __version__

    async def play(self, job: Job, key: str, reference: list[Any]) -> _Played:
        """Play an episode. ``reference``: the one to the work, in a list."""
        try:
            work = await self._work(key, reference)
            task = asyncio.ensure_future(self._worker.play(job, work))
            self._running.add(task)
            # Until it has ended, also after a cancellation: close() waits for its environment.
            task.add_done_callback(self._running.discard)
            try:
                await asyncio.wait({task})
            finally:
                task.cancel()
            if task.cancelled():
                raise EnvironmentFault(f"{job}: the worker cancelled the episode")
            episode = task.result()
            bare = replace(episode, notes=()) if episode.notes else episode
            return _Played(episode=msgspec.json.encode(bare), notes=episode.notes)
        except Exception as error:
            return _Played(error=portable(error))

    async def close(self) -> Exception | None:
        """Cancel the running episodes and close everything; returns the first fault."""
        running = [*self._running]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        try:
            await self._worker.close()
        except Exception as error:
            return portable(error)
        return None

    async def _work(self, key: str, reference: list[Any]) -> Work | Attempt:
        if key not in self._works:
            while len(self._works) >= _KEPT_WORKS:
                del self._works[next(iter(self._works))]
            self._works[key] = asyncio.ensure_future(_read(reference[0]))
        return await asyncio.shield(self._works[key])


async def _read(reference: Any) -> Any:
    try:
        return await reference
    except Exception as error:
        raise ConfigError(
            f"a worker on {platform.node()} could not read what it was sent; is the same code "
            f"installed there? {reason(error)}"
        ) from error


def portable(error: Exception) -> Exception:
    """An exception as another process can read it; a note holds the traceback of this one.

    Errors of this library and built-in ones keep their type and attributes, such as partial
    episodes. Others, which the other process may not be able to import, become a ``RuntimeError``
    with their name.
    """
    where = f"in the worker with process id {os.getpid()} on {platform.node()}"
    told = f"{where}:\n{''.join(traceback.format_exception(error))}"
    same: Exception = RuntimeError(f"{type(error).__name__}: {error}")
    if isinstance(error, SwarmError) or type(error).__module__ == "builtins":
        with contextlib.suppress(Exception):  # it holds something that cannot be sent
            same = pickle.loads(pickle.dumps(error))
    same.add_note(told)
    return same
