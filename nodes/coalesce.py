"""Gathers calls that wait at the same moment into one.

All coroutines of one event loop put their items here; when none of them can go on without an
answer, everything gathered is answered at once. No clock is involved (unless ``linger`` asks for
one), so with in-process environments the batches are the same in every run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_QUIET_TURNS = 12
"""Turns of the event loop without a new item before a batch is closed: more than the hops between
a finished forward and the next request of the same episode."""


class Coalescer(Generic[Item, Answer]):
    """Turns many small calls into few large ones."""

    def __init__(
        self, answer: Callable[[Sequence[Item]], Sequence[Answer]], *, linger: float = 0.0
    ) -> None:
        """
        Args:
            answer: answers a batch, in order; runs on the event loop's thread.
            linger: seconds to wait for more items after the loop went quiet; 0 for in-process
                environments, a few milliseconds where observations come over a socket.
        """
        self._answer = answer
        self.linger = linger
        self._waiting: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._closing: asyncio.Task[None] | None = None

    async def ask(self, items: Sequence[Item]) -> list[Answer]:
        """The answers to ``items``, in order. Whatever ``answer`` raises is raised here."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Answer]] = [loop.create_future() for _ in items]
        self._waiting += zip(items, futures, strict=True)
        if self._closing is None or self._closing.done():
            self._closing = loop.create_task(self._close())
        return [await future for future in futures]

    async def _close(self) -> None:
        while self._waiting:
            await self._settle()
            batch = [(item, f) for item, f in self._waiting if not f.cancelled()]
            self._waiting = []
            if not batch:
                return
            try:
                answers = self._answer([item for item, _ in batch])
            except Exception as error:
                for _, future in batch:
                    future.set_exception(error)
                continue
            for (_, future), answer in zip(batch, answers, strict=True):
                future.set_result(answer)
            await asyncio.sleep(0)  # let the callers run before looking for more items

    async def _settle(self) -> None:
        """Return when the number of waiting items has stopped growing."""
        quiet, known = 0, len(self._waiting)
        while quiet < _QUIET_TURNS:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._waiting) == known else 0
            known = len(self._waiting)
            if quiet == _QUIET_TURNS and self.linger > 0:
                await asyncio.sleep(self.linger)
                quiet = _QUIET_TURNS if len(self._waiting) == known else 0
                known = len(self._waiting)
