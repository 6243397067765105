"""Writes in another thread; all waiting items share one commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Generic, TypeVar

T = TypeVar("T")


class _Batch(Generic[T]):
    __slots__ = ("done", "items", "waiters")

    def __init__(self) -> None:
        self.items: list[T] = []
        self.waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.done = threading.Event()


class Batches(Generic[T]):
    """Commits items in order in a thread of a pool, one batch at a time.

    Items that arrive during a commit form the next batch.
    """

    def __init__(self, pool: Executor, commit: Callable[[list[T]], None]) -> None:
        """``commit``: called with a batch in a thread; all waiting callers get its error."""
        self._pool, self._commit = pool, commit
        self._lock = threading.Lock()
        self._next: _Batch[T] | None = None
        self._busy = False

    def add(self, item: T) -> tuple[asyncio.Future[None], threading.Event]:
        """Commit an item.

        Returns:
            a future to await, and an event that is set when the batch has finished or failed.

        Raises:
            RuntimeError: the pool is shut down.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if not self._busy:
                self._pool.submit(self._work)
                self._busy = True
            batch = self._next
            if batch is None:
                batch = self._next = _Batch()
            batch.items.append(item)
            batch.waiters.append((loop, future))
        return future, batch.done

    def _work(self) -> None:
        """Commit the waiting items, then release the thread before the next batch."""
        while True:
            with self._lock:
                batch, self._next = self._next, None
            if batch is not None:
                self._settle(batch)
            with self._lock:
                if self._next is None:
                    self._busy = False
                    return
                try:
                    self._pool.submit(self._work)
                    return
                except RuntimeError:  # being shut down: finish here
                    continue

    def _settle(self, batch: _Batch[T]) -> None:
        error: BaseException | None = None
        try:
            self._commit(batch.items)
        except BaseException as failure:  # raised by all who wait, who would else wait for ever
            error = failure
        batch.done.set()
        waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for loop, future in batch.waiters:
            waiting.setdefault(loop, []).append(future)
        for loop, futures in waiting.items():
            try:
                loop.call_soon_threadsafe(_tell, futures, error)
            except RuntimeError:  # the loop is closed: nothing waits any more
                continue


def _tell(futures: list[asyncio.Future[None]], error: BaseException | None) -> None:
    for future in futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
