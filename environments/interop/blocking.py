"""A blocking environment, for programs without an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from swarm_ui.action import Action
from swarm_ui.environment import Environment, Step, check_factory
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation

T = TypeVar("T")
Make = Callable[[], Environment | Awaitable[Environment]]
"""A function that makes an environment."""


class BlockingEnvironment:
    """Runs an environment on an event loop in a separate thread.

    Args:
        make: makes the environment; called on that loop.
    """

    def __init__(self, make: Make) -> None:
        check_factory(make)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="swarm-ui environment", daemon=True
        )
        self._thread.start()

        async def made() -> Environment:
            env = make()
            return await env if inspect.isawaitable(env) else env

        try:
            self.env = self._wait(made())
        except BaseException:  # re-raised: the thread ends first, also on Ctrl-C
            self._end()
            raise

    def reset(self, *, task: str, seed: int) -> Observation:
        return self._wait(self.env.reset(task=task, seed=seed))

    def step(self, action: Action) -> Step:
        """Perform one step. Raises ``EnvironmentFault`` also for a fault that the environment
        reports in ``Step.fault``."""
        step = self._wait(self.env.step(action))
        if step.fault is not None:
            raise EnvironmentFault(f"{self.env.name}: {step.fault}")
        return step

    def close(self) -> None:
        """Close the environment and end the thread; may be called twice."""
        if self._loop.is_closed():
            return
        try:
            self._wait(self.env.close())
        finally:
            self._end()

    def _wait(self, doing: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            doing.close()
            raise EnvironmentFault(f"{self.env.name}: the environment was closed; make a new one")
        future = asyncio.run_coroutine_threadsafe(doing, self._loop)
        try:
            return future.result()
        except BaseException:  # re-raised: also Ctrl-C while waiting
            future.cancel()
            raise

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
