"""Blocking functions in threads of their own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function without blocking the event loop.

    Each call has a thread of its own, in a copy of the current context variables. Python cannot
    stop a thread: after a cancellation this raises at once, the function continues to its end, and
    what it returns or raises is discarded. Neither the event loop nor the process waits for it,
    unlike with ``asyncio.to_thread``.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((result, error))

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as raised:  # raised again where the call is awaited
            error = raised
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, result, error)

    name = getattr(function, "__name__", type(function).__name__)
    threading.Thread(target=work, name=f"swarm-ui {name}", daemon=True).start()
    result, error = await done
    if error is not None:
        raise error
    found: T = result
    return found
