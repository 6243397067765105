"""Functions that a language model can call, and replies with a JSON schema."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, ReplyError, brief
from swarm_ui.json_text import last_object
from swarm_ui.model import ToolSpec
from swarm_ui.nodes.function import in_thread

LONGEST_RESULT = 20_000
"""Maximum number of characters of a result that a model sees; the middle of a longer one is cut."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model can call; :meth:`of` makes one."""

    spec: ToolSpec
    """Its description for the model."""
    function: Callable[..., object]
    arguments: type[msgspec.Struct]
    """Its parameters as a record."""

    @classmethod
    def of(cls, function: Callable[..., object], *, name: str = "", description: str = "") -> Tool:
        """The tool that calls a Python function.

        The types of its parameters become the JSON schema, by msgspec (``Annotated[int,
        msgspec.Meta(ge=0, description="...")]`` adds constraints and a description). Arguments are
        converted to these types before the call. A synchronous function runs in a thread of its
        own, so it may block but cannot use the event loop; a coroutine runs in the event loop.

        Args:
            function: the function, which is called with keyword arguments.
            name: the tool's name, of 1 to 64 letters, digits, ``_`` and ``-``; by default the
                function's.
            description: the tool's description; by default the function's docstring.

        Raises:
            ConfigError: a parameter has no type, a type that JSON cannot express, or no name; the
                name has other characters; or it is not a function (write one that calls it).
        """
        name = name or getattr(function, "__name__", "")
        parameters = _parameters(function, f"tool '{name}'")
        if not TOOL_NAME.fullmatch(name):
            raise ConfigError(
                f"a tool must have a name of 1 to 64 letters, digits, '_' and '-', got '{name}'. "
                "Name it: Tool.of(function, name=...)"
            )
        schema = msgspec.json.encode(schema_of(parameters, f"tool '{name}'")).decode()
        about = description or inspect.getdoc(function) or ""
        return cls(ToolSpec(name=name, description=about, parameters=schema), function, parameters)

    async def run(self, arguments: str) -> str:
        """Call the tool with one JSON object, as the model wrote it; the result as the model sees
        it. Raises ``ReplyError`` if the arguments are not valid, and what the tool raises."""
        try:
            given = msgspec.json.decode(arguments.strip() or "{}", type=self.arguments)
        except UNREADABLE as error:
            raise ReplyError(
                f"{self.spec.name}: the arguments are not valid: {brief(error)}; expected one JSON "
                "object"
            ) from None
        values = {name: getattr(given, name) for name in given.__struct_fields__}
        if inspect.iscoroutinefunction(self.function):
            result = await self.function(**values)
        else:
            result = await in_thread(self.function, **values)
            result = await result if inspect.isawaitable(result) else result
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


# -- schemas -------------------------------------------------------------------------------------


def schema_of(kind: Any, where: str) -> dict[str, Any]:
    """The JSON schema of a type, with an object at its top. Raises ``ConfigError`` with ``where``
    if msgspec cannot express the type."""
    try:
        (top,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: no JSON schema can express the type: {error}") from error
    name = str(top.get("$ref", "")).removeprefix("#/$defs/")
    if name in definitions and f'"#/$defs/{name}"' not in msgspec.json.encode(definitions).decode():
        top = definitions.pop(name)  # endpoints want an object at the top, not a reference to one
    top.pop("title", None)
    return {**top, "$defs": definitions} if definitions else dict(top)


class ReplySchema:
    """The form that a reply must have; see :attr:`swarm_ui.nodes.ChatNode.schema`. Raises
    ``ConfigError`` if msgspec cannot express the type."""

    def __init__(self, schema: Any, where: str) -> None:
        self._decode: Callable[[str], Any]
        if hasattr(schema, "model_validate_json"):  # pydantic
            self._decode, found = schema.model_validate_json, schema.model_json_schema()
        else:
            found = _closed(schema_of(schema, where))
            self._decode = functools.partial(msgspec.json.decode, type=schema)
        self.text = msgspec.json.encode(found).decode()

    def find(self, reply: str) -> str:
        """The JSON text in a reply that follows the schema: the whole reply, the last fenced block,
        or the last object in it. Raises ``ReplyError`` if there is none."""
        problem = None
        for text in _json_texts(reply):
            try:
                self.value(text)
                return text
            except ReplyError as error:
                problem = problem or error
        raise problem or ReplyError("there is no JSON value in the reply")

    def value(self, text: str) -> Any:
        """The value of a JSON text, of the type of the schema. Raises ``ReplyError`` if it does not
        follow the schema."""
        try:
            return self._decode(text)
        except UNREADABLE as error:
            raise ReplyError(brief(error)) from None


def _closed(schema: Any) -> Any:
    """The schema in which no object may have fields that it does not name. OpenAI enforces only
    such schemas."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {word: _closed(value) for word, value in schema.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _json_texts(reply: str) -> Iterator[str]:
    """Texts in a reply that may be the JSON value, the most likely first."""
    texts = [reply.strip()]
    parts = reply.split("```")
    if len(parts) > 2:  # between the last two fences; the first line names the language
        texts.append((parts[-2].partition("\n")[2] or parts[-2]).strip())
    if (found := last_object(reply)) is not None:
        texts.append(reply[found.start : found.end])
    for text in dict.fromkeys(texts):
        try:
            msgspec.json.decode(text)
        except UNREADABLE:
            continue
        yield text
