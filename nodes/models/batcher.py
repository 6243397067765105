"""Gathers calls that wait at the same moment into one.

All coroutines of one event loop put their items here; when none of them can go on without an
answer, everything gathered is answered at once. No clock is involved (unless ``linger`` asks for
one), so with in-process environments the batches are the same in every run.

A batch is filled in turn: one item of each caller, then a second one of each, and so on. Whoever
floods the queue makes itself wait, not the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Generic, NamedTuple, TypeVar

from swarm_ui.errors import ConfigError, ModelError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Thing = TypeVar("Thing")

ASKING: ContextVar[object] = ContextVar("asking", default=None)
"""On whose behalf a model is asked, such as a run; ``None``: every call stands for itself."""

_QUIET_TURNS = 12
"""Turns of the event loop without a new item before a batch is closed: more than the hops between
a finished forward and the next request of the same episode."""


class _Ask(Generic[Answer]):
    """One call: its answers so far, and what its caller waits for."""

    __slots__ = ("answers", "caller", "done", "left")

    def __init__(self, caller: object, size: int, done: asyncio.Future[None]) -> None:
        self.caller = self if caller is None else caller
        self.answers: list[Answer | None] = [None] * size
        self.left = size
        self.done = done


class _Entry(NamedTuple, Generic[Item, Answer]):
    """One item on its way."""

    item: Item
    place: int
    """Its number in the call."""
    ask: _Ask[Answer]


class _Turns(Generic[Thing]):
    """A queue that serves its callers in turn, each caller's things in their order."""

    def __init__(self) -> None:
        self._lines: dict[object, deque[Thing]] = {}  # the first one's turn is next
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, caller: object, thing: Thing) -> None:
        self._lines.setdefault(caller, deque()).append(thing)
        self._size += 1

    def take(self) -> tuple[object, Thing]:
        """The next thing, of the caller that has waited longest for a turn."""
        caller = next(iter(self._lines))
        line = self._lines.pop(caller)
        thing = line.popleft()
        self._size -= 1
        if line:
            self._lines[caller] = line  # behind the others now
        return caller, thing

    def drop(self, caller: object, unwanted: Callable[[Thing], bool]) -> None:
        """Take out some of a caller's things; its turn stays where it was."""
        line = self._lines.get(caller)
        if line is None:
            return
        kept = deque(thing for thing in line if not unwanted(thing))
        self._size -= len(line) - len(kept)
        if kept:
            self._lines[caller] = kept
        else:
            del self._lines[caller]


class Batcher(Generic[Item, Answer]):
    """Turns many small calls into few large ones."""

    def __init__(
        self,
        answer: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        max_batch: int = 256,
        max_waiting: int = 1024,
        linger: float = 0.0,
    ) -> None:
        """
        Args:
            answer: answers a batch, in order; runs on the event loop's thread.
            max_batch: most items in a batch.
            max_waiting: most items in the queue. What comes on top waits outside and comes in
                as places get free, callers in turn; nothing is ever dropped.
            linger: seconds to wait for more items after the loop went quiet; 0 for in-process
                environments, a few milliseconds where observations come over a socket.
        """
        if max_batch < 1 or max_waiting < 1:
            raise ConfigError(
                f"max_batch and max_waiting must be at least 1, got {max_batch} and {max_waiting}"
            )
        self._answer = answer
        self.max_batch, self.max_waiting = max_batch, max_waiting
        self.linger = linger
        self._queue: _Turns[_Entry[Item, Answer]] = _Turns()
        self._outside: _Turns[_Entry[Item, Answer]] = _Turns()
        self._closing: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return len(self._queue)

    @property
    def outside(self) -> int:
        """Items for which the queue has no place yet."""
        return len(self._outside)

    async def ask(self, items: Sequence[Item]) -> list[Answer]:
        """The answers to ``items``, in order. Whatever ``answer`` raises is raised here."""
        if not items:
            return []
        loop = asyncio.get_running_loop()
        ask: _Ask[Answer] = _Ask(ASKING.get(), len(items), loop.create_future())
        self._open(loop)
        for place, item in enumerate(items):
            self._outside.put(ask.caller, _Entry(item, place, ask))
        self._admit()
        try:
            await ask.done
        finally:
            if ask.left:  # cancelled, or a batch with some of the items failed
                for turns in (self._queue, self._outside):
                    turns.drop(ask.caller, lambda entry: entry.ask is ask)
                self._admit()
        return ask.answers  # type: ignore[return-value]  # none is left

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that somebody closes the batch that is being gathered."""
        if self._closing is None or self._closing.done():
            self._closing = loop.create_task(self._close())
        elif self._closing.get_loop() is not loop:
            raise ModelError(
                "this model is answering on another event loop (another thread); "
                "use one loop for all runs, or load a model for each"
            )

    def _admit(self) -> None:
        while self._outside and len(self._queue) < self.max_waiting:
            self._queue.put(*self._outside.take())

    async def _close(self) -> None:
        while self._queue:
            await self._settle()
            batch: list[_Entry[Item, Answer]] = []
            while self._queue and len(batch) < self.max_batch:
                batch.append(self._queue.take()[1])
            self._admit()
            if batch:
                self._serve(batch)
            await asyncio.sleep(0)  # let the callers run before looking for more items

    def _serve(self, batch: Sequence[_Entry[Item, Answer]]) -> None:
        try:
            answers = self._answer([entry.item for entry in batch])
        except Exception as error:
            for entry in batch:
                if not entry.ask.done.done():
                    entry.ask.done.set_exception(error)
            return
        for entry, answer in zip(batch, answers, strict=True):
            ask = entry.ask
            ask.answers[entry.place] = answer
            ask.left -= 1
            if ask.left == 0 and not ask.done.done():
                ask.done.set_result(None)

    async def _settle(self) -> None:
        """Return when the queue holds a whole batch, or has stopped growing."""
        quiet, known = 0, len(self._queue)
        while quiet < _QUIET_TURNS and len(self._queue) < self.max_batch:
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self._queue) == known else 0
            known = len(self._queue)
            if quiet == _QUIET_TURNS and self.linger > 0:
                await asyncio.sleep(self.linger)
                quiet = _QUIET_TURNS if len(self._queue) == known else 0
                known = len(self._queue)
