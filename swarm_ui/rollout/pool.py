"""A pool of concurrent environments, which are replaced after faults, timed, and always closed."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from array import array
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
)
from itertools import count
from typing import Literal, Self

import msgspec

from swarm_ui.environment import Environment, check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.rollout.worker_reporter import WorkerReporter, wall_clock
from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import OnWorkerEvent

Job = tuple[str, int]
"""Task and seed of an episode."""

MakeEnvironment = Callable[[], Environment | Awaitable[Environment]]

Lap = Callable[[Literal["reset", "step"], float], None]
"""Called with the operation of an environment and its duration in seconds."""

Attempt = Callable[[Environment, str, int, Lap], Awaitable[Episode]]
"""Plays one episode: ``(environment, task, seed, lap) -> episode``."""


class Restarts(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour after a fault. The environment with the fault is always closed and replaced."""

    retries: int = 1
    """Number of times that an episode is played again after a fault, in the new environment."""
    limit: int | None = None
    """Maximum number of consecutive replacements without a completed episode in between.

    After that, the place in the pool is no longer used. If no usable place remains, the remaining
    jobs get the fault. ``None``: no limit.
    """
    backoff: float = 0.0
    """Seconds to wait before the first replacement; doubled for each consecutive one."""
    longest: float = 60.0
    """Maximum number of seconds to wait before a replacement."""

    def pause(self, replaced: int) -> float:
        """Seconds to wait before a replacement, after ``replaced`` others in a row."""
        return min(self.longest, self.backoff * 2.0 ** min(replaced, 63))


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of durations in seconds; all 0 if there were none."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    longest: float = 0.0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread:
        """Statistics of durations. Percentiles are observed values (the nearest-rank method)."""
        values = sorted(seconds)
        n = len(values)
        if n == 0:
            return cls()
        p50, p95, p99 = (values[max(0, -(-n * percent // 100) - 1)] for percent in (50, 95, 99))
        mean = sum(values) / n
        return cls(count=n, mean=mean, p50=p50, p95=p95, p99=p99, longest=values[-1])


class EnvironmentTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and durations of one place in a pool, over all environments that occupied it."""

    place: int
    episodes: int
    faults: int
    restarts: int
    given_up: bool
    reset: Spread
    step: Spread


class EnvironmentPool:
    """Up to ``size`` environments, each of which plays one episode at a time::

        async with EnvironmentPool(PhoneEnvironment, 64) as pool:
            async for episode in rollout_stream(pool, policy, jobs):
                ...
        print(pool.timings[0].step.p95)

    Environments are created when they are first needed, reused by later streams, and closed
    when the block is left, also after an exception.
    """

    def __init__(
        self,
        make: MakeEnvironment,
        size: int = 8,
        *,
        restarts: Restarts | None = None,
        on_event: OnWorkerEvent | None = None,
    ) -> None:
        """
        Args:
            make: called when a place needs an environment; may be a coroutine function.
            size: maximum number of concurrent environments.
            restarts: what happens after a fault; by default the episode is played again once.
            on_event: called with the events of each place; an event names the place as a worker, by
                its number.
        """
        if size < 1:
            raise ConfigError(f"EnvironmentPool: 'size' must be at least 1, got {size}")
        check_factory(make)
        clock = wall_clock()
        self._seats = tuple(
            Seat(place, make, restarts or Restarts(), WorkerReporter(place, on_event, clock))
            for place in range(size)
        )
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def timings(self) -> tuple[EnvironmentTiming, ...]:
        """The counts and durations of every place so far."""
        return tuple(seat.timing() for seat in self._seats)

    async def episodes(
        self, attempt: Attempt, jobs: Iterable[Job] | AsyncIterable[Job], *, actor: str = ""
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play all jobs; yields the number and the episode of each job in the order they finish.

        A job is taken when a place becomes free, and no place continues while ``size`` finished
        episodes wait for the caller, so ``jobs`` may be an infinite generator. A fault affects
        only its own episode. Any other exception ends the stream and is raised after the
        episodes that were finished before it.

        Args:
            attempt: plays one episode.
            jobs: the jobs to play.
            actor: policy name for episodes that could not start.
        """
        if self._tasks:
            raise ConfigError(
                "this pool is already in use: it runs one stream of episodes at a time"
            )
        source = _Source(jobs)
        ready: asyncio.Queue[tuple[int, Episode] | BaseException | None] = asyncio.Queue(
            len(self._seats)
        )
        create = asyncio.get_running_loop().create_task
        tasks = {create(self._work(seat, attempt, source, ready, actor)) for seat in self._seats}
        self._tasks |= tasks
        try:
            working = len(tasks)
            while working:
                item = await ready.get()
                if item is None:
                    working -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield item
        finally:
            await self._stop()

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice.

        Raises:
            EnvironmentFault: an environment could not be closed; all others are closed.
        """
        await self._stop()
        faults = []
        for seat in self._seats:
            try:
                await seat.close()
            except Exception as error:  # raised when all others are closed
                faults.append(error)
        if faults:
            raise faults[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        # An exception from the block takes precedence over a failure to close.
        with contextlib.suppress(*(() if error is None else (EnvironmentFault,))):
            await self.close()

    async def _work(
        self,
        seat: Seat,
        attempt: Attempt,
        source: _Source,
        ready: asyncio.Queue[tuple[int, Episode] | BaseException | None],
        actor: str,
    ) -> None:
        """Play jobs in one place until none remain or the place has reached its limit of faults.

        If all places have reached the limit, the remaining jobs end with the last fault.
        """
        try:
            while seat.fit or not any(other.fit for other in self._seats):
                numbered = await source.next()
                if numbered is None:
                    break
                number, (task, seed) = numbered
                episode = await seat.play(attempt, task, seed, actor, number=number)
                await ready.put((number, episode))
        except BaseException as error:  # raised by the stream: no job is lost in silence
            if isinstance(error, asyncio.CancelledError) and not self._tasks:
                raise  # the stream has ended and stops its workers
            await ready.put(error)
            if not isinstance(error, Exception):
                raise
        else:
            await ready.put(None)

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Source:
    """Numbers the jobs and hands them out one at a time to several places."""

    def __init__(self, jobs: Iterable[Job] | AsyncIterable[Job]) -> None:
        self._jobs = aiter(jobs) if isinstance(jobs, AsyncIterable) else iter(jobs)
        self._numbers = count()
        self._turn = asyncio.Lock()

    async def next(self) -> tuple[int, Job] | None:
        async with self._turn:
            if isinstance(self._jobs, AsyncIterator):
                job = await anext(self._jobs, None)
            else:
                job = next(self._jobs, None)
            return None if job is None else (next(self._numbers), checked_job(job))


def checked_job(job: Job) -> Job:
    """The job. Raises ``ConfigError`` if it is not a pair."""
    if not (isinstance(job, tuple | list) and len(job) == 2):
        raise ConfigError(f"jobs: expected pairs (task, seed), got {job!r}")
    return job


class Seat:
    """A place in the pool: one environment at a time, replaced after a fault."""

    def __init__(
        self,
        place: int,
        make: MakeEnvironment,
        restarts: Restarts,
        reporter: WorkerReporter | None = None,
    ) -> None:
        self.place = place
        self.fit = True
        """False after the limit of consecutive replacements."""
        self._make, self._restarts = make, restarts
        self._reporter = reporter or WorkerReporter(place, None)
        self._environment: Environment | None = None
        self._name = self._fault = ""
        self._row = 0  # faults since the last completed episode
        self._episodes = self._faults = self._replaced = 0
        self._made = False
        self._laps: dict[Literal["reset", "step"], array[float]] = {
            "reset": array("d"),
            "step": array("d"),
        }

    async def play(
        self, attempt: Attempt, task: str, seed: int, actor: str, *, number: int = 0
    ) -> Episode:
        """Play one episode. After a fault it is played again, at most ``retries`` times.

        ``number``: the job's number, for the reporter.
        """
        self._reporter.queued(number)
        for _ in range(1 + self._restarts.retries):
            try:
                environment = await self._ready()
            except EnvironmentFault as error:
                episode = Episode(
                    environment=self._name,
                    task=task,
                    seed=seed,
                    policy=actor,
                    fault=Failure.of(error),
                )
                self._reporter.finished(episode, played=False)
            else:
                episode = await self._attempt(attempt, environment, task, seed)
            if episode.fault is None:
                self._row = 0
                break
            await self._broke(episode.fault)
            if not self.fit:
                break
        self._episodes += 1
        return episode

    async def _attempt(
        self, attempt: Attempt, environment: Environment, task: str, seed: int
    ) -> Episode:
        def lap(what: Literal["reset", "step"], seconds: float) -> None:
            self._reporter.lap(what, seconds)
            self._laps[what].append(seconds)

        self._reporter.began(task, seed)
        episode = await attempt(environment, task, seed, lap)
        self._reporter.finished(episode)
        return episode

    async def leave(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            await environment.close()

    async def close(self) -> None:
        """Close the environment at the end of the pool."""
        self._reporter.closed()
        await self.leave()

    def timing(self) -> EnvironmentTiming:
        return EnvironmentTiming(
            place=self.place,
            episodes=self._episodes,
            faults=self._faults,
            restarts=self._replaced,
            given_up=not self.fit,
            reset=Spread.of(self._laps["reset"]),
            step=Spread.of(self._laps["step"]),
        )

    async def _ready(self) -> Environment:
        if not self.fit:
            raise EnvironmentFault(
                f"the environment was replaced {self._restarts.limit} times in a row "
                f"without success; its last fault: {self._fault}"
            )
        if self._environment is None:
            if self._made:
                self._replaced += 1
                await asyncio.sleep(self._restarts.pause(self._row - 1))
            self._made = True
            made = self._make()
            self._environment = await made if inspect.isawaitable(made) else made
            self._name = self._environment.name
        self._reporter.started()
        return self._environment

    async def _broke(self, fault: Failure) -> None:
        if not self.fit:
            return
        self._faults += 1
        self._row += 1
        self._fault = str(fault)
        limit = self._restarts.limit
        self.fit = limit is None or self._row <= limit
        if not self.fit:
            self._reporter.given_up(self._fault)
        # The episode already contains the fault; closing a broken environment may fail too.
        with contextlib.suppress(EnvironmentFault):
            await self.leave()
