"""What bounds the calls of a run: slots, and time limits of a call and of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any

from swarm_ui.engine.limits import Limits
from swarm_ui.message import Message
from swarm_ui.node import Answer, NodeContext, NodeReply


class Expired(Exception):
    """The time limit of a call has passed."""


class Bounds:
    """The limits of one run, applied to its calls. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.clock = asyncio.get_running_loop().time
        self.start = self.clock()
        self._end = inf if limits.run_timeout is None else self.start + limits.run_timeout
        self._deadlines = _Deadlines()
        self._gate = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._holding: set[str] = set()
        self._none = limits.timeout is None and self._end == inf and self._gate is None

    def answer(
        self,
        node: Answer,
        inbox: Sequence[Message],
        context: NodeContext,
        task: asyncio.Task[Any],
        seconds: float | None,
        composite: bool,
        closes: bool = False,
    ) -> Awaitable[NodeReply | Message]:
        """The answer of a node, within its time limit and a slot of the run.

        Args:
            task: the task that awaits this.
            seconds: the node's own time limit; ``None``: that of the run.
            composite: the node has nodes inside, so that it needs no slot and has no time limit.
            closes: it may answer after the end of the run's time.

        Raises:
            Expired: the time limit passed before there was an answer.
            Exception: whatever the node raises.
        """
        if self._none and seconds is None:
            return node(inbox, context)
        if seconds is None and not composite:
            seconds = self.limits.timeout
        end = inf if closes or composite else self._end
        return self._bounded(node, inbox, context, task, seconds, end, composite)

    async def _bounded(
        self,
        node: Answer,
        inbox: Sequence[Message],
        context: NodeContext,
        task: asyncio.Task[Any],
        seconds: float | None,
        end: float,
        composite: bool,
    ) -> NodeReply | Message:
        gate = None if composite else self._gate
        if gate is not None:
            await gate.acquire()
            self._holding.add(context.message_id)
        try:
            if seconds is None and end == inf:
                return await node(inbox, context)
            now = self.clock()
            if now >= end:
                raise Expired(f"not asked: the run's {self.limits.run_timeout:g} s were over")
            due = end if seconds is None else min(end, now + seconds)
            ticket = self._deadlines.open(task, due)
            try:
                return await node(inbox, context)
            except asyncio.CancelledError:
                # Ours only if the time ran out and nothing else cancels the run.
                if not self._deadlines.fired(ticket) or task.cancelling() > 1:
                    raise
                raise self._expired(seconds, end) from None
            finally:
                if self._deadlines.close(ticket):
                    task.uncancel()
        finally:
            if gate is not None and context.message_id in self._holding:
                self._holding.discard(context.message_id)
                gate.release()

    def _expired(self, seconds: float | None, end: float) -> Expired:
        if self.clock() >= end:
            return Expired(f"no answer before the run's {self.limits.run_timeout:g} s were over")
        return Expired(f"no answer within {seconds:g} s")

    @asynccontextmanager
    async def without_slot(self, id: str) -> AsyncIterator[None]:
        """Give the slot of a call to the calls inside it, while the block runs."""
        gate = self._gate
        holder = next((each for each in (id, *around(id)) if each in self._holding), None)
        if gate is None or holder is None:
            yield
            return
        self._holding.discard(holder)
        gate.release()
        try:
            yield
        finally:
            await gate.acquire()
            self._holding.add(holder)

    def stop(self) -> None:
        """Cancel the timer."""
        self._deadlines.stop()


def around(id: str) -> Iterator[str]:
    """Ids of the calls inside of which a call was made, the outermost first."""
    place = id.find("/")
    while place >= 0:
        yield id[:place]
        place = id.find("/", place + 1)


class _Deadlines:
    """Cancels the task of each call whose time is over, with one timer for all calls.

    ``asyncio.timeout`` sets and cancels a timer for each call, which is most of the cost of
    thousands of short calls. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, tuple[float, asyncio.Task[Any]]] = {}
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._fired: set[int] = set()

    def open(self, task: asyncio.Task[Any], due: float) -> int:
        """Watch a call that ``task`` makes, until ``due`` on the loop's clock; returns a ticket."""
        self._next = ticket = self._next + 1
        self._running[ticket] = (due, task)
        if due < self._due:
            self._wake(due)
        return ticket

    def fired(self, ticket: int) -> bool:
        """Whether the time of the call ran out, so that this class cancelled its task."""
        return ticket in self._fired

    def close(self, ticket: int) -> bool:
        """Stop watching a call; return whether its time had run out."""
        if self._running.pop(ticket, None) is None:
            self._fired.discard(ticket)
            return True
        return False

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
                self._fired.add(ticket)
                task.cancel()
        self._timer, self._due = None, inf
        if self._running:
            self._wake(min(due for due, _ in self._running.values()))
