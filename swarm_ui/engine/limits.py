"""Limits of a run: time, and what happens when a node fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Literal, TypeVar

import msgspec

from swarm_ui.errors import ConfigError, Failure
from swarm_ui.node import Known

T = TypeVar("T")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limit and failure policy of a run. Raises ``ConfigError`` for a time of 0 or less."""

    timeout: float | None = None
    """Seconds for one call; a node's own ``timeout`` has precedence. A nested graph is not one
    call: its calls are timed one by one. ``None``: no limit."""
    on_failure: Literal["tombstone", "abort"] = "tombstone"
    """Effect of the failure of a node without a fallback. ``tombstone``: successors see a message
    with an ``error``, and the run raises ``RunFailed`` at its end if no node succeeded. ``abort``:
    the run raises ``NodeError`` at the first failure."""

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigError(f"Limits: timeout must be > 0 seconds or None, got {self.timeout}")


class Deadlines:
    """The time limits of the calls of one run, with one timer. Belongs to one event loop.

    ``asyncio.timeout`` sets and cancels a timer for each call, which costs more than the call.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._running: dict[object, tuple[float, asyncio.Task[Any]]] = {}

    async def within(self, seconds: float, answer: Awaitable[T]) -> T:
        """The answer. Raises ``Known`` if the time passes before."""
        call, task, due = object(), asyncio.current_task(), self._loop.time() + seconds
        assert task is not None
        self._running[call] = due, task
        if self._timer is None or due < self._timer.when():
            self._wake(due)
        try:
            return await answer
        except asyncio.CancelledError:
            # Ours only if the time ran out and nothing else cancels the run.
            if call in self._running or task.cancelling() > 1:
                raise
            late = Failure(kind="timeout", message=f"no answer within {seconds:g} s")
            raise Known(late) from None
        finally:
            if self._running.pop(call, None) is None:
                task.uncancel()

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self, due: float) -> None:
        self.stop()
        self._timer = self._loop.call_at(due, self._expire, due)

    def _expire(self, now: float) -> None:
        """Cancel the calls whose time is over, and set the timer for the next one."""
        self._timer = None
        for call, (due, task) in list(self._running.items()):
            if due <= max(now, self._loop.time()):  # timers may be a tick early
                del self._running[call]
                task.cancel()
        if self._running:
            self._wake(min(due for due, _ in self._running.values()))
