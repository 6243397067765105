"""Collects concurrent requests into batches.

When no coroutine of the event loop can continue without an answer, the queue is answered in
batches. No clock is involved (unless ``linger`` is set), so with in-process environments the
batches are the same in every run. A batch takes one item of each caller, then a second item of
each, and so on, so a caller with many items does not delay the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from swarm_ui.errors import ConfigError, ModelError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_IDLE_TURNS = 12
"""Turns of the event loop without a new item before a batch is closed. This is more than the turns
between a finished forward and the next request of the same episode."""


@dataclass(slots=True, eq=False)
class _Call(Generic[Answer]):
    """The answers to one call so far, and the future that its caller awaits."""

    caller: Hashable
    missing: int
    done: asyncio.Future[None]
    answers: dict[int, Answer] = field(default_factory=dict)


class _Entry(NamedTuple, Generic[Item, Answer]):
    """One item in the queue, and its number in the call."""

    item: Item
    number: int
    call: _Call[Answer]


class _FairQueue(Generic[Item, Answer]):
    """A queue that serves its callers in turn, and the items of one caller in order."""

    def __init__(self) -> None:
        # The caller that has waited longest is the first.
        self._queues: dict[Hashable, deque[_Entry[Item, Answer]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, entry: _Entry[Item, Answer]) -> None:
        self._queues.setdefault(entry.call.caller, deque()).append(entry)
        self._size += 1

    def take(self) -> _Entry[Item, Answer]:
        """The next item of the caller that has waited longest."""
        caller = next(iter(self._queues))
        queue = self._queues.pop(caller)
        entry = queue.popleft()
        self._size -= 1
        if queue:
            self._queues[caller] = queue  # now behind the other callers
        return entry

    def drop(self, call: _Call[Answer]) -> None:
        """Remove the items of a call. Its caller keeps its place in the queue of callers."""
        queue = self._queues.get(call.caller, deque())
        kept = deque(entry for entry in queue if entry.call is not call)
        self._size -= len(queue) - len(kept)
        if kept:
            self._queues[call.caller] = kept
        else:
            self._queues.pop(call.caller, None)


class Batcher(Generic[Item, Answer]):
    """Collects the items of concurrent calls, and answers them in batches."""

    def __init__(
        self,
        answer: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        max_batch: int = 256,
    ) -> None:
        """``answer`` is called with a batch on the event loop's thread and returns the answers in
        order."""
        if max_batch < 1:
            raise ConfigError(f"Batcher: max_batch must be at least 1, got {max_batch}")
        self._answer = answer
        self.max_batch = max_batch
        self.linger = 0.0
        """Seconds to wait for more items after the loop has become idle: 0 for in-process
        environments, a few milliseconds if observations come over a socket."""
        self._queue: _FairQueue[Item, Answer] = _FairQueue()
        self._worker: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return len(self._queue)

    async def ask(self, items: Sequence[Item], caller: Hashable = None) -> list[Answer]:
        """The answers to ``items``, in order. Errors of ``answer`` are raised here, and
        ``ModelError`` if another event loop is waiting for answers of this batcher.

        Callers (such as runs) are served in turn. If ``caller`` is ``None``, this call counts as a
        separate caller.
        """
        if not items:
            return []
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        call: _Call[Answer] = _Call(done if caller is None else caller, len(items), done)
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        elif self._worker.get_loop() is not loop:
            raise ModelError(
                "this model is answering on another event loop (another thread); "
                "use one loop for all runs, or load a model for each"
            )
        for number, item in enumerate(items):
            self._queue.put(_Entry(item, number, call))
        try:
            await call.done
        finally:
            if call.missing:  # cancelled, or a batch with some of the items failed
                self._queue.drop(call)
        return [call.answers[number] for number in range(len(items))]

    async def _work(self) -> None:
        while self._queue:
            await self._wait_until_idle()
            size = min(len(self._queue), self.max_batch)
            if size:
                self._serve([self._queue.take() for _ in range(size)])
            await asyncio.sleep(0)  # let the callers run before looking for more items

    def _serve(self, batch: Sequence[_Entry[Item, Answer]]) -> None:
        try:
            answered = zip(batch, self._answer([entry.item for entry in batch]), strict=True)
            answers = list(answered)
        except Exception as error:
            for entry in batch:
                if not entry.call.done.done():
                    entry.call.done.set_exception(error)
            return
        for entry, answer in answers:
            call = entry.call
            call.answers[entry.number] = answer
            call.missing -= 1
            if call.missing == 0 and not call.done.done():
                call.done.set_result(None)

    async def _wait_until_idle(self) -> None:
        """Return when the queue holds a whole batch, or has stopped growing."""
        idle, size = 0, len(self._queue)
        while idle < _IDLE_TURNS and len(self._queue) < self.max_batch:
            await asyncio.sleep(0)
            idle = idle + 1 if len(self._queue) == size else 0
            size = len(self._queue)
            if idle == _IDLE_TURNS and self.linger > 0:
                await asyncio.sleep(self.linger)
                idle = _IDLE_TURNS if len(self._queue) == size else 0
                size = len(self._queue)
