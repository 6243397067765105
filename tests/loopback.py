"""An OpenAI-compatible server in this process that misbehaves on command.

    async with Loopback([too_many("0"), Reply()]) as server:
        model = OpenAIModel("tiny", server.url)

Each chat request takes the next reply of the script; after its end all are answered well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

GOOD = 'Reason: it is there.\nAction: {"action_type": "click", "target": "Save", "index": 0}'
_LARGEST = 1_000_000


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    text: str | None = GOOD
    status: int = 200
    body: str | None = None
    """Sent instead of a chat completion."""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    """Close the connection in the middle of the body."""
    usage: bool = True
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    path: str
    authorization: str | None
    body: dict[str, Any]
    at: float
    """Time of the event loop."""


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
        """Most chat requests in progress at the same time."""
        self._now = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

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
        for writer in tuple(self._open):
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()  # the client went away, which is its right
        finally:
            self._open.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply; False when the connection is done."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
        length = int(headers.get("content-length", "0"))
        if length > _LARGEST:
            return False
        raw = await reader.readexactly(length)
        if path.endswith("/models"):
            listed = json.dumps({"object": "list", "data": [{"id": m} for m in self._models]})
            return _send(writer, Reply(status=self._models_status, body=listed), listed)
        body = json.loads(raw)
        now = asyncio.get_running_loop().time()
        self.requests.append(Seen(path, headers.get("authorization"), body, now))
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            reply = self._next(body)
            await asyncio.sleep(reply.delay)
        finally:
            self._now -= 1
        return _send(writer, reply, reply.body if reply.body is not None else _chat(reply, body))

    def _next(self, body: dict[str, Any]) -> Reply:
        if not isinstance(self._script, list):
            return self._script(body)
        return self._script.pop(0) if self._script else Reply()


def _chat(reply: Reply, body: dict[str, Any]) -> str:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": "stop",
    }
    if reply.logprobs:
        choice["logprobs"] = {"content": [{"token": "t", "logprob": p} for p in reply.logprobs]}
    chat: dict[str, Any] = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
    }
    if reply.usage:
        chat["usage"] = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return json.dumps(chat)


def _send(writer: asyncio.StreamWriter, reply: Reply, text: str) -> bool:
    payload = text.encode()
    lines = [f"HTTP/1.1 {reply.status} X", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(payload)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
    writer.write(payload[: len(payload) // 2] if reply.cut else payload)
    return not reply.cut
