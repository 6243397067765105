"""Replies of an endpoint, whole or streamed, read from the types of the openai package.

The client does not validate replies, because many servers leave out required fields. So only the
fields that are used here are checked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple

from openai import AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.chat_completion import ChoiceLogprobs
from openai.types.chat.chat_completion_chunk import ChoiceLogprobs as ChunkLogprobs
from openai.types.completion_usage import CompletionUsage

from swarm_ui.message import Usage


class Answer(NamedTuple):
    """One text of a reply."""

    text: str
    logprob: float | None = None
    tokens: int | None = None
    """``None`` if the server did not list them."""


class ChatReply(NamedTuple):
    """One chat completion."""

    answers: tuple[Answer, ...]
    """At least one; several if several samples were requested."""
    usage: Usage | None
    """``None`` if the server did not report it."""
    model: str


class MalformedReply(ValueError):
    """A reply with HTTP status 200 does not follow the protocol."""


def read_chat(chat: object) -> ChatReply:
    """The parts of a chat completion that are used. A null content (the model was cut off while it
    was reasoning) is an empty text. Raises ``MalformedReply`` if it is not a chat completion."""
    if not isinstance(chat, ChatCompletion):
        raise MalformedReply("a reply that is not a chat completion")
    try:
        choices = sorted(chat.choices, key=lambda choice: getattr(choice, "index", 0))
        answers = [
            _answer(each.message.content or each.message.refusal, _logprobs(each.logprobs))
            for each in choices
        ]
    except (AttributeError, TypeError) as error:
        raise MalformedReply(f"a reply that is not a chat completion ({error})") from None
    if not answers:
        raise MalformedReply("a chat completion with an empty list of choices")
    return ChatReply(tuple(answers), _usage(chat.usage), getattr(chat, "model", None) or "")


async def read_response(
    response: AsyncStream[ChatCompletionChunk], timeout: float
) -> AsyncGenerator[str | ChatReply]:
    """:func:`read_stream`, also for a server that ignores ``stream`` and answers at once."""
    raw = response.response
    if not raw.headers.get("content-type", "").startswith("application/json"):
        async for piece in read_stream(aiter(response), timeout):
            yield piece
        return
    async with asyncio.timeout(timeout):
        body = json.loads(await raw.aread())
    reply = read_chat(ChatCompletion.construct(**body) if isinstance(body, dict) else body)
    if reply.answers[0].text:
        yield reply.answers[0].text
    yield reply


async def read_stream(
    chunks: AsyncIterator[ChatCompletionChunk], timeout: float
) -> AsyncGenerator[str | ChatReply]:
    """Pieces of text as they arrive, then the whole reply.

    Raises:
        MalformedReply: a chunk cannot be read, or the stream ended before the reply was complete.
        TimeoutError: a chunk took more than ``timeout`` seconds. The consumer's own time does not
            count.
    """
    texts: list[str] = []
    logprobs: list[float] = []
    usage: Usage | None = None
    model, complete = "", False
    while True:
        async with asyncio.timeout(timeout):
            chunk = await anext(chunks, None)
        if chunk is None:
            break
        try:
            usage = _usage(chunk.usage) or usage
            model = getattr(chunk, "model", None) or model
            if not chunk.choices:
                continue
            choice = chunk.choices[0]
            complete = complete or choice.finish_reason is not None
            logprobs.extend(_logprobs(choice.logprobs))
            text = _text(choice.delta.content or choice.delta.refusal)
        except (AttributeError, LookupError, TypeError) as error:
            raise MalformedReply(f"an event that is not a chat completion ({error})") from None
        if text:
            texts.append(text)
            yield text
    if not complete:
        raise MalformedReply("a stream that ended before the reply was complete")
    yield ChatReply((_answer("".join(texts), logprobs),), usage, model)


def _answer(text: str | None, logprobs: list[float]) -> Answer:
    return Answer(_text(text), sum(logprobs) if logprobs else None, len(logprobs) or None)


def _text(text: object) -> str:
    if not isinstance(text, str | None):
        raise TypeError(f"expected a text, got a {type(text).__name__}")
    return text or ""


def _logprobs(logprobs: ChoiceLogprobs | ChunkLogprobs | None) -> list[float]:
    listed = None if logprobs is None else logprobs.content
    return [float(token.logprob) for token in listed or ()]


def _usage(usage: CompletionUsage | None) -> Usage | None:
    if usage is None:
        return None
    names = ("prompt_tokens", "completion_tokens")
    return Usage(**{name: getattr(usage, name, None) or 0 for name in names})
