"""An endpoint that lies, floods, stalls or echoes secrets: typed errors, within bounds."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from loopback import Loopback, Reply, failing, in_a_thread
from loopback_client import ask, model, no_proxy, one, streamed  # noqa: F401  (a fixture)

from swarm_ui import CollabGraph
from swarm_ui.budget import Budget
from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.nodes.models.openai import wire

KEY = "sk-Q7f3mZx9LkV2pRt8Yw5Nb4Hd"
Answer = Callable[[bytes, asyncio.StreamWriter], Coroutine[Any, Any, None]]


@asynccontextmanager
async def raw_server(answer: Answer) -> AsyncIterator[str]:
    """Calls ``answer`` for each request, then closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            await answer(head, writer)
            writer.close()
        except (ConnectionError, EOFError, asyncio.CancelledError):
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def endless(part: bytes, kind: str) -> Answer:
    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\n".encode())
        while True:
            writer.write(part)
            await writer.drain()

    return answer


def chat(**choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "hello"}
    return {"model": "m", "choices": [{"index": 0, "message": message, **choice}]}


# -- event loops ---------------------------------------------------------------------------------


def test_one_model_serves_many_event_loops_also_on_two_threads() -> None:
    with in_a_thread(Loopback()) as server:
        client, errors = model(server, max_retries=0), []
        team = CollabGraph.collaborative(10, 1, model=client)

        def run() -> None:
            try:
                for _ in range(3):
                    trace = team.run_sync("press save")
                    errors.extend(call.error for call in trace.calls if call.error)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors and client.budget.calls == 60


# -- secrets -------------------------------------------------------------------------------------


def leaked(text: str, secret: str = KEY) -> list[str]:
    return [secret[k : k + 8] for k in range(len(secret) - 7) if secret[k : k + 8] in text]


@pytest.mark.parametrize("offset", range(360, 410, 3))
@pytest.mark.parametrize("stream", [False, True])
async def test_no_cut_leaves_a_fragment_of_the_key(
    offset: int, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    message = "x" * offset + f" key {KEY} is wrong"
    event = f"data: {json.dumps({'error': {'message': message}})}\n\n"
    fault = Reply(break_after=0, breaks=event) if stream else failing(500, message)
    async with Loopback([fault]) as server:
        client = model(server, max_retries=0)
        with pytest.raises(ModelError) as caught:
            await (streamed(client) if stream else one(client))
    assert not leaked(str(caught.value)) and "xxxx" in str(caught.value)


async def test_an_echo_that_the_server_has_cut_is_recognised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    async with Loopback([failing(401, f"Incorrect API key: {KEY[:20]}***")]) as server:
        with pytest.raises(ModelError) as caught:
            await one(model(server))
    assert not leaked(str(caught.value)) and "Incorrect API key: [secret]" in str(caught.value)


# -- counts --------------------------------------------------------------------------------------

ABSURD: list[dict[str, Any]] = [
    {"prompt_tokens": -1_000_000, "completion_tokens": -1_000_000},
    {"prompt_tokens": True, "completion_tokens": False},
    {"prompt_tokens": "12", "completion_tokens": [3]},
    {"prompt_tokens": 1e400, "completion_tokens": float("nan")},
    {"prompt_tokens": None},
]


@pytest.mark.parametrize("usage", ABSURD, ids=str)
async def test_counts_that_cannot_be_right_are_our_own(usage: dict[str, Any]) -> None:
    async with Loopback([Reply(body=json.dumps({**chat(), "usage": usage}))]) as server:
        client = model(server, budget=Budget(max_tokens=10_000))
        (completion,) = await client.generate([ask("how are you? " * 40, max_tokens=50)])
        await client.close()
    assert 100 <= completion.usage.prompt_tokens <= 600  # at most its bytes
    assert 1 <= completion.usage.completion_tokens <= 50


# -- floods and stalls ---------------------------------------------------------------------------

PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"abcdefgh" * 64 + b'"}}]}\n\n'
SSE = "text/event-stream"


async def zipped(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (endless(PIECE * 100, SSE), "a body of more than"),
        (endless(b"data: " + b"x" * 60_000, SSE), "a body of more than"),
        (endless(b": ping\n\n" * 5_000, SSE), "a body of more than|no reply in time"),
        (endless(b" " * 60_000, "application/json"), "a body of more than"),
        (zipped, "encoding 'gzip'"),
    ],
    ids=["text", "one event", "comments", "body", "gzip"],
)
async def test_floods_and_stalls_end(
    answer: Answer, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LARGEST_BODY", 2**20)
    async with raw_server(answer) as url:
        client = model(url, max_retries=0, timeout=0.6)
        with pytest.raises(ModelError, match=says):
            await streamed(client, ask(max_tokens=16))
        with pytest.raises(ModelError):
            await one(model(url, max_retries=0, timeout=0.6), ask(max_tokens=16))


async def test_reasoning_without_text_is_not_a_stall() -> None:
    thought = b'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n'
    end = b'data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}\n\n'

    async def answer(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {SSE}\r\n\r\n".encode())
        for _ in range(6):
            writer.write(thought)
            await writer.drain()
            await asyncio.sleep(0.2)
        writer.write(end + b"data: [DONE]\n\n")

    async with raw_server(answer) as url:
        assert (await streamed(model(url, max_retries=0, timeout=0.8)))[0] == ["yes"]


# -- malformed -----------------------------------------------------------------------------------

MALFORMED = {
    "invalid UTF-8": b'{"choices":[{"message":{"content":"\xff\xfe"}}]}',
    "5,000 digits": b'{"choices":[{"message":{"content":"a"}}],"usage":' + b"9" * 5000 + b"}",
    "deep": b'{"choices":' + b"[" * 100_000,
    "a number as model": b'{"model":7,"choices":[{"message":{"content":"a"}}]}',
    "a list": b"[1, 2]",
    "null": b"null",
}


@pytest.mark.parametrize("payload", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("stream", [False, True])
async def test_malformed_replies_are_tried_again_and_typed(payload: bytes, stream: bool) -> None:
    event, kind = b"data: " + payload + b"\n\n", {"Content-Type": SSE}
    bad = Reply(body=event, headers=kind) if stream else Reply(body=payload)
    async with Loopback([bad] * 2) as server:
        client = model(server, max_retries=1)
        with pytest.raises(ModelUnavailable, match="after 2 attempts"):
            await (streamed(client) if stream else one(client))
    assert client.budget.calls == 2


@pytest.mark.parametrize("logprob", ["1e400", "-1e400", "NaN"])
async def test_what_cannot_be_written_again_is_mended_or_left_out(logprob: str) -> None:
    words = {"role": "assistant", "content": "a\ud83d"}
    odd = chat(message=words, logprobs={"content": [{"token": "a", "logprob": 12345}]})
    async with Loopback([Reply(body=json.dumps(odd).replace("12345", logprob))]) as server:
        client = model(server, logprobs=True, max_retries=0)
        (completion,) = await client.generate([ask()])
        await client.close()
    assert completion.logprob is None and completion.text == "a?"
