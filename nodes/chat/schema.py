"""JSON schemas of Python types, and the JSON value inside a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from swarm_ui.errors import UNREADABLE, ConfigError, ReplyError, brief
from swarm_ui.json_text import last_object

_LANGUAGE = re.compile(r"\A(?:json(?=\W)|[\w+.-]+\n)", re.IGNORECASE)
"""The language at the beginning of a fenced block: ``json``, or a word on a line of its own."""


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
            self._decode = partial(msgspec.json.decode, type=schema)
        self.text = msgspec.json.encode(found).decode()

    def find(self, reply: str) -> str:
        """The JSON text in a reply that follows the schema: the whole reply, the last fenced block,
        or the last object in it. Raises ``ReplyError`` if there is none."""
        problem = ReplyError("there is no JSON value in the reply")
        for k, text in enumerate(_candidates(reply)):
            try:
                self.value(text)
                return text
            except ReplyError as error:
                problem = problem if k else error
        raise problem

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
    closed = {
        # The names in these two are not words of the schema.
        word: {name: _closed(each) for name, each in value.items()}
        if word in ("properties", "$defs") and isinstance(value, dict)
        else _closed(value)
        for word, value in schema.items()
    }
    if isinstance(closed.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def _candidates(reply: str) -> Iterator[str]:
    """Texts in a reply that may be the JSON value, the most likely first."""
    texts = [reply.strip()]
    parts = reply.split("```")
    if len(parts) > 2:  # between the last two fences, without the name of the language
        texts.append(_LANGUAGE.sub("", parts[-2].strip()).strip())
    if (found := last_object(reply)) is not None:
        texts.append(reply[found.start : found.end])
    for text in dict.fromkeys(texts):
        try:
            msgspec.json.decode(text)
        except UNREADABLE:
            continue
        yield text
