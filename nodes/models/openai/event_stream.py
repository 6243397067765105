"""Reading a chat completion while it is written: server-sent events, or a plain reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Protocol

from swarm_ui.message import Usage
from swarm_ui.nodes.models.openai.replies import (
    Answer,
    ChatReply,
    Malformed,
    read_chat,
    read_chunk,
)

_DRAIN_SECONDS = 0.5


class Response(Protocol):
    """The part of openai's streamed response that is used here."""

    def iter_bytes(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes: ...


async def read_stream(response: Response, patience: float) -> AsyncGenerator[str | ChatReply]:
    """Pieces of text as they come, then the whole reply.

    Args:
        response: the open response.
        patience: seconds to wait for each event; what the reader does in between is free.

    Raises:
        Malformed: an event cannot be read, or the stream ended before the reply did.
        TimeoutError: nothing came for too long.
    """
    texts: list[str] = []
    logprobs: list[float] = []
    usage: Usage | None = None
    model, whole = "", False
    async with aclosing(_events(response.iter_bytes())) as events:
        while True:
            async with asyncio.timeout(patience):
                data = await anext(events, None)
            if data is None:
                break
            if data == b"[DONE]":
                whole = True
                await _drain(events)
                break
            chunk = read_chunk(data)
            whole = whole or chunk.last
            usage, model = chunk.usage or usage, chunk.model or model
            logprobs.extend(chunk.logprobs)
            if chunk.text:
                texts.append(chunk.text)
                yield chunk.text
    if not whole:
        raise Malformed("a stream that ended before the reply did")
    answer = Answer(
        text="".join(texts),
        logprob=sum(logprobs) if logprobs else None,
        tokens=len(logprobs) or None,
    )
    yield ChatReply((answer,), usage, model)


async def read_whole(response: Response, patience: float) -> AsyncGenerator[str | ChatReply]:
    """The same of a server that does not stream and answers at once."""
    async with asyncio.timeout(patience):
        reply = read_chat(await response.read())
    if reply.answers[0].text:
        yield reply.answers[0].text
    yield reply


async def _drain(events: AsyncIterator[bytes]) -> None:
    """Read what is left after the end, so that the connection can be used again. Whatever goes
    wrong here no longer matters: the reply is there."""
    with suppress(Exception):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in events:
                pass


async def _events(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The data of each event. Comments, which keep a line warm, pass.

    Split here and at line feeds only: text of a reply may hold characters that Python also takes
    for the end of a line.
    """
    rest = b""
    async for part in body:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()
    if rest.startswith(b"data:"):
        yield rest[5:].strip()
