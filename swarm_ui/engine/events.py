"""Events of a run, and the stream of them that :meth:`CollabGraph.stream` returns.

Times are seconds since the start of the run. Every event contains the name of its run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self

import msgspec

from swarm_ui.action import Action
from swarm_ui.errors import Failure
from swarm_ui.trace.records import Call, Trace


class CallEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all events of a call; ``id`` is that of its message."""

    run: str
    id: str
    node: str
    round: int


class CallStarted(CallEvent, frozen=True, kw_only=True, tag="call_started"):
    """A node was called, after all its messages had arrived."""

    heard: tuple[str, ...]
    at: float
    model: str = ""
    """For a turn of a node's conversation: the name of the model that is asked."""
    tool: str = ""
    """For a call of a tool inside a node: the name of the tool."""


class Token(CallEvent, frozen=True, kw_only=True, tag="token"):
    """A piece of a reply, from models that stream. If a reply breaks off and is asked for again,
    no pieces of the new one come; the message has its text."""

    text: str


class CallFinished(msgspec.Struct, frozen=True, kw_only=True, tag="message"):
    """A call has finished, and its message (which may be a tombstone) is sent to the successors."""

    run: str
    call: Call


class Failed(CallEvent, frozen=True, kw_only=True, tag="error"):
    """A node failed. A tombstone or the end of the run follows."""

    error: Failure


class Skipped(CallEvent, frozen=True, kw_only=True, tag="skipped"):
    """A node was skipped, because none of its edges delivered a message."""


class Voted(msgspec.Struct, frozen=True, kw_only=True, tag="vote"):
    """The output node has answered."""

    run: str
    ballot: dict[str, float]
    """Weight of each proposal, keyed by the action's JSON; empty if the output does not vote."""
    action: Action | None


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The run has finished; always the last event of a run that did not raise."""

    run: str
    trace: Trace


class Aborted(msgspec.Struct, frozen=True, kw_only=True, tag="aborted"):
    """The run was cancelled or raises; always the last event of a run that does."""

    run: str
    error: Failure
    """The error that it raises; its kind is ``"cancelled"`` if the run was cancelled."""
    at: float


Event = CallStarted | Token | CallFinished | Failed | Skipped | Voted | Finished | Aborted
OnEvent = Callable[[Event], None]
"""Called with each event at once, in the event loop: must not block, and must not raise."""


class RunStream:
    """The events of one run, in the order they happen; the last is ``Finished``.

    The run starts when the iteration starts. If the run fails, the iteration first yields the
    earlier events and then raises the exception. Leaving an ``async with`` block, or calling
    :meth:`aclose`, cancels an unfinished run and waits until its tasks have ended::

        async with team.stream(observation) as events:
            async for event in events:
                ...
        events.trace
    """

    def __init__(self, begin: Callable[[OnEvent], Coroutine[Any, Any, Trace]]) -> None:
        self._begin = begin
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[Trace] | None = None
        self._trace: Trace | None = None
        self._over = False

    @property
    def trace(self) -> Trace:
        """The trace of the finished run. Raises ``RuntimeError`` if the run is not over yet."""
        if self._trace is None:
            raise RuntimeError("the run has not finished: iterate over its events first")
        return self._trace

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._begin(self._queue.put_nowait))
            self._task.add_done_callback(lambda _: self._queue.put_nowait(None))
        event = await self._queue.get()
        if event is None:
            self._over = True
            self._task.result()
            raise StopAsyncIteration
        if isinstance(event, Finished):
            self._trace = event.trace
        return event

    async def aclose(self) -> None:
        """Cancel the run if it is not over; no task of it is left when this returns."""
        self._over = True
        task = self._task
        if task is None or task.done():
            return
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
