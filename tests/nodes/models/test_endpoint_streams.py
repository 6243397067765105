"""Streams of the endpoint model: pieces, broken lines, early closing."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing

import pytest
from loopback import Loopback, Reply, failing, too_many
from loopback_client import (
    ask,
    model,
    no_proxy,  # noqa: F401  (a fixture)
    pieces_of,
    streamed,
)

from swarm_ui.errors import BudgetExceeded, ModelError
from swarm_ui.model import StreamingModel
from swarm_ui.prompts import transcript


async def test_pieces_come_in_order_and_the_whole_comes_last() -> None:
    pieces = ("Reason: ", "ü\u2028\x85 and ", "so on")
    async with Loopback([Reply(pieces=pieces, logprobs=(-0.5, -0.25, -0.25))]) as server:
        client = model(server, logprobs=True, send_seed=True)
        assert isinstance(client, StreamingModel)
        request = ask("go", adapter="agent_0@3", seed=4, max_tokens=9)
        got, last = await streamed(client, request)
    assert tuple(got) == pieces and last.text == "".join(pieces)
    assert (last.prompt, last.adapter) == (transcript(request.chat or ()), "agent_0@3")
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (11, 7)
    assert last.logprob == pytest.approx(-1.0)
    body = server.requests[0].body
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}
    assert (body["seed"], body["max_tokens"], body["logprobs"]) == (4, 9, True)


@pytest.mark.parametrize(
    "fault",
    [
        too_many("0"),
        failing(500),
        Reply("good", break_after=0),
        Reply("good", break_after=0, breaks="data: {nonsense\n\n"),
        Reply("good", break_after=0, breaks='data: {"error": {"message": "out of memory"}}\n\n'),
    ],
    ids=["429", "500", "cut", "malformed", "error"],
)
async def test_a_stream_that_fails_before_its_first_piece_is_tried_again(fault: Reply) -> None:
    async with Loopback([fault, fault, Reply("good")]) as server:
        client = model(server)
        assert (await streamed(client))[0] == ["good"]
    assert client.budget.calls == 3


@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        ("", "a broken connection|ended before the reply was complete"),
        ("data: {nonsense\n\n", "cannot be read"),
        ('data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
    ],
    ids=["cut", "malformed", "error"],
)
async def test_a_stream_that_breaks_off_is_repeated_without_pieces(breaks: str, says: str) -> None:
    fault = Reply("one two three", break_after=2, breaks=breaks)
    async with Loopback([fault, Reply("all of it"), fault]) as server:
        client = model(server)
        got, last = await pieces_of(client)
        assert (got, last.text, client.budget.calls) == (["one", " two"], "all of it", 2)
        await client.close()
        with pytest.raises(ModelError, match=says):
            await streamed(model(server, max_retries=0))


async def test_closing_early_cancels_the_call_and_frees_its_slot() -> None:
    async with Loopback([Reply("a b c", pause=60), Reply("next")]) as server:
        client = model(server, concurrency=1, max_tokens=1000)
        async with aclosing(client.stream(ask(max_tokens=100))) as pieces:  # type: ignore[type-var]
            assert await anext(pieces) == "a"
        asked = ask(max_tokens=100)
        got, _ = await asyncio.wait_for(pieces_of(client, asked), timeout=10)
        assert got == ["next"]
        # What it used is not known, so it counts with all it may have used.
        with pytest.raises(BudgetExceeded, match="127 are used and 0 reserved"):
            await client.generate([ask(max_tokens=990)])
        await client.close()
    async with asyncio.timeout(10):
        # httpx's own iterators are finished by the garbage collector, in tasks that end at once.
        gc.collect()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)


async def test_a_server_that_refuses_stream_options_is_asked_without_them_from_then_on() -> None:
    def old(body: dict[str, object]) -> Reply:
        known = "stream_options" not in body
        return Reply("fine") if known else failing(400, "Unrecognized argument: stream_options")

    async with Loopback(old) as server:
        client = model(server)
        assert [(await streamed(client))[1].text for _ in range(2)] == ["fine", "fine"]
    assert ["stream_options" in seen.body for seen in server.requests] == [True, False, False]
