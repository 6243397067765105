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
from swarm_ui.nodes.threads import in_thread

LONGEST_RESULT = 20_000
"""Maximum number of characters of a result that a model sees; the middle of a longer one is cut."""

TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its description for the model, and what is called.

    Most tools are functions, see :meth:`of`.

    Raises:
        ConfigError: the name does not consist of 1 to 64 letters, digits, ``_`` and ``-``.
    """

    spec: ToolSpec
    call: Callable[[Mapping[str, Any]], Awaitable[object]]
    """Takes the arguments. A result that is not a text is shown to the model as JSON."""

    def __post_init__(self) -> None:
        if not TOOL_NAME.fullmatch(self.spec.name):
            raise ConfigError(
                f"a tool must have a name of 1 to 64 letters, digits, '_' and '-', got "
                f"'{self.spec.name}'. Name it: Tool.of(function, name=...)"
            )

    @property
    def name(self) -> str:
        return self.spec.name

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
            ConfigError: a parameter has no type, a type that JSON cannot express, or no name.
        """
        name = name or getattr(function, "__name__", "")
        parameters = _parameters(function, name)
        documented = function.func if isinstance(function, functools.partial) else function
        schema = msgspec.json.encode(schema_of(parameters, f"tool '{name}'")).decode()
        coroutine = inspect.iscoroutinefunction(function)

        async def call(arguments: Mapping[str, Any]) -> object:
            try:
                given = msgspec.convert(dict(arguments), parameters)
            except UNREADABLE as error:
                raise ReplyError(f"{name}: the arguments are not valid: {brief(error)}") from None
            values = msgspec.structs.asdict(given)
            result = function(**values) if coroutine else await in_thread(function, **values)
            return await result if inspect.isawaitable(result) else result

        about = description or inspect.getdoc(documented) or ""
        return cls(ToolSpec(name=name, description=about, parameters=schema), call)

    async def run(self, arguments: str) -> str:
        """Call the tool with one JSON object, as the model wrote it; the result as the model sees
        it.

        Raises:
            ReplyError: the arguments are not valid.
            Exception: whatever the tool raises.
        """
        try:
            given = msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
        except UNREADABLE as error:
            raise ReplyError(
                f"{self.name}: the arguments must be one JSON object: {brief(error)}"
            ) from None
        result = await self.call(given)
        if result is None:
            return "done"
        return cut_result(
            result if isinstance(result, str) else msgspec.json.encode(result).decode()
        )


def tools_of(given: Sequence[Tool | Callable[..., object]]) -> tuple[Tool, ...]:
    """The tools; functions are converted to tools. Raises ``ConfigError`` if two have the same
    name, or as :meth:`Tool.of` does."""
    tools = tuple([each if isinstance(each, Tool) else Tool.of(each) for each in given])
    names = [tool.name for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"two tools are named '{twice}'; name one of them with Tool.of(function, name=...)"
        )
    return tools


def cut_result(text: str) -> str:
    """The beginning and the end of a text for the model, if it is longer than
    :data:`LONGEST_RESULT`."""
    left_out, half = len(text) - LONGEST_RESULT, LONGEST_RESULT // 2
    if left_out <= 0:
        return text
    return f"{text[:half]} (… {left_out} characters are left out …) {text[-half:]}"


def _parameters(function: Callable[..., object], name: str) -> type[msgspec.Struct]:
    """A record with the parameters of a function as its fields, without those that a partial
    function decides."""
    partial = isinstance(function, functools.partial)
    called: Any = function.func if partial else function  # type: ignore[attr-defined]
    called = called if inspect.isroutine(called) else type(called).__call__
    decided = function.keywords if partial else {}  # type: ignore[attr-defined]
    try:
        hints = typing.get_type_hints(called, include_extras=True)
        given = inspect.signature(function).parameters.values()
        fields = [_field(each, hints, name) for each in given if each.name not in decided]
        return msgspec.defstruct(
            name or "arguments", fields, kw_only=True, forbid_unknown_fields=True
        )
    except (TypeError, ValueError, NameError) as error:
        raise ConfigError(f"tool '{name}': its parameters cannot be read: {error}") from error


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> Any:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise ConfigError(
            f"tool '{tool}': expected parameters that can be given by name, got '{parameter}'. "
            "Wrap it in a function with named parameters"
        )
    if parameter.name not in hints:
        raise ConfigError(
            f"tool '{tool}': parameter '{parameter.name}' has no type. Annotate it, such as "
            f"'{parameter.name}: str': the model reads the types"
        )
    kind, default = hints[parameter.name], parameter.default
    if default is parameter.empty:
        return parameter.name, kind
    if isinstance(default, list | dict | set):  # msgspec refuses mutable defaults
        default = msgspec.field(default_factory=lambda: parameter.default)
    return parameter.name, kind, default
