"""Chat requests as they are sent, and replies, whole or streamed, as they are read.

The openai client does not validate replies, because many servers leave out required fields. So the
fields that are used are checked here.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from swarm_ui.budget import guess_tokens, most_tokens
from swarm_ui.engine.tasks import within
from swarm_ui.errors import ModelError
from swarm_ui.json_text import encodable
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, ToolCall, ToolSpec
from swarm_ui.prompts import picture_size, transcript
from swarm_ui.prompts.tool_calls import call_id

LARGEST_BODY = 16 * 2**20
"""Maximum size of a reply in bytes; applies to streams too."""
_LONGEST_TOKEN, _SPARE_CHARACTERS = 128, 16_384
"""Maximum characters of one token, and of a reply in addition to its tokens."""
# Both are a little more than vision models are known to use.
_PIXELS_PER_TOKEN, _TOKENS_PER_IMAGE = 700, 85


# -- requests ------------------------------------------------------------------------------------


def message(turn: ChatMessage) -> dict[str, object]:
    """A turn in the format of the protocol; images as data URLs after the text."""
    content: str | list[dict[str, object]] | None = turn.content
    if turn.images:
        urls = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in turn.images)
        content = [{"type": "text", "text": turn.content}] if turn.content else []
        content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    sent: dict[str, object] = {"role": turn.role, "content": content}
    if turn.calls:
        sent["content"] = turn.content or None
        called = [(c.id, {"name": c.name, "arguments": c.arguments}) for c in turn.calls]
        sent["tool_calls"] = [{"id": id, "type": "function", "function": f} for id, f in called]
    if turn.role == "tool":
        sent["tool_call_id"] = turn.answers
    return sent


def tool(spec: ToolSpec, where: str) -> dict[str, object]:
    """A tool in the format of the protocol. Raises ``ModelError`` if its schema is not a JSON
    object as text."""
    function = {
        "name": spec.name,
        "description": spec.description,
        "parameters": _schema(spec.parameters, f"{where}: parameters of '{spec.name}'"),
    }
    return {"type": "function", "function": function}


def schema_format(schema: str, where: str) -> dict[str, object]:
    """The ``response_format`` that makes a reply follow a JSON schema. Raises ``ModelError`` if the
    text is not a JSON object."""
    value = _schema(schema, f"{where}: json_schema of a request")
    named = {"name": "reply", "schema": value, "strict": _strict(value)}
    return {"type": "json_schema", "json_schema": named}


def _strict(schema: object) -> bool:
    """Whether OpenAI accepts a schema with ``strict``: every object lists all of its fields as
    required, and allows no others."""
    if isinstance(schema, list):
        return all(map(_strict, schema))
    if not isinstance(schema, dict):
        return True
    fields = schema.get("properties")
    if isinstance(fields, dict) and (
        schema.get("additionalProperties") is not False
        or {*fields} != {*schema.get("required", ())}
    ):
        return False
    return all(map(_strict, schema.values()))


def _schema(text: str, what: str) -> dict[str, object]:
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{what} must be a JSON object as text: {error}") from None


def prompt_tokens(chat: Sequence[ChatMessage]) -> int:
    """An estimate of the tokens of a chat, on the high side."""
    return guess_tokens(transcript(chat)) + _image_tokens(chat)


def most_prompt_tokens(chat: Sequence[ChatMessage], *texts: str) -> int:
    """The most tokens of a chat with these texts and its images: of both, about three times the
    estimate."""
    return sum(map(most_tokens, texts)) + 3 * _image_tokens(chat)


def _image_tokens(chat: Sequence[ChatMessage]) -> int:
    sizes = [picture_size(png) for turn in chat for png in turn.images]
    return sum(_TOKENS_PER_IMAGE + w * h // _PIXELS_PER_TOKEN for w, h in sizes)


# -- replies -------------------------------------------------------------------------------------


class ChatReply(NamedTuple):
    """One chat completion."""

    text: str
    logprob: float | None
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    """The tokens that the call used; ``None`` if the server did not report them."""
    model: str


async def read_reply(
    chunks: AsyncIterable[Any], most: int | None, said: Callable[[str], object]
) -> ChatReply:
    """The parts that are used of a chat completion, which comes in one piece or in many.

    A null content (the model was cut off while it was reasoning) is an empty text. ``most``: the
    limit of tokens that was sent, if any. ``said`` is called with each piece of the text. Raises
    ``ValueError`` if it is no completion, is incomplete, or is far too long.
    """
    parts = _Parts(most)
    async for chunk in chunks:
        try:
            text = parts.add(chunk)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"it is not a chat completion: {error}") from None
        if text:
            said(text)
    return parts.reply()


class _Parts:
    """The accumulator of the openai client copies the whole message for each piece, joins the names
    of servers that repeat them, and needs a number in each piece of a tool call."""

    def __init__(self, most: int | None) -> None:
        self._longest = math.inf if most is None else most * _LONGEST_TOKEN + _SPARE_CHARACTERS
        self._length, self._text, self._model = 0, "", ""
        self._logprobs: list[float] = []
        self._calls: list[dict[str, str]] = []
        self._open: dict[object, dict[str, str]] = {}
        """The call to which the next piece with a number belongs."""
        self._usage: Usage | None = None
        self._complete = False
        self._error: object = "no choices, or the stream ended before the reply was complete"

    def add(self, chat: Any) -> str:
        """Take a chat completion, or a chunk of one; return its text."""
        self._usage = _usage(chat.usage) or self._usage
        self._model = _text(getattr(chat, "model", None)) or self._model
        if not chat.choices:
            self._error = getattr(chat, "error", None) or self._error
            return ""
        choice = chat.choices[0]
        whole = hasattr(choice, "message") or choice.finish_reason is not None
        self._complete = self._complete or whole
        shown = getattr(choice.logprobs, "content", None) or ()
        self._logprobs += [float(token.logprob) for token in shown]
        part = getattr(choice, "message", None) or getattr(choice, "delta", None)
        if part is None:  # events of a content filter
            return ""
        for k, call in enumerate(part.tool_calls or ()):
            self._call(call, getattr(call, "index", k))
        text = _text(part.content or part.refusal)
        self._text += text
        self._length += len(text)
        if self._length > self._longest:
            raise ValueError(f"more than {self._longest} characters, the most for its tokens")
        return text

    def _call(self, piece: Any, number: object) -> None:
        id, name = _text(getattr(piece, "id", None)), _text(getattr(piece.function, "name", None))
        arguments = piece.function.arguments
        if isinstance(arguments, dict):  # the value, and not its text
            arguments = json.dumps(arguments)
        call = self._open.get(number)
        if call is None or (id and call["id"] not in ("", id)):  # some number all calls 0
            call = self._open[number] = {"id": "", "name": "", "arguments": ""}
            self._calls.append(call)
        call["id"], call["name"] = call["id"] or id, call["name"] or name
        call["arguments"] += _text(arguments)
        self._length += len(name) + len(arguments or "")

    def reply(self) -> ChatReply:
        """The whole reply."""
        if not self._complete:
            raise ValueError(f"it is not a chat completion: {self._error}")
        calls = [
            ToolCall(name=c["name"], arguments=c["arguments"] or "{}", id=call_id(c["id"]))
            for c in self._calls
        ]
        logprob = sum(self._logprobs) if self._logprobs else None
        return ChatReply(self._text, logprob, tuple(calls), self._usage, self._model)


def _text(text: object) -> str:
    """A text that can be written to a trace."""
    if not isinstance(text, str | None):
        raise TypeError(f"expected a text, got a {type(text).__name__}")
    return encodable(text or "")


def _usage(usage: Any) -> Usage | None:
    """The tokens that a server counted; ``None`` if it gives no counts."""
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    prompt, completion = (count if type(count) is int else -1 for count in counts)
    if min(prompt, completion) < 0:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


async def limit_body(seconds: float, response: Any) -> None:
    """Make a response of httpx raise ``ValueError`` when its body becomes too large, and
    ``TimeoutError`` when no data comes for some seconds."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":  # a small body could become a large one
        raise ValueError(f"the content encoding '{encoding}', which was not requested")
    read = response.aiter_raw

    async def limited(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        left = LARGEST_BODY
        async with aclosing(read(chunk_size)) as parts:
            while part := await within(seconds, anext(parts, b"")):
                left -= len(part)
                if left < 0:
                    raise ValueError(f"a body of more than {LARGEST_BODY} bytes")
                yield part

    response.aiter_raw = limited
