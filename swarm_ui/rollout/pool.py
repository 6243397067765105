"""Many environments at the same time: replaced when they break, timed, never left open."""

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
    Iterator,
)
from types import TracebackType
from typing import Literal, Self

import msgspec

from swarm_ui.environment import Environment
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.trace.records import Episode

Job = tuple[str, int]
"""Task and seed."""

MakeEnvironment = Callable[[], Environment | Awaitable[Environment]]

Lap = Callable[[Literal["reset", "step"], float], None]
"""Told what an environment was asked to do, and the seconds that it took."""

Attempt = Callable[[Environment, str, int, Lap], Awaitable[Episode]]
"""Plays one episode: ``(environment, task, seed, lap) -> episode``."""


class Restarts(msgspec.Struct, frozen=True, kw_only=True):
    """What happens after a fault. The environment that had it is always closed and replaced."""

    retries: int = 1
    """How often an episode that ended in a fault is played again, in the new environment."""
    limit: int | None = None
    """Most replacements in a row, without a whole episode in between; then the place in the pool
    is given up, and if all are, the jobs that are left get the fault. ``None``: no limit."""
    backoff: float = 0.0
    """Seconds before the first replacement; doubled before each further one in a row."""
    longest: float = 60.0
    """Most seconds before a replacement."""

    def pause(self, replaced: int) -> float:
        """Seconds to wait before a replacement, after ``replaced`` others in a row."""
        return min(self.longest, self.backoff * 2.0 ** min(replaced, 63))


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How long something took, in seconds; all 0 if it never happened."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    longest: float = 0.0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread:
        """Percentiles are values that occurred: the smallest with so many at or below it."""
        values = sorted(seconds)
        n = len(values)
        if n == 0:
            return cls()
        p50, p95, p99 = (values[max(0, -(-n * percent // 100) - 1)] for percent in (50, 95, 99))
        mean = sum(values) / n
        return cls(count=n, mean=mean, p50=p50, p95=p95, p99=p99, longest=values[-1])


class EnvironmentTiming(msgspec.Struct, frozen=True, kw_only=True):
    """What one place in a pool did, over all the environments that stood in it."""

    place: int
    episodes: int
    faults: int
    restarts: int
    given_up: bool
    reset: Spread
    step: Spread


class EnvironmentPool:
    """Up to ``size`` environments, which play one episode each at the same time::

        async with EnvironmentPool(PhoneEnvironment, 64) as pool:
            async for episode in rollout_stream(pool, policy, jobs):
                ...
        print(pool.timings[0].step.p95)

    Environments are made when they are first needed, kept from one stream to the next, and closed
    when the block is left, however it is left.
    """

    def __init__(
        self, make: MakeEnvironment, size: int = 8, *, restarts: Restarts | None = None
    ) -> None:
        """
        Args:
            make: called when a place needs an environment; a coroutine function will do.
            size: most environments at the same time.
            restarts: what happens after a fault; by default an episode is played once more.
        """
        if size < 1:
            raise ConfigError(f"EnvironmentPool: 'size' must be at least 1, got {size}")
        self._seats = tuple(_Seat(place, make, restarts or Restarts()) for place in range(size))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def timings(self) -> tuple[EnvironmentTiming, ...]:
        """Of every place, so far."""
        return tuple(seat.timing() for seat in self._seats)

    async def episodes(
        self, attempt: Attempt, jobs: Iterable[Job] | AsyncIterable[Job], *, actor: str = ""
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play all jobs; yields each one's number and episode, in the order they finish.

        Jobs are taken one by one as places become free, and no place goes on while ``size``
        finished episodes wait to be taken: jobs may be an endless generator. A fault gives its
        episode and touches no other; any other error ends all and is raised, after the episodes
        that were finished before it.

        Args:
            attempt: plays one episode.
            jobs: what to play.
            actor: named in episodes that could not begin.
        """
        if self._tasks:
            raise ConfigError("this pool is playing already: one stream of episodes at a time")
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
        """Cancel what is being played and close every environment; may be called twice.

        Raises:
            EnvironmentFault: one could not be closed; the others are.
        """
        await self._stop()
        faults = []
        for seat in self._seats:
            try:
                await seat.leave()
            except EnvironmentFault as error:
                faults.append(error)
        if faults:
            raise faults[0]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # What ended the block matters more than what then failed to close.
        with contextlib.suppress(*(() if error is None else (EnvironmentFault,))):
            await self.close()

    async def _work(
        self,
        seat: _Seat,
        attempt: Attempt,
        source: _Source,
        ready: asyncio.Queue[tuple[int, Episode] | BaseException | None],
        actor: str,
    ) -> None:
        """Play in one place until there are no jobs; the last place that is given up goes on."""
        try:
            while seat.fit or not any(other.fit for other in self._seats):
                numbered = await source.next()
                if numbered is None:
                    break
                number, (task, seed) = numbered
                await ready.put((number, await seat.play(attempt, task, seed, actor)))
        except Exception as error:
            await ready.put(error)
        else:
            await ready.put(None)

    async def _stop(self) -> None:
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Source:
    """Jobs one by one, numbered, for several takers."""

    def __init__(self, jobs: Iterable[Job] | AsyncIterable[Job]) -> None:
        self._plain: Iterator[Job] | None = None
        self._slow: AsyncIterator[Job] | None = None
        if isinstance(jobs, AsyncIterable):
            self._slow = aiter(jobs)
        else:
            self._plain = iter(jobs)
        self._taken = 0
        self._turn = asyncio.Lock()

    async def next(self) -> tuple[int, Job] | None:
        async with self._turn:
            job = await self._job()
            if job is None:
                return None
            self._taken += 1
            return self._taken - 1, job

    async def _job(self) -> Job | None:
        if self._plain is not None:
            return next(self._plain, None)
        assert self._slow is not None
        return await anext(self._slow, None)


class _Seat:
    """One environment at a time, made when first needed and replaced after a fault."""

    def __init__(self, place: int, make: MakeEnvironment, restarts: Restarts) -> None:
        self.place = place
        self.fit = True
        """Whether the place has not been given up."""
        self._make, self._restarts = make, restarts
        self._environment: Environment | None = None
        self._name = self._fault = ""
        self._row = 0  # faults since the last whole episode
        self._episodes = self._faults = self._replaced = 0
        self._made = False
        self._laps: dict[Literal["reset", "step"], array[float]] = {
            "reset": array("d"),
            "step": array("d"),
        }

    async def play(self, attempt: Attempt, task: str, seed: int, actor: str) -> Episode:
        """One episode, again after a fault as often as the rules of the pool say."""
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
            else:
                episode = await attempt(environment, task, seed, self._lap)
            if episode.fault is None:
                self._row = 0
                break
            await self._broke(episode.fault)
            if not self.fit:
                break
        self._episodes += 1
        return episode

    async def leave(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            await environment.close()

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
                f"the environment was replaced {self._restarts.limit} times in a row and given "
                f"up; its last fault: {self._fault}"
            )
        if self._environment is None:
            if self._made:
                self._replaced += 1
                await asyncio.sleep(self._restarts.pause(self._row - 1))
            self._made = True
            made = self._make()
            self._environment = await made if inspect.isawaitable(made) else made
            self._name = self._environment.name
        return self._environment

    async def _broke(self, fault: Failure) -> None:
        if not self.fit:
            return
        self._faults += 1
        self._row += 1
        self._fault = str(fault)
        limit = self._restarts.limit
        self.fit = limit is None or self._row <= limit
        # The episode already tells what broke; a broken world may well fail to close too.
        with contextlib.suppress(EnvironmentFault):
            await self.leave()

    def _lap(self, what: Literal["reset", "step"], seconds: float) -> None:
        self._laps[what].append(seconds)
