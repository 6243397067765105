"""An OpenAI-compatible server in this process that misbehaves on command.

    async with Loopback([too_many("0"), Reply()]) as server:
        model = OpenAIModel("tiny", server.url)

Each chat request takes the next reply of the script; after its end all are answered well. A
request with ``stream`` gets its reply in pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

GOOD = 'Reason: it is there.\nAction: {"action_type": "click", "target": "Save", "index": 0}'
PATIENCE = 30.0
"""Seconds that no test waits for an answer."""
_LARGEST = 1_000_000
_USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    text: str | None = GOOD
    status: int = 200
    body: str | bytes | None = None
    """Sent instead of a chat completion."""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    """Close the connection in the middle of the body; of a stream, before its first piece."""
    logprobs: tuple[float, ...] = ()
    """Of the tokens; in a stream, of one piece each."""
    pieces: tuple[str, ...] = ()
    """What a stream sends, instead of ``text`` word by word."""
    break_after: int | None = None
    """Pieces of a stream after which it goes wrong: ``breaks`` is sent, and the line is cut."""
    breaks: str = ""
    pause: float = 0.0
    """Seconds between the pieces of a stream."""
    calls: tuple[tuple[str, str, str], ...] = ()
    """Calls of tools: id, name and arguments of each. Streams send the arguments in two parts."""


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    path: str
    authorization: str | None
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)


def too_many(retry_after: str | None = None) -> Reply:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Reply(status=429, body='{"error": {"message": "slow down"}}', headers=headers)


def failing(status: int = 500, message: str = "it broke", code: str | None = None) -> Reply:
    return Reply(status=status, body=json.dumps({"error": {"message": message, "code": code}}))


Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]


class Loopback:
    """Listens on 127.0.0.1 only, on a free port, for as long as the ``async with`` lasts."""

    def __init__(
        self, script: Script = (), *, models: Sequence[str] = ("tiny",), models_status: int = 200
    ) -> None:
        """``script``: one reply a chat request, or a function from its body to a reply."""
        self._script = script if callable(script) else list(script)
        self._models, self._models_status = list(models), models_status
        self.requests: list[Seen] = []
        """Chat requests, in the order they came."""
        self.at_once = 0
        """Most chat requests in progress at the same time, but for those that outlast anybody's
    patience: they go on here for a moment when the client has already turned to the next."""
        self._now = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
            writer.close()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.transport.abort()  # the client went away, which is its right, or the test did
        finally:
            self._tasks.discard(task)

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; False when the connection is done."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        length = int(headers.get("content-length", "0"))
        if length > _LARGEST:
            return False
        raw = await reader.readexactly(length)
        seen = Seen(path, headers.get("authorization"), json.loads(raw or "{}"))
        other = self.other(seen)
        if other is not None:
            return _send(writer, other, other.body or "")
        body = seen.body
        self.requests.append(seen)
        reply = self._next(body)
        counts = reply.delay < PATIENCE
        self._now += counts
        self.at_once = max(self.at_once, self._now)
        try:
            await _wait(reader, reply.delay)
            if body.get("stream") and reply.body is None:
                return await self._stream(writer, reply, body)
        finally:
            self._now -= counts
        return _send(writer, reply, reply.body if reply.body is not None else _chat(reply, body))

    async def _stream(
        self, writer: asyncio.StreamWriter, reply: Reply, body: dict[str, Any]
    ) -> bool:
        """Server-sent events, in chunks of HTTP as they come."""
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        end = 0 if reply.cut else reply.break_after
        for k, event in enumerate(_events(reply, body)):
            if k == end:
                _send_chunk(writer, reply.breaks)
                await writer.drain()
                return False
            _send_chunk(writer, event)
            await writer.drain()
            await asyncio.sleep(reply.pause)
        writer.write(b"0\r\n\r\n")
        return True

    def other(self, seen: Seen) -> Reply | None:
        """The answer to a request that is not answered as a chat."""
        if not seen.path.endswith("/models"):
            return None
        listed = {"object": "list", "data": [{"id": name} for name in self._models]}
        return Reply(status=self._models_status, body=json.dumps(listed))

    def _next(self, body: dict[str, Any]) -> Reply:
        if not isinstance(self._script, list):
            return self._script(body)
        return self._script.pop(0) if self._script else Reply()


@contextmanager
def in_a_thread(server: Loopback) -> Iterator[Loopback]:
    """A server in the event loop of another thread, for clients with loops of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result()
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result()  # sockets close
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _wait(reader: asyncio.StreamReader, seconds: float) -> None:
    """Sleep, unless the client goes away."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            assert await reader.read(1) == b"", "one request at a time on a connection"
            raise ConnectionResetError


def _chat(reply: Reply, body: dict[str, Any]) -> str:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": "stop"}
    if reply.calls:
        message["tool_calls"] = [_called(*call) for call in reply.calls]
        choice["finish_reason"] = "tool_calls"
    if reply.logprobs:
        listed = [{"token": "t", "logprob": p} for p in reply.logprobs]
        choice["logprobs"] = {"content": listed}
    chat: dict[str, Any] = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": _USAGE,
    }
    return json.dumps(chat)


def _events(reply: Reply, body: dict[str, Any]) -> Iterator[str]:
    head = {"id": "chat-1", "object": "chat.completion.chunk", "model": body["model"]}
    pieces = reply.pieces or tuple(re.findall(r"\s*\S+|\s+", reply.text or ""))
    for k, piece in enumerate(pieces):
        choice: dict[str, Any] = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
        if k < len(reply.logprobs):
            choice["logprobs"] = {"content": [{"token": "t", "logprob": reply.logprobs[k]}]}
        yield _event(head | {"choices": [choice]})
    for k, (id, name, arguments) in enumerate(reply.calls):
        half = len(arguments) // 2
        first = {"index": k, **_called(id, name, arguments[:half])}
        second = {"index": k, "function": {"arguments": arguments[half:]}}
        for part in (first, second):
            delta = {"tool_calls": [part]}
            yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if body.get("stream_options", {}).get("include_usage"):
        yield _event(head | {"choices": [], "usage": _USAGE})
    yield "data: [DONE]\n\n"


def _called(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _event(chunk: dict[str, Any]) -> str:
    return f": still here\n\ndata: {json.dumps(chunk, ensure_ascii=False)}\n\n"


def _send_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    payload = text.encode()
    if payload:
        writer.write(f"{len(payload):x}\r\n".encode() + payload + b"\r\n")


def _send(writer: asyncio.StreamWriter, reply: Reply, text: str | bytes) -> bool:
    payload = text if isinstance(text, bytes) else text.encode()
    headers = {"Content-Type": "application/json", "Content-Length": len(payload)} | reply.headers
    lines = [f"HTTP/1.1 {reply.status} X", *(f"{k}: {value}" for k, value in headers.items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    writer.write(payload[: len(payload) // 2] if reply.cut else payload)
    return not reply.cut
