"""Workers, which play episodes, and the worker of this process."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from swarm_ui.collab_graph import CollabGraph
from swarm_ui.environment import Environment, check_factory
from swarm_ui.errors import ConfigError, EnvironmentFault, Failure
from swarm_ui.rollout.episode import Intervene, Job, MakeEnvironment, rollout
from swarm_ui.rollout.policy import Policy
from swarm_ui.trace.records import Episode

T_co = TypeVar("T_co", covariant=True)

Acting = Policy | CollabGraph
"""Who acts: a policy, or a graph, which stands for its :class:`GraphPolicy`."""


Attempt = Callable[..., Awaitable[Episode]]
"""Plays one episode: ``await attempt(environment, task=..., seed=...)``."""


@dataclass(frozen=True, slots=True)
class PerWorker(Generic[T_co]):
    """A value that each process makes for itself, because it cannot be sent there::

        PerWorker(lambda: GraphPolicy(CollabGraph.solo(LocalModel.load(path))))

    A process makes it when it is first used there, and keeps it until its workers are closed.
    """

    make: Callable[[], T_co | AbstractAsyncContextManager[T_co]]
    """A function, or one whose result is entered with ``async with`` and left at the end. It is
    sent to the workers."""
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Identifies the value in a process; equal in all copies."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """How the episodes of a stream are played; it is sent to the workers."""

    policy: Acting | PerWorker[Acting] | None = None
    attempt: Attempt | None = None
    """Plays an episode instead of a policy."""
    intervention: Intervene | None = None
    max_steps: int | None = None


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

    async def play(self, job: Job, work: Work) -> Episode:
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
        self, make_environment: MakeEnvironment | PerWorker[MakeEnvironment], *, slots: int = 8
    ) -> None:
        """
        Args:
            make_environment: called at most ``slots`` times, and once more after each fault; may
                be a coroutine function.
            slots: episodes, and so environments, at the same time.
        """
        if slots < 1:
            raise ConfigError(f"LocalWorker: 'slots' must be at least 1, got {slots}")
        if not isinstance(make_environment, PerWorker):
            check_factory(make_environment)
        self.slots = slots
        self._make = make_environment
        self._free: list[Environment] = []
        self._stack, self._made, self._making = AsyncExitStack(), dict[str, Any](), asyncio.Lock()

    async def start(self) -> None:
        """There is nothing to start."""

    async def play(self, job: Job, work: Work) -> Episode:
        """Play one episode; see :class:`Worker`."""
        attempt = work.attempt
        if attempt is None:
            attempt = partial(
                rollout, policy=await self._own(work.policy), intervention=work.intervention,
                max_steps=work.max_steps,
            )  # fmt: skip
        episode = await self._try(job, attempt)
        return episode if episode.fault is None else await self._try(job, attempt)

    async def close(self) -> None:
        """Close all environments and what :class:`PerWorker` made. Raises ``EnvironmentFault`` if
        an environment could not be closed; all others are."""
        closing = [environment.close() for environment in self._free]
        stack, self._free, self._stack = self._stack, [], AsyncExitStack()
        ended = await asyncio.gather(*closing, return_exceptions=True)
        self._made.clear()
        await stack.aclose()
        for error in ended:
            if error is not None:
                raise error

    async def _try(self, job: Job, attempt: Attempt) -> Episode:
        task, seed = job
        try:
            if self._free:
                environment = self._free.pop()
            else:
                made = (await self._own(self._make))()
                environment = await made if inspect.isawaitable(made) else made
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

    async def _own(self, given: Any) -> Any:
        """A value, which this process makes at its first use if it cannot be sent."""
        if not isinstance(given, PerWorker):
            return given
        async with self._making:
            if given.key not in self._made:
                made = given.make()
                if isinstance(made, AbstractAsyncContextManager):
                    made = await self._stack.enter_async_context(made)
                self._made[given.key] = made
        return self._made[given.key]
