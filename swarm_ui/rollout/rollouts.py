"""Plays many episodes at once with workers: in this process, in others, or on other machines."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from functools import partial
from itertools import islice
from typing import Any, Protocol, Self

from msgspec.structs import replace

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.engine.tasks import cancelled
from swarm_ui.environment import Environment, check_factory
from swarm_ui.errors import BudgetExceeded, ConfigError, EnvironmentFault, Failure
from swarm_ui.rollout.episode import Intervene, Job, MakeEnvironment, Policy, as_policy, rollout
from swarm_ui.trace.records import Episode

Acting = Policy | CollabGraph
"""Who acts: a policy, or a graph, which stands for its :class:`GraphPolicy`."""
Attempt = Callable[..., Awaitable[Episode]]
"""Plays one episode: ``await attempt(environment, task=..., seed=...)``; sent to the workers."""
OpenEnvironments = Callable[[], AbstractAsyncContextManager[MakeEnvironment]]
"""Opens what several environments share, such as a browser, and gives what makes them."""
LOSSES = 3
"""How often an episode is played again after the loss of its worker, before it has a fault."""


class WorkerLost(EnvironmentFault):
    """The worker, or its machine, is gone, and the episode has no result."""

    def __init__(self, why: str, *, begun: bool = True) -> None:
        """``begun``: whether the worker may have begun the episode."""
        super().__init__(why)
        self.begun = begun


class Worker(Protocol):
    """Plays up to ``slots`` episodes at the same time."""

    @property
    def slots(self) -> int: ...

    async def start(self) -> None:
        """Get ready, also after a loss; does nothing if it is ready. Raises ``ConfigError`` if
        there is no room for it."""
        ...

    async def play(self, job: Job, attempt: Attempt) -> Episode:
        """Play one episode. Raises ``WorkerLost``, and what the episode raises."""
        ...

    async def close(self) -> None:
        """Close every environment; may be called twice. No episode is running."""
        ...


class LocalWorker:
    """Plays in this process. An environment with a fault is replaced, and its episode repeated.

    Environments are made when they are needed, and kept for later episodes.
    """

    def __init__(
        self, make_environment: MakeEnvironment | OpenEnvironments, *, slots: int = 8
    ) -> None:
        """
        Args:
            make_environment: called at most ``slots`` times, and once more after each fault; may
                be a coroutine function. If it gives a context manager, that is open until the
                worker is closed, and gives the function that makes the environments.
            slots: episodes, and so environments, at the same time.
        """
        if slots < 1:
            raise ConfigError(f"LocalWorker: 'slots' must be at least 1, got {slots}")
        check_factory(make_environment)
        self.slots = slots
        self._given = make_environment
        self._make: MakeEnvironment | None = None
        self._free: list[Environment] = []
        self._opened, self._opening = AsyncExitStack(), asyncio.Lock()

    async def start(self) -> None:
        """There is nothing to start."""

    async def play(self, job: Job, attempt: Attempt) -> Episode:
        """Play one episode; see :class:`Worker`."""
        episode = await self._try(job, attempt)
        return episode if episode.fault is None else await self._try(job, attempt)

    async def close(self) -> None:
        """Close all environments. Raises ``EnvironmentFault`` if one could not be closed; all
        others are."""
        closing = [environment.close() for environment in self._free]
        self._free, self._make = [], None
        ended = await asyncio.gather(*closing, return_exceptions=True)
        await self._opened.aclose()
        _raise_first(ended)

    async def _try(self, job: Job, attempt: Attempt) -> Episode:
        task, seed = job
        try:
            environment = self._free.pop() if self._free else await self._new()
        except EnvironmentFault as error:
            return Episode(environment="", task=task, seed=seed, fault=Failure.of(error))
        episode = None
        try:
            episode = await attempt(environment, task=task, seed=seed)
            return episode
        finally:
            if episode is None or episode.fault is None:
                self._free.append(environment)  # also after a cancellation: it is reset
            else:
                # The episode already has the fault; closing a broken environment may fail too.
                with contextlib.suppress(EnvironmentFault):
                    await environment.close()

    async def _new(self) -> Environment:
        async with self._opening:
            make: Any = self._make or self._given
            made = make()
            if isinstance(made, AbstractAsyncContextManager) and not hasattr(made, "reset"):
                self._make = make = await self._opened.enter_async_context(made)
                made = make()
        environment: Environment = await made if inspect.isawaitable(made) else made
        return environment


class Rollouts:
    """Plays jobs with workers::

        async with Rollouts([LocalWorker(PhoneEnvironment)]) as rollouts:
            async for number, episode in rollouts.stream(team, jobs):
                ...

    Environments are kept between streams. Several streams may run at the same time; they share the
    workers equally. Equal seeds give equal episodes, whatever the workers. A worker that is lost is
    started again, and costs no episode: another one plays it.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        """``workers``: who plays; they are closed with the rollouts."""
        self.workers = tuple(workers)
        self._free: asyncio.Queue[Worker | Exception] | None = None
        self._usable = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._environment = ""

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent episodes."""
        return sum(worker.slots for worker in self.workers)

    def stream(
        self,
        policy: Acting,
        jobs: Iterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; yields the number and the episode of each job, in the order they finish.

        Every job gives exactly one episode. ``jobs``, (task, seed) pairs, may be infinite: they
        are read only as fast as episodes are played and consumed. The rest is that of
        :func:`~swarm_ui.rollout.episode.rollout`, whose ``ConfigError`` or ``BudgetExceeded`` comes
        after the episodes that were finished before. Raises ``ConfigError`` if there is no room for
        any worker.
        """
        acting = as_policy(policy)
        attempt = partial(rollout, policy=acting, intervention=intervention, max_steps=max_steps)
        return self.play(attempt, jobs, name=acting.name)

    async def play(
        self, attempt: Attempt, jobs: Iterable[Job], *, name: str = ""
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs with a function of one's own instead of a policy, whose ``name`` episodes get
        that no worker could play; else as :meth:`stream`."""
        source, playing = enumerate(jobs), dict[asyncio.Task[Episode], int]()
        ended: asyncio.Queue[asyncio.Task[Episode]] = asyncio.Queue()
        self._begin()
        try:
            while True:
                for number, job in islice(source, self.concurrency - len(playing)):
                    if not (isinstance(job, tuple | list) and len(job) == 2):
                        raise ConfigError(f"jobs: expected pairs (task, seed), got {job!r}")
                    task = self._task(self._played(job, attempt, name))
                    playing[task] = number
                    task.add_done_callback(ended.put_nowait)
                if not playing:
                    return
                task = await ended.get()
                yield playing.pop(task), task.result()
        finally:
            await cancelled(playing)

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice. Raises
        ``EnvironmentFault`` if one could not be closed; all others are."""
        await cancelled(self._tasks)
        self._free = None
        closing = [worker.close() for worker in self.workers]
        _raise_first(await asyncio.gather(*closing, return_exceptions=True))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # An exception from the block takes precedence over a failure to close.
        with contextlib.suppress(*(() if error is None else (EnvironmentFault,))):
            await self.close()

    def _begin(self) -> None:
        """Start the workers if they are not started yet. The first slots are of different workers,
        so that few episodes are spread."""
        if self._free is None:
            self._free, self._usable = asyncio.Queue(), self.concurrency
            for slot in range(max((worker.slots for worker in self.workers), default=0)):
                for worker in self.workers:
                    if slot < worker.slots:
                        self._task(self._offer(worker))

    async def _offer(self, worker: Worker) -> None:
        """Start a worker if it does not run, and offer one of its slots."""
        assert self._free is not None
        try:
            await worker.start()
        except Exception as error:
            self._usable -= 1
            if not (self._usable and isinstance(error, ConfigError)):
                self._free.put_nowait(error)  # raised by those who wait; else the others play
        else:
            self._free.put_nowait(worker)

    async def _played(self, job: Job, attempt: Attempt, name: str) -> Episode:
        """The episode of a job. If its worker is lost, another one plays it again."""
        assert self._free is not None
        lost = 0
        while True:
            worker = await self._free.get()
            if isinstance(worker, Exception):
                self._free.put_nowait(worker)  # for all others
                raise worker
            try:
                episode = await worker.play(job, attempt)
            except WorkerLost as loss:
                self._task(self._offer(worker))
                lost += loss.begun
                if lost <= LOSSES:
                    continue
                fault = Failure.of(EnvironmentFault(f"the worker was lost {lost} times; {loss}"))
                episode = Episode(environment="", task=job[0], seed=job[1], fault=fault)
            except BaseException:
                self._free.put_nowait(worker)
                raise
            else:
                self._free.put_nowait(worker)
            if episode.environment:
                self._environment = episode.environment
                return episode
            return replace(episode, environment=self._environment, policy=name)

    def _task(self, doing: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def rollout_many(
    environments: MakeEnvironment | Rollouts,
    policy: Acting,
    jobs: Sequence[Job],
    *,
    concurrency: int = 8,
    progress: Callable[[int, int, Episode], None] | None = None,
    intervention: Intervene | None = None,
    max_steps: int | None = None,
) -> list[Episode]:
    """Play all jobs, (task, seed) pairs; returns their episodes in the same order.

    Args:
        environments: a function that makes an environment, called at most ``concurrency`` times,
            and once more after each fault, to play the episode again; all of them are closed, also
            after a cancellation. Or open :class:`Rollouts`, which stay open.
        policy: a graph, or a policy; serves all episodes.
        concurrency: maximum number of episodes at the same time; rollouts have their own.
        progress: called after each episode, in the order they end, with the number of finished
            episodes, that of all, and the episode.
        intervention, max_steps: see :func:`~swarm_ui.rollout.episode.rollout`.

    Raises:
        BudgetExceeded: its ``episodes`` holds all finished episodes, in the order of ``jobs``.
    """
    if not isinstance(environments, Rollouts):
        worker = LocalWorker(environments, slots=min(concurrency, max(1, len(jobs))))
        async with Rollouts([worker]) as rollouts:
            return await rollout_many(
                rollouts, policy, jobs, progress=progress, intervention=intervention,
                max_steps=max_steps,
            )  # fmt: skip
    done: dict[int, Episode] = {}
    stream = environments.stream(policy, jobs, intervention=intervention, max_steps=max_steps)
    try:
        async with aclosing(stream) as episodes:
            async for number, episode in episodes:
                done[number] = episode
                if progress is not None:
                    progress(len(done), len(jobs), episode)
    except BudgetExceeded as error:
        error.episodes = (*[done[k] for k in sorted(done)], *error.episodes)
        raise
    return [done[k] for k in sorted(done)]


def _raise_first(ended: Iterable[object]) -> None:
    for error in ended:
        if isinstance(error, BaseException):
            raise error
