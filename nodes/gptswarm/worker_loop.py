"""An event loop beside the caller's, for operations that block."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def beside(work: Coroutine[Any, Any, T]) -> T:
    """Await something that blocks, without holding this event loop.

    All such work takes turns on one other thread, as GPTSwarm means it: some of its operations keep
    state in their modules. Cancelling gives up at once; code that blocks runs on to its next
    ``await``.
    """
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="gptswarm", daemon=True).start()
    return loop
