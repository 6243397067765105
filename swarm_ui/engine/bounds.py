"""What bounds the calls of a run: slots, and time limits of a call and of the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any

from swarm_ui.engine.limits import Limits
from swarm_ui.engine.record import Expired
from swarm_ui.engine.scheduler import Deadlines
from swarm_ui.message import Message
from swarm_ui.node import Answer, NodeContext, NodeReply


class Bounds:
    """The limits of one run. Belongs to one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.clock = asyncio.get_running_loop().time
        self.start = self.clock()
        self.end = inf if limits.run_timeout is None else self.start + limits.run_timeout
        self.deadlines = Deadlines()
        self.gate = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._holding: set[str] = set()

    async def answer(
        self,
        node: Answer,
        inbox: Sequence[Message],
        context: NodeContext,
        task: asyncio.Task[Any],
        seconds: float | None,
        end: float,
        composite: bool,
    ) -> NodeReply | Message:
        """The answer of a node, within its time limit and a slot of the run.

        Args:
            task: the task that awaits this.
            seconds: time limit; ``None``: there is none.
            end: time of the clock at which the call must be over.
            composite: whether the node has nodes inside, so that it needs no slot.

        Raises:
            Expired: the time limit passed before there was an answer.
            TypeError: the answer is neither a NodeReply nor a Message.
            Exception: whatever the node raises.
        """
        gate = None if composite else self.gate
        if gate is not None:
            await gate.acquire()
            self._holding.add(context.message_id)
        try:
            if seconds is None and end == inf:
                reply = await node(inbox, context)
            else:
                now = self.clock()
                if now >= end:
                    raise Expired(f"not asked: the run's {self.limits.run_timeout:g} s were over")
                due = end if seconds is None else min(end, now + seconds)
                ticket = self.deadlines.open(task, due)
                try:
                    reply = await node(inbox, context)
                except asyncio.CancelledError:
                    # Ours only if the time ran out and nothing else cancels the run.
                    if not self.deadlines.fired(ticket) or task.cancelling() > 1:
                        raise
                    raise self._expired(seconds, end) from None
                finally:
                    if self.deadlines.close(ticket):
                        task.uncancel()
        finally:
            if gate is not None and context.message_id in self._holding:
                self._holding.discard(context.message_id)
                gate.release()
        if type(reply) is not NodeReply and not isinstance(reply, Message):
            raise TypeError(f"answered with a {type(reply).__name__}, not a NodeReply")
        return reply

    def _expired(self, seconds: float | None, end: float) -> Expired:
        if self.clock() >= end:
            return Expired(f"no answer before the run's {self.limits.run_timeout:g} s were over")
        return Expired(f"no answer within {seconds:g} s")

    @asynccontextmanager
    async def without_slot(self, id: str) -> AsyncIterator[None]:
        """Give the slot of a call to the calls inside it, while the block runs."""
        gate = self.gate
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


def around(id: str) -> Iterator[str]:
    """Ids of the calls inside of which a call was made, the outermost first."""
    place = id.find("/")
    while place >= 0:
        yield id[:place]
        place = id.find("/", place + 1)
