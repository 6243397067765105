"""Plain functions as nodes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import overload

from swarm_ui.action import Action
from swarm_ui.errors import ConfigError
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply
from swarm_ui.nodes.threads import in_thread

Answer = str | Action | Message | NodeReply | None
NodeFunction = Callable[[Sequence[Message], NodeContext], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A node that calls a function ``(inbox, context) -> answer``.

    A string becomes the content of the message, an :class:`Action` its proposal, and ``None`` an
    empty message. A synchronous function runs in the event loop, so it must not block, unless
    ``thread`` is set.

    Raises:
        ConfigError: ``thread`` is set, and the function is a coroutine.
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
        if (own := _other_arguments(self.function)) is not None:
            raise ConfigError(
                f"function node '{self.id}': a function of a node gets the arguments (inbox, "
                f"context), and this one has {own}"
            )
        if self.thread and inspect.iscoroutinefunction(self.function):
            raise ConfigError(
                f"function node '{self.id}': thread=True is for functions that block, and this one "
                "is a coroutine (async def). Leave thread out, or make it a plain function"
            )

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply | Message:
        if self.thread:
            answer = await in_thread(self.function, inbox, context)
        else:
            answer = self.function(inbox, context)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Action):
            return NodeReply(content=answer.json(), action=answer)
        if isinstance(answer, str):
            return NodeReply(content=answer)
        if answer is None:
            return NodeReply()
        if isinstance(answer, NodeReply | Message):
            return answer
        raise TypeError(
            f"function node '{self.id}' returned a value of type {type(answer).__name__}; "
            "expected a str, Action, Message, NodeReply or None"
        )


def _other_arguments(function: NodeFunction) -> str | None:
    """The arguments of a function that cannot be called with two; ``None`` if it can be."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a built-in function that does not tell
        return None
    try:
        signature.bind((), None)
    except TypeError:
        return str(signature)
    return None


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
    """Make a node from a function; use it with or without a name and a time limit.

    ``thread=True`` is for functions that block, see :attr:`FunctionNode.thread`.

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
