"""Functions that a language model can call."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, ReplyError, brief
from swarm_ui.model import ToolSpec
from swarm_ui.nodes.chat.schema import schema_of
from swarm_ui.nodes.function import in_thread

LONGEST_RESULT = 20_000
"""Maximum number of characters of a result that a model sees; the middle of a longer one is cut."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its description for the model, and what is called. Most tools are functions, see
    :meth:`of`. Raises ``ConfigError`` if the name does not consist of 1 to 64 letters, digits,
    ``_`` and ``-``."""

    spec: ToolSpec
    call: Callable[[Mapping[str, Any]], Awaitable[object]]
    """Takes the arguments. A result that is not a text is shown to the model as JSON."""

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.spec.name):
            raise ConfigError(
                f"a tool must have a name of 1 to 64 letters, digits, '_' and '-', got "
                f"'{self.spec.name}'. Name it: Tool.of(function, name=...)"
            )

    @classmethod
    def of(cls, function: Callable[..., object], *, name: str = "", description: str = "") -> Tool:
        """The tool that calls a Python function.

        The types of its parameters become the JSON schema, by msgspec (``Annotated[int,
        msgspec.Meta(ge=0, description="...")]`` adds constraints and a description). Arguments are
        converted to these types before the call. A synchronous function runs in a thread of its
        own, so it may block but cannot use the event loop; a coroutine runs in the event loop.

        Args:
            function: the function, which is called with keyword arguments.
            name: the tool's name; by default the function's.
            description: the tool's description; by default the function's docstring.

        Raises:
            ConfigError: a parameter has no type, a type that JSON cannot express, or no name; or it
                is not a function (write one that calls it).
        """
        name = name or getattr(function, "__name__", "")
        parameters = _parameters(function, f"tool '{name}'")
        schema = msgspec.json.encode(schema_of(parameters, f"tool '{name}'")).decode()

        async def call(arguments: Mapping[str, Any]) -> object:
            try:
                given = msgspec.convert(dict(arguments), parameters)
            except UNREADABLE as error:
                raise ReplyError(f"{name}: the arguments are not valid: {brief(error)}") from None
            values = msgspec.structs.asdict(given)
            if inspect.iscoroutinefunction(function):
                return await function(**values)
            result = await in_thread(function, **values)
            return await result if inspect.isawaitable(result) else result

        about = description or inspect.getdoc(function) or ""
        return cls(ToolSpec(name=name, description=about, parameters=schema), call)

    async def run(self, arguments: str) -> str:
        """Call the tool with one JSON object, as the model wrote it; the result as the model sees
        it. Raises ``ReplyError`` if the arguments are not valid, and what the tool raises."""
        try:
            given = msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
        except UNREADABLE as error:
            raise ReplyError(
                f"{self.spec.name}: the arguments must be one JSON object: {brief(error)}"
            ) from None
        result = await self.call(given)
        if result is None:
            return "done"
        return cut_result(
            result if isinstance(result, str) else msgspec.json.encode(result).decode()
        )


def tools_of(given: Sequence[Tool | Callable[..., object]]) -> dict[str, Tool]:
    """The tools by name; functions are converted. Raises ``ConfigError`` if two have the same name,
    or as :meth:`Tool.of` does."""
    tools: dict[str, Tool] = {}
    for each in given:
        tool = each if isinstance(each, Tool) else Tool.of(each)
        if tool.spec.name in tools:
            raise ConfigError(
                f"two tools are named '{tool.spec.name}'; name one of them with Tool.of(function, "
                "name=...)"
            )
        tools[tool.spec.name] = tool
    return tools


def cut_result(text: str) -> str:
    """The beginning and the end of a text for the model, if it is longer than
    :data:`LONGEST_RESULT`."""
    left_out, half = len(text) - LONGEST_RESULT, LONGEST_RESULT // 2
    if left_out <= 0:
        return text
    return f"{text[:half]} (… {left_out} characters are left out …) {text[-half:]}"


def _parameters(function: Any, where: str) -> type[msgspec.Struct]:
    """A record with the parameters of a function as its fields."""
    fields: list[Any] = []
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        for each in inspect.signature(function).parameters.values():
            if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
                raise ValueError(f"expected parameters that can be given by name, got '{each}'")
            if each.name not in hints:
                raise ValueError(f"parameter '{each.name}' has no type, which the model reads")
            default = each.default
            if default is each.empty:
                fields.append((each.name, hints[each.name]))
                continue
            if isinstance(default, list | dict | set):  # msgspec refuses mutable defaults
                default = msgspec.field(default_factory=functools.partial(type(default), default))
            fields.append((each.name, hints[each.name], default))
        return msgspec.defstruct("arguments", fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"{where}: its parameters cannot be read: {error}") from error
