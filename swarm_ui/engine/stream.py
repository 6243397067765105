"""The events of a run as an asynchronous iterator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Self

from swarm_ui.engine.events import Event, Finished, OnEvent
from swarm_ui.trace.records import Trace


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
