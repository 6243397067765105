"""The interface of playing episodes, on this machine or on others."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Generic, Protocol, Self, TypeVar, cast

from swarm_ui.errors import BudgetExceeded
from swarm_ui.rollout.intervention import Intervene
from swarm_ui.rollout.policy import Policy
from swarm_ui.rollout.pool import Job
from swarm_ui.trace.records import Episode

T = TypeVar("T")

OnEpisode = Callable[[int, int, Episode], None]
"""``(finished episodes, all episodes, the episode that just finished)``."""


class PerWorker(Generic[T]):
    """A value that each worker makes for itself, because it cannot be sent there::

        PerWorker(lambda: GraphPolicy(CollabGraph.solo(LocalModel.load(path))))

    A worker makes it when it is first used, and keeps it for as long as the same ``PerWorker`` is
    used in that place.
    """

    def __init__(
        self, make: Callable[[], T | Awaitable[T] | AbstractAsyncContextManager[T]]
    ) -> None:
        """``make``: a function or a coroutine function, or one whose result is entered with
        ``async with`` and left at the end. It is sent to the workers."""
        self.make = make
        self.key = uuid.uuid4().hex
        """Identifies the value in a worker; equal in all copies."""

    async def opened(self, stack: AsyncExitStack) -> T:
        """Make the value in this process; leaving the stack ends it."""
        made = self.make()
        if isinstance(made, AbstractAsyncContextManager):
            return cast(T, await stack.enter_async_context(made))
        if inspect.isawaitable(made):
            return cast(T, await made)
        return made


class OpenPolicy:
    """The policy of a worker: the one that was used last stays open."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._key = ""
        self._policy: Policy | None = None

    async def take(self, given: Policy | PerWorker[Policy]) -> Policy:
        """The policy, which is made unless the same :class:`PerWorker` made the last one."""
        key = given.key if isinstance(given, PerWorker) else ""
        if self._policy is None or not key or key != self._key:
            self._key = ""
            await self.close()
            made = await given.opened(self._stack) if isinstance(given, PerWorker) else given
            self._policy, self._key = made, key
        return self._policy

    async def close(self) -> None:
        """End the last policy."""
        old, self._stack, self._policy = self._stack, AsyncExitStack(), None
        await old.aclose()


class Rollouts(Protocol):
    """Plays jobs with policies. Use it with ``async with``; environments are kept between streams.

    :class:`~swarm_ui.rollout.episodes.LocalRollout` plays in this process,
    :class:`~swarm_ui.rollout.distributed.RayRollout` in workers of a Ray cluster. Equal seeds give
    equal episodes.
    """

    @property
    def concurrency(self) -> int:
        """Maximum number of concurrent episodes."""
        ...

    def stream(
        self,
        policy: Policy | PerWorker[Policy],
        jobs: Iterable[Job] | AsyncIterable[Job],
        *,
        intervention: Intervene | None = None,
        max_steps: int | None = None,
    ) -> AsyncGenerator[tuple[int, Episode], None]:
        """Play jobs; yields the number and the episode of each job, in the order they finish.

        Every job gives exactly one episode. ``jobs`` is read only as fast as episodes are played
        and consumed. Only one stream may run at a time.

        Args:
            policy: serves all episodes.
            jobs: (task, seed) pairs; may be infinite.
            intervention, max_steps: see :func:`swarm_ui.rollout.episodes.rollout`.

        Raises:
            ConfigError, BudgetExceeded: as in :func:`~swarm_ui.rollout.episodes.rollout`, after
                the episodes that were finished before.
        """
        ...

    async def close(self) -> None:
        """Cancel running episodes and close every environment; may be called twice."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None: ...


async def play_jobs(
    rollouts: Rollouts,
    policy: Policy | PerWorker[Policy],
    jobs: Sequence[Job],
    *,
    progress: OnEpisode | None = None,
    intervention: Intervene | None = None,
    max_steps: int | None = None,
) -> list[Episode]:
    """Play all jobs; ``rollouts`` stays open.

    Args:
        progress: called after each episode, in the order they end.
        policy, jobs, intervention, max_steps: see :meth:`Rollouts.stream`.

    Returns:
        episodes in the order of ``jobs``.

    Raises:
        BudgetExceeded: its ``episodes`` holds all finished episodes, in the order of ``jobs``.
    """
    done: list[Episode | None] = [None] * len(jobs)
    finished = 0
    stream = rollouts.stream(policy, jobs, intervention=intervention, max_steps=max_steps)
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
