"""Calls of tools in replies of an endpoint, whole or streamed.

As in :mod:`swarm_ui.nodes.models.openai.replies`, only the fields that are used are checked, and
what cannot be read raises ``AttributeError`` or ``TypeError``, which is reported there.
"""

from __future__ import annotations

from typing import Any

import msgspec

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
    """Calls that arrive in pieces: the name first, then parts of the arguments.

    Servers differ. Some number all calls 0, some send whole calls without a number or an id, and
    some repeat the id and the name in every piece.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[int, _Pieces]] = []
        """All calls with their numbers, in the order of their first pieces."""

    def add(self, delta: Any) -> int:
        """Take the pieces of one event; returns their number of characters."""
        length = 0
        for piece in getattr(delta, "tool_calls", None) or ():
            function = getattr(piece, "function", None)
            id, name, arguments = (
                "" if value is None else _text(value)
                for value in (
                    getattr(piece, "id", None),
                    getattr(function, "name", None),
                    getattr(function, "arguments", None),
                )
            )
            call = self._call_of(getattr(piece, "index", None), id, name, arguments)
            call.id, call.name = call.id or id, call.name or name
            call.arguments += arguments
            length += len(id) + len(name) + len(arguments)
        return length

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls, in the order of their numbers."""
        ordered = sorted(self._calls, key=lambda numbered: numbered[0])
        return tuple([_call(call.id, call.name, call.arguments) for _, call in ordered])

    def _call_of(self, index: object, id: str, name: str, arguments: str) -> _Pieces:
        """The call to which a piece belongs; a new one if the piece begins a call."""
        if type(index) is int:
            same = [call for number, call in self._calls if number == index]
            if same and not same[-1].ended_before(id, name, arguments):
                return same[-1]
        else:  # a whole call
            index = len(self._calls)
        if len(self._calls) == _MOST:
            raise TypeError(f"more than {_MOST} tool calls in one reply")
        self._calls.append((index, _Pieces()))
        return self._calls[-1][1]


class _Pieces:
    """The parts of one tool call that have arrived so far."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = self.name = self.arguments = ""

    def ended_before(self, id: str, name: str, arguments: str) -> bool:
        """Whether a piece with the same number begins a new call. Only a piece with a name can
        begin one."""
        if not name or not self.name:
            return False
        if id and self.id:
            return id != self.id
        return name != self.name or (bool(arguments) and _is_json(self.arguments))


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _call(id: Any, name: Any, arguments: Any) -> ToolCall:
    if isinstance(arguments, dict):  # the value, and not its text
        arguments = msgspec.json.encode(arguments).decode()
    return ToolCall(name=_text(name), arguments=_text(arguments or "{}"), id=call_id(id))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got a {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()
