"""Replies of an endpoint, whole or streamed, read from the types of the openai package.

The client does not validate replies, because many servers leave out required fields. So only the
fields that are used here are checked.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

from openai import AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import ChoiceLogprobs
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.chat.chat_completion_chunk import ChoiceLogprobs as ChunkLogprobs
from openai.types.completion_usage import CompletionUsage

from swarm_ui.message import Usage
from swarm_ui.model import ToolCall
from swarm_ui.nodes.models.openai.tool_calls import StreamedCalls, called_tools

LARGEST_BODY = 16 * 2**20
"""Maximum size of a reply in bytes; applies to streams too."""
_LONGEST_TOKEN, _SPARE = 128, 16_384
"""Maximum characters of one token, and of a reply in addition to its tokens."""


class Answer(NamedTuple):
    """One text of a reply."""

    text: str
    logprob: float | None = None
    tokens: int | None = None
    """The tokens of the text; ``None`` if the server did not list them."""
    calls: tuple[ToolCall, ...] = ()


class ChatReply(NamedTuple):
    """One chat completion."""

    answers: tuple[Answer, ...]
    """The texts of the reply: one for each requested sample."""
    usage: Usage | None
    """The tokens that the call used; ``None`` if the server did not report them."""
    model: str


class MalformedReply(ValueError):
    """A reply with HTTP status 200 does not follow the protocol."""


def read_chat(chat: object) -> ChatReply:
    """The parts of a chat completion that are used. A null content (the model was cut off while it
    was reasoning) is an empty text. Raises ``MalformedReply`` if it is not a chat completion."""
    if not isinstance(chat, ChatCompletion):
        raise MalformedReply("a reply that is not a chat completion")
    failed = getattr(chat, "error", None)
    if failed and not chat.choices:
        raise MalformedReply(f"an error in place of a chat completion ({failed})")
    try:
        choices = sorted(chat.choices, key=lambda choice: getattr(choice, "index", None) or 0)
        answers = [
            _answer(
                each.message.content or each.message.refusal, _logprobs(each.logprobs)
            )._replace(calls=called_tools(each.message))
            for each in choices
        ]
        usage, model = _usage(chat.usage), _text(getattr(chat, "model", None))
    except (AttributeError, TypeError) as error:
        raise MalformedReply(f"a reply that is not a chat completion ({error})") from None
    if not answers:
        raise MalformedReply("a chat completion with an empty list of choices")
    return ChatReply(tuple(answers), usage, model)


async def read_response(
    response: AsyncStream[ChatCompletionChunk], timeout: float, most: int | None
) -> AsyncGenerator[str | ChatReply]:
    """:func:`read_stream`, also for a server that ignores ``stream`` and answers at once."""
    raw = response.response
    if not raw.headers.get("content-type", "").startswith("application/json"):
        async for piece in read_stream(aiter(response), timeout, most):
            yield piece
        return
    async with asyncio.timeout(timeout):
        body = json.loads(await raw.aread())
    reply = read_chat(ChatCompletion.construct(**body) if isinstance(body, dict) else body)
    check_length(written(reply.answers[0]), most)
    if reply.answers[0].text:
        yield reply.answers[0].text
    yield reply


async def read_stream(
    chunks: AsyncIterator[ChatCompletionChunk], timeout: float, most: int | None
) -> AsyncGenerator[str | ChatReply]:
    """Pieces of text as they arrive, then the whole reply. ``most``: token limit of the request.

    Raises:
        MalformedReply: a chunk cannot be read, the reply is too long, or it is not complete.
        TimeoutError: nothing but empty events arrived for ``timeout`` seconds. The time of the
            consumer does not count.
    """
    clock = asyncio.get_running_loop().time
    texts: list[str] = []
    logprobs: list[float] = []
    calls = StreamedCalls()
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
            logprobs.extend(_logprobs(choice.logprobs))
            delta = choice.delta or ChoiceDelta()  # events of a content filter have none
            text = _text(delta.content or delta.refusal)
            length += calls.add(delta)
            thought = any(v for k, v in delta if k != "role")  # such as reasoning
        except (AttributeError, LookupError, TypeError) as error:
            raise MalformedReply(f"an event that is not a chat completion ({error})") from None
        length += max(len(text), thought)
        check_length(length, most)
        if text:
            texts.append(text)
            yield text
        if thought:
            deadline = clock() + timeout
    if not complete:
        raise MalformedReply("a stream that ended before the reply was complete")
    answer = _answer("".join(texts), logprobs)._replace(calls=calls.finish())
    yield ChatReply((answer,), usage, model)


def written(answer: Answer) -> int:
    """Number of characters of an answer and of its calls."""
    return len(answer.text) + sum(len(c.name) + len(c.arguments) for c in answer.calls)


def check_length(characters: int, most: int | None) -> None:
    """Raise :class:`MalformedReply` for a text that is too long for ``most`` tokens."""
    if most is None:
        return
    longest = most * _LONGEST_TOKEN + _SPARE
    if characters > longest:
        raise MalformedReply(f"more than {longest} characters, for at most {most} tokens")


async def limit_body(response: Any) -> None:
    """Make a response of httpx raise :class:`MalformedReply` when its body becomes too large."""
    encoding = response.headers.get("content-encoding", "").lower()
    if encoding not in ("", "identity"):
        raise MalformedReply(f"a reply with the content encoding '{encoding}', not requested")
    response.stream = _limited(response.stream.__class__)(response.stream)


@functools.cache
def _limited(stream: Any) -> Any:
    # openai 1 and 2 use httpx, openai 3 uses httpx2, so neither is imported here.
    base = next(c for c in stream.__mro__ if c.__name__ == "AsyncByteStream")
    return type("Limited", (_Limited, base), {})


class _Limited:
    """The body of a response, up to :data:`LARGEST_BODY`."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LARGEST_BODY
        async for part in self._body:
            left -= len(part)
            if left < 0:
                raise MalformedReply(f"a body of more than {LARGEST_BODY} bytes")
            yield part

    async def aclose(self) -> None:
        await self._body.aclose()


def _answer(text: str | None, logprobs: list[float]) -> Answer:
    summed = sum(logprobs) if logprobs else None
    if summed is not None and not -math.inf < summed <= 0.0:
        summed = None  # not a probability
    return Answer(_text(text), summed, len(logprobs) or None)


def _text(text: object) -> str:
    """A text as it can be written again: a lone surrogate becomes ``?``."""
    if not isinstance(text, str | None):
        raise TypeError(f"expected a text, got a {type(text).__name__}")
    return (text or "").encode("utf-8", "replace").decode()


def _logprobs(logprobs: ChoiceLogprobs | ChunkLogprobs | None) -> list[float]:
    listed = None if logprobs is None else logprobs.content
    return [float(token.logprob) for token in listed or ()]


def _usage(usage: CompletionUsage | None) -> Usage | None:
    if usage is None:
        return None
    given = (getattr(usage, name, 0) for name in ("prompt_tokens", "completion_tokens"))
    prompt, completion = (value if type(value) is int else 0 for value in given)
    return Usage(prompt_tokens=prompt, completion_tokens=completion)
