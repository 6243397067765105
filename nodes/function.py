"""Plain functions as nodes."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, overload

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply

Answer = str | Action | NodeReply | None
NodeFunction = Callable[[Sequence[Message], NodeContext], Answer | Awaitable[Answer]]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A node that calls a function ``(inbox, context) -> answer``.

    A string becomes the content of the message, an :class:`Action` its proposal, and ``None`` an
    empty message. A synchronous function runs in the event loop, so it must not block, unless
    ``thread`` is set. Raises ``ConfigError`` if the function has other arguments.
    """

    id: str
    function: NodeFunction
    timeout: float | None = None
    """Seconds for one call; ``None``: the limit of the run."""
    thread: bool = False
    """Call it in a thread of its own, so that it may block. When its time is over or the run is
    cancelled, the call ends at once; the function itself continues to its end, since Python cannot
    stop a thread, and its result is discarded. It must not use ``context.emit_token``, and must be
    safe to call from several threads if several runs are under way."""

    def __post_init__(self) -> None:
        with contextlib.suppress(ValueError):  # a built-in function that does not tell
            signature = inspect.signature(self.function)
            try:
                signature.bind((), None)
            except TypeError:
                raise ConfigError(
                    f"function node '{self.id}': a function of a node gets the arguments (inbox, "
                    f"context), and this one has {signature}"
                ) from None

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        if self.thread:
            answer = await in_thread(self.function, inbox, context)
        else:
            answer = self.function(inbox, context)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, NodeReply):
            return answer
        if isinstance(answer, Action):
            return NodeReply(content=answer.json(), action=answer)
        if isinstance(answer, str | None):
            return NodeReply(content=answer or "")
        raise TypeError(
            f"function node '{self.id}' returned a value of type {type(answer).__name__}; "
            "expected a str, Action, NodeReply or None"
        )


@overload
def function_node(function: NodeFunction, /) -> FunctionNode: ...
@overload
def function_node(
    *, id: str | None = None, timeout: float | None = None, thread: bool = False
) -> Callable[[NodeFunction], FunctionNode]: ...
def function_node(
    function: NodeFunction | None = None,
    /,
    *,
    id: str | None = None,
    timeout: float | None = None,
    thread: bool = False,
) -> FunctionNode | Callable[[NodeFunction], FunctionNode]:
    """Make a node from a function; use it with or without the fields of :class:`FunctionNode`.

    Examples:
        >>> @function_node
        ... def first(inbox, context):
        ...     return context.observation.goal
        >>> first.id
        'first'
    """

    def make(f: NodeFunction) -> FunctionNode:
        return FunctionNode(id or f.__name__, f, timeout, thread)

    return make if function is None else make(function)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function without blocking the event loop.

    Each call has a thread of its own, in a copy of the current context variables. After a
    cancellation this raises at once, and what the function returns or raises is discarded. Neither
    the event loop nor the process waits for it, unlike with ``asyncio.to_thread``.
    """
    context, future = contextvars.copy_context(), Future[T]()
    future.set_running_or_notify_cancel()  # a cancellation does not reach the thread

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        except StopIteration as error:  # asyncio cannot raise it in a coroutine
            future.set_exception(RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:  # raised again where the call is awaited
            future.set_exception(error)

    name = getattr(function, "__name__", type(function).__name__)
    threading.Thread(target=work, name=f"swarm-ui {name}", daemon=True).start()
    return await asyncio.wrap_future(future)
