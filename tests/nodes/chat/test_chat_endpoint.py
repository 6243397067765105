"""A chat node at an endpoint: its own tool calls and structured output, and servers without."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from loopback import Loopback, Reply, failing
from loopback_client import model, no_proxy  # noqa: F401  (a fixture)

from swarm_ui import (
    CollabGraph,
    Trace,
)
from swarm_ui.events import Event, Token
from swarm_ui.nodes import ChatNode, OpenAIModel


class Sum(msgspec.Struct):
    n: int


def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


async def run(under_test: OpenAIModel, **settings: Any) -> Trace:
    on_event = settings.pop("on_event", None)
    try:
        graph = CollabGraph([ChatNode("calc", under_test, **settings)])
        return await graph.run("1 + 2?", on_event=on_event)
    finally:
        await under_test.close()


CALLS = Reply(None, calls=(("c1", "add", '{"a": 1}'), ("c2", "add", '{"a": 5, "b": 6}')))


@pytest.mark.parametrize("streamed", [False, True])
async def test_tools_are_called_by_the_protocols_own_calls(streamed: bool) -> None:
    events: list[Event] = []
    async with Loopback([CALLS, Reply("It is 3.")]) as server:
        trace = await run(model(server), tools=[add], on_event=events.append if streamed else None)
    first, second = (seen.body for seen in server.requests)
    assert first.get("stream", False) is streamed
    (tool,) = first["tools"]
    assert tool["type"] == "function" and tool["function"]["name"] == "add"
    assert tool["function"]["parameters"]["required"] == ["a"]
    assert first["messages"] == [{"role": "user", "content": "1 + 2?"}]
    called, *results = second["messages"][1:]
    assert called["role"] == "assistant" and called["content"] is None
    assert [c["id"] for c in called["tool_calls"]] == ["c1", "c2"]
    assert called["tool_calls"][1]["function"]["arguments"] == '{"a": 5, "b": 6}'
    assert results == [
        {"role": "tool", "content": "3", "tool_call_id": "c1"},
        {"role": "tool", "content": "11", "tool_call_id": "c2"},
    ]
    assert trace.message("calc:0").content == "It is 3."
    assert [m.sender for m in trace.messages[1:]] == [
        "calc/model", "calc/add", "calc/add", "calc/model"
    ]  # fmt: skip
    prompt = trace.calls[-1].prompt
    assert prompt.startswith('[tools]\n["add","Adds two numbers.",{')
    assert '{"tool": "add", "arguments": {"a": 1}, "id": "c1"}' in prompt
    assert "[tool c2]\n11" in prompt
    assert trace.calls[1].usage.prompt_tokens == 11
    tokens = [e.text for e in events if isinstance(e, Token)]
    assert tokens == (["It", " is", " 3."] if streamed else [])


async def test_a_server_without_tool_calls_gets_them_as_text() -> None:
    def reply(body: dict[str, Any]) -> Reply:
        if "tools" in body:
            return failing(400, '"auto" tool choice requires --enable-auto-tool-choice')
        if "Result of add" in body["messages"][-1]["content"]:
            return Reply("It is 3.")
        return Reply('{"tool": "add", "arguments": {"a": 1}}')

    async with Loopback(reply) as server:
        trace = await run(model(server), tools=[add])
    assert trace.message("calc:0").content == "It is 3."
    asked = [seen.body for seen in server.requests]
    assert ["tools" in body for body in asked] == [True, False, False]  # it is not asked again
    assert "You can call tools" in asked[1]["messages"][0]["content"]
    assert "You can call tools" in trace.calls[1].prompt


async def test_a_schema_with_an_optional_field_is_not_called_strict() -> None:
    kind = msgspec.defstruct("Pair", [("n", int), ("m", int, 0)])
    async with Loopback([Reply('{"n": 3}')]) as server:
        await run(model(server), schema=kind)
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is False


async def test_the_endpoint_is_asked_to_enforce_a_schema_which_is_in_the_prompt_once() -> None:
    rejecting = failing(400, "response_format is not supported")
    async with Loopback([Reply("three"), rejecting, Reply('{"n": 3}')]) as server:
        trace = await run(model(server), schema=Sum)
    first, second, third = (seen.body for seen in server.requests)
    schema = {
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        "additionalProperties": False,
    }  # fmt: skip
    asked = first["response_format"]["json_schema"]
    assert asked["schema"] == schema and asked["strict"] is True
    assert "response_format" in second and "response_format" not in third
    assert third["messages"][0]["content"].count('"properties"') == 1
    assert trace.message("calc:0").content == '{"n": 3}'
