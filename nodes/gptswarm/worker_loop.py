"""An event loop on another thread, for operations that block."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def in_worker(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that blocks, without blocking this event loop.

    All such coroutines run on one other thread, because some operations of GPTSwarm keep state in
    their modules. Cancellation returns at once; blocking code continues up to its next ``await``.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="gptswarm", daemon=True).start()
    return loop
