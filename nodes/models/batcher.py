"""Collects concurrent requests into batches.

When no coroutine of the event loop can continue without an answer, the queue is answered in
batches, first come, first served. No clock is involved, so with in-process environments the batches
are the same in every run. A batch is computed in a thread of its own, so that the event loop goes
on, and connections with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from swarm_ui.errors import ModelError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_IDLE_TURNS = 12
"""Turns of the event loop without a new item before a batch is closed. This is more than the turns
between a finished forward and the next request of the same episode."""
_MAX_TOKENS = 65_536
"""Of a batch, all rows as long as the longest; a longer item is a batch of its own."""


class Batcher(Generic[Item, Answer]):
    """Collects the items of concurrent calls, and answers them in batches."""

    def __init__(
        self,
        answer: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        length: Callable[[Item], int] = lambda item: 1,
        max_rows: int = 64,
    ) -> None:
        """``answer`` returns the answers to a batch of at most ``max_rows``, in order. ``length``:
        tokens of an item."""
        self._answer, self._length, self._max_rows = answer, length, max_rows
        self._queue: deque[tuple[Item, asyncio.Future[Answer]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="swarm-ui model")

    async def ask(self, items: Sequence[Item]) -> list[Answer]:
        """The answers to ``items``, in order. Errors of ``answer`` are raised here, and
        ``ModelError`` if another event loop is waiting for answers of this batcher."""
        if not items:
            return []
        loop = asyncio.get_running_loop()
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        elif self._worker.get_loop() is not loop:
            raise ModelError(
                "this model is answering on another event loop (another thread); "
                "use one loop for all runs, or load a model for each"
            )
        answers: list[asyncio.Future[Answer]] = [loop.create_future() for _ in items]
        self._queue.extend(zip(items, answers, strict=True))
        try:
            return await asyncio.gather(*answers)
        finally:  # if it was cancelled, or a batch with some of the items failed
            for answer in answers:
                answer.cancel()

    async def _work(self) -> None:
        while self._queue:
            await self._wait_until_idle()
            if batch := self._taken():
                await self._serve(batch)
            await asyncio.sleep(0)  # let the callers run before looking for more items

    def _taken(self) -> list[tuple[Item, asyncio.Future[Answer]]]:
        """The next batch, removed from the queue with what nobody waits for any more."""
        batch: list[tuple[Item, asyncio.Future[Answer]]] = []
        longest = 0
        while self._queue and len(batch) < self._max_rows:
            item, answer = self._queue[0]
            if not answer.done():
                longest = max(longest, self._length(item))
                if batch and longest * (len(batch) + 1) > _MAX_TOKENS:
                    break
                batch.append((item, answer))
            self._queue.popleft()
        return batch

    async def _serve(self, batch: Sequence[tuple[Item, asyncio.Future[Answer]]]) -> None:
        items, waiting = zip(*batch, strict=True)
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.run_in_executor(self._thread, self._answer, items)
            answered = list(zip(waiting, answers, strict=True))
        except Exception as error:
            for done in waiting:
                if not done.done():
                    done.set_exception(error)
            return
        for done, answer in answered:
            if not done.done():
                done.set_result(answer)

    async def _wait_until_idle(self) -> None:
        """Return when the queue holds a whole batch, or has stopped growing."""
        idle, size = 0, len(self._queue)
        while idle < _IDLE_TURNS and len(self._queue) < self._max_rows:
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._queue) == size else 0
            size = len(self._queue)
