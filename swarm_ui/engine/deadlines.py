"""Time limits for many concurrent calls, with one timer of the event loop for all of them.

``asyncio.timeout`` sets and cancels a timer for each call, which is most of the cost of thousands
of short calls. Here, calls with equal limits are in one queue, and the next to expire is at its
front.
"""

from __future__ import annotations

import asyncio
from math import inf

Ticket = tuple[float, int]
"""Identifies a watched call: the time limit of its queue in seconds, and its place in the queue."""


class Deadlines:
    """Cancels the task of each call whose deadline has passed. Belongs to one event loop."""

    def __init__(self, end: float = inf) -> None:
        """``end``: deadline of all bounded calls, on the clock of the event loop."""
        self._loop = asyncio.get_running_loop()
        self._end = end
        self._lines: dict[float, dict[int, tuple[float, asyncio.Task[None]]]] = {}
        self._next = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = inf
        self._fired: set[int] = set()

    def open(self, task: asyncio.Task[None], now: float, seconds: float, bounded: bool) -> Ticket:
        """Start to watch a call that ``task`` makes.

        Args:
            now: time of the loop's clock.
            seconds: its time limit; infinite: only the deadline of all calls applies.
            bounded: whether the deadline of all calls applies to it.
        """
        due = now + seconds
        if bounded and self._end < due:
            due, seconds = self._end, -1.0  # a line of its own, so that each line stays in order
        self._next = place = self._next + 1
        line = self._lines.get(seconds)
        if line is None:
            line = self._lines[seconds] = {}
        line[place] = (due, task)
        if due < self._due:
            self._wake(due)
        return seconds, place

    def fired(self, ticket: Ticket) -> bool:
        """Whether the time of the call ran out, so that this class cancelled its task."""
        return ticket[1] in self._fired

    def close(self, ticket: Ticket) -> bool:
        """Stop watching a call; return whether its time had run out."""
        line, place = ticket
        if self._lines[line].pop(place, None) is None:
            self._fired.discard(place)
            return True
        return False

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, inf

    def _wake(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = self._loop.call_at(due, self._expire), due

    def _expire(self) -> None:
        """Cancel the calls whose deadline has passed, and set the timer for the next one."""
        now, following = max(self._due, self._loop.time()), inf  # timers may be a tick early
        for line in self._lines.values():
            over = []
            for place, (due, task) in line.items():
                if due > now:
                    following = min(following, due)
                    break
                over.append((place, task))
            for place, task in over:
                del line[place]
                self._fired.add(place)
                task.cancel()
        self._timer, self._due = None, inf
        if following < inf:
            self._wake(following)
