"""Limits of a run: time, and what happens when a node fails; and their application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from math import inf
from typing import Any, Literal, NamedTuple

import msgspec

from swarm_ui.errors import ConfigError, Failure
from swarm_ui.message import Message
from swarm_ui.node import Answer, NodeContext, NodeReply


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limit and failure policy of a run.

    Raises:
        ConfigError: the time is not above 0.
    """

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


class Bound(NamedTuple):
    """What bounds one call."""

    seconds: float | None = None
    """Its own time limit; ``None``: that of the run."""
    composite: bool = False
    """It has nodes inside, so that it has no time limit."""


class Unanswered(Exception):
    """A node asked a question to which there is no answer yet; its call is made later."""


class Known(Exception):
    """A failure that no exception of the node caused: its time is over, or it failed in the
    record."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Bounds:
    """The limits of one run, applied to its calls. Belongs to one event loop.

    One timer serves all calls: ``asyncio.timeout`` sets and cancels a timer for each, which is most
    of the cost of thousands of short calls.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._loop = asyncio.get_running_loop()
        self.clock = self._loop.time
        self.start = self.clock()
        self._running: dict[int, tuple[float, asyncio.Task[Any]]] = {}
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf

    def answer(
        self, node: Answer, inbox: Sequence[Message], context: NodeContext, bound: Bound | None
    ) -> Awaitable[NodeReply | Message]:
        """The answer of a node, within its time limit.

        ``bound``: ``None`` for a step that has only the limits of the call around it.

        Raises:
            Known: the time limit passed before there was an answer.
            Exception: whatever the node raises.
        """
        if bound is None:
            return node(inbox, context)
        seconds, composite = bound
        if seconds is None and not composite:
            seconds = self.limits.timeout
        if seconds is None:
            return node(inbox, context)
        return self._timed(node, inbox, context, seconds)

    async def _timed(
        self, node: Answer, inbox: Sequence[Message], context: NodeContext, seconds: float
    ) -> NodeReply | Message:
        due, task = self.clock() + seconds, asyncio.current_task()
        assert task is not None
        self._next = ticket = self._next + 1
        self._running[ticket] = (due, task)
        if due < self._due:
            self._wake(due)
        try:
            return await node(inbox, context)
        except asyncio.CancelledError:
            # Ours only if the time ran out and nothing else cancels the run.
            if ticket in self._running or task.cancelling() > 1:
                raise
            late = Failure(kind="timeout", message=f"no answer within {seconds:g} s")
            raise Known(late) from None
        finally:
            if self._running.pop(ticket, None) is None:
                task.uncancel()

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, inf

    def _wake(self, due: float) -> None:
        self.stop()
        self._timer, self._due = self._loop.call_at(due, self._expire), due

    def _expire(self) -> None:
        """Cancel the calls whose time is over, and set the timer for the next one."""
        now = max(self._due, self._loop.time())  # timers may be a tick early
        for ticket, (due, task) in list(self._running.items()):
            if due <= now:
                del self._running[ticket]
                task.cancel()
        self.stop()
        if self._running:
            self._wake(min(due for due, _ in self._running.values()))
