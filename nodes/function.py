"""Plain functions as nodes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import overload

from swarm_ui.action import Action
from swarm_ui.message import Message
from swarm_ui.node import NodeContext, NodeReply

Answer = str | Action | Message | NodeReply | None
NodeFunction = Callable[[Sequence[Message], NodeContext], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class FunctionNode:
    """A node that calls a function ``(inbox, context) -> answer``.

    A string becomes the content of the message, an :class:`Action` its proposal, and ``None`` an
    empty message. A synchronous function runs in the event loop, so it must not block.
    """

    id: str
    function: NodeFunction
    timeout: float | None = None

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply | Message:
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
            f"function node '{self.id}' returned a {type(answer).__name__}; "
            "expected a str, Action, Message, NodeReply or None"
        )


@overload
def function_node(function: NodeFunction, /) -> FunctionNode: ...
@overload
def function_node(
    *, id: str | None = None, timeout: float | None = None
) -> Callable[[NodeFunction], FunctionNode]: ...
def function_node(
    function: NodeFunction | None = None, /, *, id: str | None = None, timeout: float | None = None
) -> FunctionNode | Callable[[NodeFunction], FunctionNode]:
    """Make a node from a function; use it with or without a name and a time limit.

    Examples:
        >>> @function_node
        ... def first(inbox, context):
        ...     return context.observation.goal
        >>> first.id
        'first'
    """

    def make(f: NodeFunction) -> FunctionNode:
        return FunctionNode(id or f.__name__, f, timeout)

    return make if function is None else make(function)
