"""Calls of tools in replies of an endpoint, whole or streamed.

As in :mod:`swarm_ui.nodes.models.openai.replies`, only the fields that are used are checked, and
what cannot be read raises ``AttributeError`` or ``TypeError``, which is reported there.
"""

from __future__ import annotations

from typing import Any

from swarm_ui.model import ToolCall
from swarm_ui.prompts.tool_calls import call_id

_MOST = 128
"""Maximum number of calls in one reply."""


def called_tools(message: Any) -> tuple[ToolCall, ...]:
    """The tool calls in a complete message."""
    listed = getattr(message, "tool_calls", None) or ()
    if len(listed) > _MOST:
        raise TypeError(f"{len(listed)} tool calls in one reply; at most {_MOST} are read")
    return tuple(
        [_call(getattr(c, "id", None), c.function.name, c.function.arguments) for c in listed]
    )


class StreamedCalls:
    """Calls that arrive in pieces: the name first, then parts of the arguments."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[list[str], list[str], list[str]]] = {}

    def add(self, delta: Any) -> int:
        """Take the pieces of one event; returns their number of characters."""
        length = 0
        for piece in getattr(delta, "tool_calls", None) or ():
            index = getattr(piece, "index", None)
            if type(index) is not int:  # some servers send whole calls without one
                index = len(self._parts)
            id, name, arguments = self._parts.setdefault(index, ([], [], []))
            if len(self._parts) > _MOST:
                raise TypeError(f"more than {_MOST} tool calls in one reply")
            function = getattr(piece, "function", None)
            for kept, value in (
                (id, getattr(piece, "id", None)),
                (name, getattr(function, "name", None)),
                (arguments, getattr(function, "arguments", None)),
            ):
                if value is not None:
                    kept.append(_text(value))
                    length += len(value)
        return length

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls, in the order of their indices."""
        parts = [self._parts[index] for index in sorted(self._parts)]
        # Some servers repeat the id and the name in every piece.
        return tuple([_call("".join(i[:1]), "".join(n[:1]), "".join(a)) for i, n, a in parts])


def _call(id: Any, name: Any, arguments: Any) -> ToolCall:
    return ToolCall(name=_text(name), arguments=_text(arguments or "{}"), id=call_id(id))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got a {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()
