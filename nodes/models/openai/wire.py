"""Chat requests as they are sent, and replies, whole or streamed, as they are read.

The openai client does not validate replies, because many servers leave out required fields. So the
fields that are used are checked here.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec
from openai import AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from swarm_ui.budget import guess_tokens, likely_tokens, most_tokens
from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import ChatMessage, Request, ToolCall, ToolSpec
from swarm_ui.nodes.models.openai.options import ChatOptions
from swarm_ui.prompts import picture_size
from swarm_ui.prompts.tool_calls import call_id

LARGEST_BODY = 16 * 2**20
"""Maximum size of a reply in bytes; applies to streams too."""
_MOST_CALLS = 128
_LONGEST_TOKEN, _SPARE_CHARACTERS = 128, 16_384
"""Maximum characters of one token, and of a reply in addition to its tokens."""
# Both are a little more than vision models are known to use.
_PIXELS_PER_TOKEN, _TOKENS_PER_IMAGE = 700, 85
_TINY, _HUGE, _SPARE = 256, 8, 4096
"""Accepted range of a server's count, relative to our estimate: from a 256th of it to 8 times it
plus 4096."""

# -- requests ------------------------------------------------------------------------------------


def messages(chat: Sequence[ChatMessage]) -> list[dict[str, object]]:
    """The turns in the format of the protocol; images as data URLs after the text."""
    return [_message(turn) for turn in chat]


def _message(turn: ChatMessage) -> dict[str, object]:
    content: str | list[dict[str, object]] | None = turn.content
    if turn.images:
        urls = (f"data:image/png;base64,{base64.b64encode(png).decode()}" for png in turn.images)
        content = [{"type": "text", "text": turn.content}] if turn.content else []
        content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    message: dict[str, object] = {"role": turn.role, "content": content}
    if turn.calls:
        message["content"] = turn.content or None
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    if turn.role == "tool":
        message["tool_call_id"] = turn.answers
    return message


def tools(specs: Sequence[ToolSpec], where: str) -> list[dict[str, object]]:
    """The tools in the format of the protocol. Raises ``ModelError`` if a schema is not a JSON
    object as text."""
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": _schema(spec.parameters, f"{where}: parameters of '{spec.name}'"),
            },
        }
        for spec in specs
    ]


def schema_format(schema: str, where: str) -> dict[str, object]:
    """The ``response_format`` that makes a reply follow a JSON schema. Raises ``ModelError`` if the
    text is not a JSON object."""
    value = _schema(schema, f"{where}: json_schema of a request")
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": value, "strict": _strict(value)},
    }


def chosen_fields(
    request: Request, options: ChatOptions, limit: int | None, *, stream: bool
) -> dict[str, object]:
    """The optional fields of a request for a reply of at most ``limit`` tokens. Fields that were
    not chosen are left out: some servers accept only their own values."""
    fields: dict[str, object] = {
        "temperature": request.temperature,
        "seed": request.seed if options.send_seed else None,
        options.token_field: limit,
        "logprobs": options.logprobs or None,
        "stream_options": {"include_usage": True} if stream else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _strict(schema: object) -> bool:
    """Whether a schema is of the kind that OpenAI accepts with ``strict``: every object lists all
    of its fields as required, and allows no others."""
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
        value = json.loads(text)
    except ValueError as error:
        value, got = None, f"text that is not JSON ({error})"
    else:
        got = f"a {type(value).__name__}"
    if not isinstance(value, dict):
        raise ModelError(f"{what} must be a JSON object as text, got {got}")
    return value


def prompt_tokens(chat: Sequence[ChatMessage], prompt: str) -> int:
    """An estimate of the tokens of a chat, on the high side."""
    return guess_tokens(prompt) + _image_tokens(chat)


def most_prompt_tokens(chat: Sequence[ChatMessage], *texts: str) -> int:
    """The most tokens of a chat with these texts and its images: of both, about three times the
    estimate."""
    return sum(map(most_tokens, texts)) + 3 * _image_tokens(chat)


def _image_tokens(chat: Sequence[ChatMessage]) -> int:
    sizes = [picture_size(png) for turn in chat for png in turn.images]
    return sum(_TOKENS_PER_IMAGE + w * h // _PIXELS_PER_TOKEN for w, h in sizes)


# -- replies -------------------------------------------------------------------------------------


class MalformedReply(ValueError):
    """A reply with HTTP status 200 does not follow the protocol."""


class ChatReply(NamedTuple):
    """One chat completion."""

    text: str
    logprob: float | None
    calls: tuple[ToolCall, ...]
    usage: Usage | None
    """The tokens that the call used; ``None`` if the server did not report them."""
    model: str


def read_chat(chat: object, most: int | None = None) -> ChatReply:
    """The parts of a chat completion that are used. A null content (the model was cut off while it
    was reasoning) is an empty text.

    Args:
        chat: the completion, from the openai client.
        most: the limit of tokens that was sent; ``None``: none was sent.

    Raises:
        MalformedReply: it is not a chat completion, or far too long.
    """
    if not isinstance(chat, ChatCompletion):
        raise MalformedReply("a reply that is not a chat completion")
    failed = getattr(chat, "error", None)
    if failed and not chat.choices:
        raise MalformedReply(f"an error in place of a chat completion ({failed})")
    try:
        if not chat.choices:
            raise MalformedReply("a chat completion with an empty list of choices")
        choice = chat.choices[0]
        calls = _Calls()
        for k, call in enumerate(choice.message.tool_calls or ()):
            calls.add(call, k)
        reply = ChatReply(
            text=_text(choice.message.content or choice.message.refusal),
            logprob=_logprob(_listed(choice.logprobs)),
            calls=calls.finish(),
            usage=_usage(chat.usage),
            model=_text(getattr(chat, "model", None)),
        )
    except (AttributeError, LookupError, TypeError) as error:
        raise MalformedReply(f"a reply that is not a chat completion ({error})") from None
    check_length(len(reply.text) + calls.length, most)
    return reply


async def read_stream(
    response: AsyncStream[ChatCompletionChunk], timeout: float, most: int | None
) -> AsyncGenerator[str | ChatReply]:
    """Pieces of text as they arrive, then the whole reply. A server that ignores ``stream`` and
    answers at once gives one piece. ``most``: as in :func:`read_chat`.

    Raises:
        MalformedReply: a chunk cannot be read, the reply is too long, or it is not complete.
        TimeoutError: nothing but empty events arrived for ``timeout`` seconds. The time of the
            consumer does not count.
    """
    raw = response.response
    if not raw.headers.get("content-type", "").startswith("application/json"):
        async for piece in read_chunks(aiter(response), timeout, most):
            yield piece
        return
    body = json.loads(await raw.aread())
    reply = read_chat(ChatCompletion.construct(**body) if isinstance(body, dict) else body, most)
    if reply.text:
        yield reply.text
    yield reply


async def read_chunks(
    chunks: AsyncIterator[ChatCompletionChunk], timeout: float, most: int | None
) -> AsyncGenerator[str | ChatReply]:
    """See :func:`read_stream`."""
    clock = asyncio.get_running_loop().time
    texts, logprobs, calls = list[str](), list[float](), _Calls()
    usage: Usage | None = None
    model, complete, length = "", False, 0
    deadline = clock() + timeout
    while True:
        async with asyncio.timeout_at(deadline):
            chunk = await anext(chunks, None)
        if chunk is None:
            break
        try:
            usage = _usage(chunk.usage) or usage
            model = _text(getattr(chunk, "model", None)) or model
            if not chunk.choices:
                continue
            choice = chunk.choices[0]
            complete = complete or choice.finish_reason is not None
            logprobs += _listed(choice.logprobs)
            delta = choice.delta or ChoiceDelta()  # events of a content filter have none
            text = _text(delta.content or delta.refusal)
            for call in delta.tool_calls or ():
                calls.add(call, getattr(call, "index", None))
            thought = any(v for k, v in delta if k != "role")  # such as reasoning
        except (AttributeError, LookupError, TypeError) as error:
            raise MalformedReply(f"an event that is not a chat completion ({error})") from None
        length += max(len(text), thought)
        check_length(length + calls.length, most)
        if text:
            texts.append(text)
            yield text
        if thought:
            deadline = clock() + timeout
    if not complete:
        raise MalformedReply("a stream that ended before the reply was complete")
    yield ChatReply("".join(texts), _logprob(logprobs), calls.finish(), usage, model)


def check_length(characters: int, most: int | None) -> None:
    """Raise :class:`MalformedReply` for a text that is too long for ``most`` tokens."""
    if most is not None and characters > (longest := most * _LONGEST_TOKEN + _SPARE_CHARACTERS):
        raise MalformedReply(f"more than {longest} characters, for at most {most} tokens")


async def limit_body(response: Any) -> None:
    """Make a response of httpx raise :class:`MalformedReply` when its body becomes too large."""
    encoding = response.headers.get("content-encoding", "").lower()
    if encoding not in ("", "identity"):
        raise MalformedReply(f"a reply with the content encoding '{encoding}', not requested")
    read = response.aiter_raw

    async def limited(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        left = LARGEST_BODY
        async with aclosing(read(chunk_size)) as parts:
            async for part in parts:
                left -= len(part)
                if left < 0:
                    raise MalformedReply(f"a body of more than {LARGEST_BODY} bytes")
                yield part

    response.aiter_raw = limited


class _Calls:
    """Calls of tools, whole or in pieces: a name first, then parts of the arguments.

    openai's own accumulator joins the names of servers that repeat them in each piece, fails
    without numbers, and copies the whole reply for each piece.
    """

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, str]] = {}
        self.length = 0
        """Number of characters."""

    def add(self, piece: Any, index: int | None) -> None:
        """Take a piece of the call with this number; ``None``: a whole call."""
        function, id = piece.function, _text(getattr(piece, "id", None))
        arguments = function.arguments
        if isinstance(arguments, dict):  # the value, and not its text
            arguments = msgspec.json.encode(arguments).decode()
        known = self._calls.get(-1 if index is None else index)
        if known is None or (id and known["id"] not in ("", id)):  # some number all calls 0
            if len(self._calls) == _MOST_CALLS:
                raise TypeError(f"more than {_MOST_CALLS} tool calls in one reply")
            known = {"id": "", "name": "", "arguments": ""}
            free = index is not None and index not in self._calls
            self._calls[index if free and index is not None else len(self._calls)] = known
        known["id"] = known["id"] or id
        known["name"] = known["name"] or _text(getattr(function, "name", None))
        known["arguments"] += _text(arguments)
        self.length += len(id) + len(known["name"]) + len(arguments or "")

    def finish(self) -> tuple[ToolCall, ...]:
        """The calls, in the order of their numbers."""
        ordered = [self._calls[number] for number in sorted(self._calls)]
        return tuple(
            [
                ToolCall(name=c["name"], arguments=c["arguments"] or "{}", id=call_id(c["id"]))
                for c in ordered
            ]
        )


def _listed(logprobs: Any) -> list[float]:
    """The log-probabilities of the tokens of a choice."""
    listed = None if logprobs is None else logprobs.content
    return [float(token.logprob) for token in listed or ()]


def _logprob(logprobs: Sequence[float]) -> float | None:
    """The sum, if there is any, and if it is a probability."""
    summed = sum(logprobs) if logprobs else None
    return summed if summed is not None and -math.inf < summed <= 0.0 else None


def _text(text: object) -> str:
    """A text as it can be written again: a lone surrogate becomes ``?``."""
    if not isinstance(text, str | None):
        raise TypeError(f"expected a text, got a {type(text).__name__}")
    return (text or "").encode("utf-8", "replace").decode()


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    given = (getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens"))
    prompt, completion = (value if type(value) is int else 0 for value in given)
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def plausible_usage(reply: ChatReply, asked: int, longest: int | None) -> Usage | None:
    """The usage that a server reported, with an implausible count replaced by the most that it can
    be. Otherwise a server could disable a budget with a negative or tiny count, or exhaust it with
    a huge one.

    Args:
        reply: the reply.
        asked: the most tokens of the prompt.
        longest: the limit of tokens that was sent, if any.

    Returns:
        ``None`` if the server did not report it.
    """
    if reply.usage is None:
        return None
    prompt, completion = reply.usage.prompt_tokens, reply.usage.completion_tokens
    if not max(1, asked // _TINY) <= prompt <= _HUGE * asked + _SPARE:
        prompt = asked
    most = math.inf if longest is None else _HUGE * longest + _SPARE
    if not -(-guess_tokens(reply.text) // _TINY) <= completion <= most:
        written = sum(map(most_tokens, [reply.text, *(call.arguments for call in reply.calls)]))
        completion = written if longest is None else min(written, longest)
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def guessed_usage(reply: ChatReply, asked: int, longest: int | None) -> Usage:
    """An estimate of the usage, for a server that does not report it; arguments as those of
    :func:`plausible_usage`."""
    written = sum(map(guess_tokens, [reply.text, *(call.arguments for call in reply.calls)]))
    completion = written if longest is None else min(written, longest)
    prompt = likely_tokens(Usage(prompt_tokens=asked))
    return Usage(prompt_tokens=prompt, completion_tokens=completion)
