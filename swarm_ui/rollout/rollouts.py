"""Plays many episodes at once with workers: in this process, in others, or on other machines."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from swarm_ui.environment import Environment, check_factory
from swarm_ui.errors import BudgetExceeded, ConfigError, EnvironmentFault, Failure
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.rollout.episode import Intervene, Job, MakeEnvironment, rollout
from swarm_ui.rollout.policy import Policy, as_policy
from swarm_ui.rollout.spans import current_headers, in_span
from swarm_ui.trace.records import Episode

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Acting = Policy | CollabGraph
"""Who acts: a policy, or a graph, which stands for its :class:`GraphPolicy`."""

Attempt = Callable[[Environment, str, int], Awaitable[Episode]]
"""``(environment, task, seed) -> episode``: plays one episode."""

OnEpisode = Callable[[int, int, Episode], None]
"""``(finished episodes, all episodes, the episode that just finished)``."""


class PerWorker(Generic[T_co]):
    """A value that each process makes for itself, because it cannot be sent there::

        PerWorker(lambda: GraphPolicy(CollabGraph.solo(LocalModel.load(path))))

    A process makes it when it is first used there, and keeps it until its workers are closed. What
    several such values share, such as the weights of a model, comes from a function of a module
    with ``functools.cache``.
    """

    def __init__(
        self, make: Callable[[], T_co | Awaitable[T_co] | AbstractAsyncContextManager[T_co]]
    ) -> None:
        """``make``: a function or a coroutine function, or one whose result is entered with
        ``async with`` and left at the end. It is sent to the workers."""
        self.make = make
        self.key = uuid.uuid4().hex
        """Identifies the value in a process; equal in all copies."""

    async def opened(self, stack: AsyncExitStack) -> T_co:
        """Make the value in this process; leaving the stack ends it."""
        made = self.make()
        if isinstance(made, AbstractAsyncContextManager):
            return cast(T_co, await stack.enter_async_context(made))
        if inspect.isawaitable(made):
            return cast(T_co, await made)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How the episodes of a stream are played; it is sent to the workers."""

    policy: Acting | PerWorker[Acting]
    intervention: Intervene | None = None
    max_steps: int | None = None
    headers: dict[str, str] = field(default_factory=current_headers)
    """The span that the episodes belong to; see :mod:`swarm_ui.rollout.spans`."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Equal in all copies."""


class WorkerLost(Exception):
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
        """Get ready, also after a loss; does nothing if it is ready.

        Raises:
            WorkerLost: it was lost so often that it is not started again.
            ConfigError: there is no room for it.
        """
        ...

    async def play(self, job: Job, work: Work | Attempt) -> Episode:
        """Play one episode. Raises ``WorkerLost``, and what the episode raises."""
        ...

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice."""
        ...


class LocalWorker:
    """Plays in this process. An environment with a fault is replaced, and the episode repeated.

    Environments are made when they are needed, and kept for later episodes.
    """

    def __init__(
        self,
        make_environment: MakeEnvironment | PerWorker[MakeEnvironment],
        *,
        slots: int = 8,
        retries: int = 1,
    ) -> None:
        """
        Args:
            make_environment: called at most ``slots`` times, and once more after each fault; may
                be a coroutine function.
            slots: episodes, and so environments, at the same time.
            retries: how often an episode is played again after a fault, each time in a new
                environment.
        """
        if slots < 1:
            raise ConfigError(f"LocalWorker: 'slots' must be at least 1, got {slots}")
        if not isinstance(make_environment, PerWorker):
            check_factory(make_environment)
        self.slots = slots
        self._make, self._retries = make_environment, retries
        self._places = asyncio.Semaphore(slots)
        self._free: list[Environment] = []
        self._environment = ""
        self._stack, self._made, self._making = AsyncExitStack(), dict[str, Any](), asyncio.Lock()

    async def start(self) -> None:
        """There is nothing to start."""

    async def play(self, job: Job, work: Work | Attempt) -> Episode:
        """Play one episode; see :class:`Worker`."""
        async with self._places:
            attempt, actor = await self._attempt(work)
            for _ in range(1 + self._retries):
                episode = await self._try(job, attempt, actor)
                if episode.fault is None:
                    break
        return episode

    async def close(self) -> None:
        """Close all environments, and what :class:`PerWorker` made.

        Raises:
            EnvironmentFault: an environment could not be closed; all others are closed.
        """
        environments, self._free = self._free, []
        closing = [environment.close() for environment in environments]
        ended = await asyncio.gather(*closing, return_exceptions=True)
        stack, self._stack = self._stack, AsyncExitStack()
        self._made.clear()
        await stack.aclose()
        for error in ended:
            if error is not None:
                raise error

    async def _try(self, job: Job, attempt: Attempt, actor: str) -> Episode:
        task, seed = job
        try:
            environment = self._free.pop() if self._free else await self._environment_made()
        except EnvironmentFault as error:
            return Episode(
                environment=self._environment, task=task, seed=seed, policy=actor,
                fault=Failure.of(error),
            )  # fmt: skip
        broken = False
        try:
            episode = await attempt(environment, task, seed)
            broken = episode.fault is not None
        finally:
            if not broken:  # also after a cancellation: the next episode resets it
                self._free.append(environment)
        if broken:
            # The episode already has the fault; closing a broken environment may fail too.
            with contextlib.suppress(EnvironmentFault):
                await environment.close()
        return episode

    async def _environment_made(self) -> Environment:
        made = (await self._own(self._make))()
        environment = await made if inspect.isawaitable(made) else made
        self._environment = environment.name
        return environment

    async def _attempt(self, work: Work | Attempt) -> tuple[Attempt, str]:
        """The function that plays, and the name of the policy."""
        if not isinstance(work, Work):
            return work, ""
        policy = as_policy(await self._own(work.policy))

        async def attempt(environment: Environment, task: str, seed: int) -> Episode:
            play = partial(
                rollout, environment, policy, task=task, seed=seed,
                intervention=work.intervention, max_steps=work.max_steps,
            )  # fmt: skip
            return await in_span(work.headers, task, seed, play)

        return attempt, policy.name

    async def _own(self, given: T | PerWorker[T]) -> T:
        """A value, which this process makes at its first use if it cannot be sent."""
        if not isinstance(given, PerWorker):
            return given
        async with self._making:
            if given.key not in self._made:
                self._made[given.key] = await given.opened(self._stack)
        return cast(T, self._made[given.key])


class Rollouts:
    """Plays jobs with workers::

        async with Rollouts([LocalWorker(PhoneEnvironment)]) as rollouts:
            async for number, episode in rollouts.stream(team, jobs):
                ...

    Environments are kept between streams. Several streams may run at the same time; they share the
    workers equally. Equal seeds give equal episodes, whatever the workers. A worker that is lost is
    started again, and costs no episode: another one plays it.
    """

    def __init__(self, workers: Sequence[Worker], *, losses: int = 3) -> None:
        """
        Args:
            workers: who plays; they are closed with the rollouts.
            losses: how often an episode is played again after the loss of its worker; after that,
                it has a fault.
        """
        self.workers = tuple(workers)
        self.losses = 0
        """How often an episode was lost with its worker so far."""
        self._most = losses
        self._free: asyncio.Queue[Worker | Exception] | None = None
        self._usable = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._environment = ""

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent episodes."""
        return sum(worker.slots for worker in self.workers)

    def stream(
        self,
        policy: Acting | PerWorker[Acting],
        jobs: Iterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; yields the number and the episode of each job, in the order they finish.

        Every job gives exactly one episode. ``jobs`` is read only as fast as episodes are played
        and consumed.

        Args:
            policy: serves all episodes; a graph stands for its :class:`GraphPolicy`.
            jobs: (task, seed) pairs; may be infinite.
            intervention, max_steps: see :func:`~swarm_ui.rollout.episode.rollout`.

        Raises:
            ConfigError, BudgetExceeded: as in :func:`~swarm_ui.rollout.episode.rollout`, after
                the episodes that were finished before.
            EnvironmentFault: every worker was lost too often.
        """
        if not isinstance(policy, PerWorker):
            as_policy(policy)
        work = Work(policy=policy, intervention=intervention, max_steps=max_steps)
        return self.play(work, jobs)

    async def play(
        self, work: Work | Attempt, jobs: Iterable[Job]
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs with a function of one's own instead of a policy; else as :meth:`stream`."""
        source = enumerate(jobs)
        count = min(self.concurrency, len(jobs)) if isinstance(jobs, Sized) else self.concurrency
        ready: asyncio.Queue[tuple[int, Episode] | BaseException | None] = asyncio.Queue(count or 1)
        over = False

        async def player() -> None:
            try:
                for number, job in source:
                    await ready.put((number, await self._played(_checked(job), work)))
            except BaseException as error:  # raised by the stream: no job is lost in silence
                if over:
                    raise  # the stream has ended and stops its players
                await ready.put(error)
                if not isinstance(error, Exception | asyncio.CancelledError):
                    raise
            else:
                await ready.put(None)

        self._begin()
        players = [self._task(player()) for _ in range(count)]
        try:
            while count:
                item = await ready.get()
                if item is None:
                    count -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            over = True
            await _cancelled(players)

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice.

        Raises:
            EnvironmentFault: an environment could not be closed; all others are closed.
        """
        await _cancelled(self._tasks)
        self._free = None
        closing = [worker.close() for worker in self.workers]
        for error in await asyncio.gather(*closing, return_exceptions=True):
            if isinstance(error, BaseException):
                raise error

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
            self._free = asyncio.Queue()
            most = max((worker.slots for worker in self.workers), default=0)
            slots = [w for slot in range(most) for w in self.workers if slot < w.slots]
            self._usable = len(slots)
            for worker in slots:
                self._task(self._offer(worker))

    async def _offer(self, worker: Worker) -> None:
        """Start a worker if it does not run, and offer one of its slots."""
        assert self._free is not None
        try:
            await worker.start()
        except WorkerLost as error:
            self._usable -= 1
            if not self._usable:
                self._free.put_nowait(EnvironmentFault(
                    f"every worker was lost too often; the last: {error}. All finished episodes "
                    "were delivered"
                ))  # fmt: skip
        except Exception as error:  # raised by those who wait for a worker
            self._free.put_nowait(error)
        else:
            self._free.put_nowait(worker)

    async def _played(self, job: Job, work: Work | Attempt) -> Episode:
        """The episode of a job. If its worker is lost, another one plays it again."""
        assert self._free is not None
        lost = 0
        while True:
            worker = await self._free.get()
            if isinstance(worker, Exception):
                self._free.put_nowait(worker)  # for all others
                raise worker
            try:
                episode = await worker.play(job, work)
            except WorkerLost as loss:
                self._task(self._offer(worker))
                lost += loss.begun
                self.losses += loss.begun
                if lost > self._most:
                    return self._lost(job, work, f"the worker was lost {lost} times; {loss}")
            except BaseException:
                self._free.put_nowait(worker)
                raise
            else:
                self._free.put_nowait(worker)
                self._environment = episode.environment or self._environment
                return episode

    def _lost(self, job: Job, work: Work | Attempt, why: str) -> Episode:
        policy = getattr(work.policy, "name", "") if isinstance(work, Work) else ""
        fault = Failure.of(EnvironmentFault(why))
        return Episode(
            environment=self._environment, task=job[0], seed=job[1], policy=policy, fault=fault
        )

    def _task(self, doing: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(doing)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _cancelled(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended."""
    ending = [*tasks]
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def _checked(job: Job) -> Job:
    if not (isinstance(job, tuple | list) and len(job) == 2):
        raise ConfigError(f"jobs: expected pairs (task, seed), got {job!r}")
    return job


async def rollout_many(
    environments: MakeEnvironment | Rollouts,
    policy: Acting | PerWorker[Acting],
    jobs: Sequence[Job],
    *,
    concurrency: int = 8,
    progress: OnEpisode | None = None,
    intervention: Intervene | None = None,
    retry: bool = True,
    max_steps: int | None = None,
) -> list[Episode]:
    """Play all jobs: in this process, or with rollouts that are open.

    Args:
        environments: a function that makes an environment, called at most ``concurrency`` times,
            and once more after each fault; all of them are closed, also after a cancellation. Or
            open :class:`Rollouts`, which stay open.
        policy: a graph, or a policy; serves all episodes.
        jobs: (task, seed) pairs.
        concurrency: maximum number of episodes at the same time; rollouts have their own.
        progress: called after each episode, in the order they end.
        intervention: see :func:`~swarm_ui.rollout.episode.rollout`.
        retry: play an episode with a fault once more, in a new environment; rollouts have their
            own setting.
        max_steps: see :func:`~swarm_ui.rollout.episode.rollout`.

    Returns:
        episodes in the order of ``jobs``.

    Raises:
        BudgetExceeded: its ``episodes`` holds all finished episodes, in the order of ``jobs``.
    """
    if not isinstance(environments, Rollouts):
        if concurrency < 1:
            raise ConfigError(f"rollout_many: concurrency must be at least 1, got {concurrency}")
        size = max(1, min(concurrency, len(jobs)))
        worker = LocalWorker(environments, slots=size, retries=int(retry))
        async with Rollouts([worker]) as rollouts:
            return await rollout_many(
                rollouts, policy, jobs, progress=progress, intervention=intervention,
                max_steps=max_steps,
            )  # fmt: skip
    done: list[Episode | None] = [None] * len(jobs)
    stream = environments.stream(policy, jobs, intervention=intervention, max_steps=max_steps)
    finished = 0
    try:
        async with aclosing(stream) as episodes:
            async for number, episode in episodes:
                done[number] = episode
                finished += 1
                if progress is not None:
                    progress(finished, len(jobs), episode)
    except BudgetExceeded as error:
        whole = [episode for episode in done if episode is not None]
        error.episodes = (*whole, *error.episodes)
        raise
    return [episode for episode in done if episode is not None]
