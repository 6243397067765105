"""A lock for each event loop."""

from __future__ import annotations

import asyncio


class LoopLocks:
    """Locks of an object that several event loops use, one after the other."""

    def __init__(self) -> None:
        self._locks: dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}

    def current(self) -> asyncio.Lock:
        """The lock of the running event loop."""
        for other in [each for each in self._locks if each.is_closed()]:
            del self._locks[other]
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
