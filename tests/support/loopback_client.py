"""What the tests of the endpoint model share: short requests, and a model that hardly waits."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from loopback import Loopback

from swarm_ui.budget import Budget
from swarm_ui.model import ChatMessage, Completion, Request
from swarm_ui.nodes import ChatOptions, OpenAIModel, RateLimits
from swarm_ui.nodes.models.openai import failures


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to this process does not lead through somebody's proxy, and retries come at once."""
    monkeypatch.setattr(failures, "FIRST_PAUSE", 0.001)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def ask(text: str = "hi", **kwargs: Any) -> Request:
    return Request(chat=(ChatMessage("user", text),), **kwargs)


_RECORDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "limits": (RateLimits, ("requests", "period", "concurrency")),
    "budget": (Budget, ("max_calls", "max_tokens", "max_cost", "prices")),
    "options": (
        ChatOptions,
        ("extra_body", "logprobs", "vision", "token_field", "send_seed"),
    ),
}


def records(**settings: Any) -> dict[str, Any]:
    """Arguments of ``OpenAIModel``: settings with a record of their own are put into it."""
    arguments: dict[str, Any] = {}
    for name, (record, fields) in _RECORDS.items():
        values = {field: settings.pop(field) for field in fields if field in settings}
        if values:
            arguments[name] = record(**values)
    return arguments | settings


def model(server: Loopback | str, **settings: Any) -> OpenAIModel:
    url = server if isinstance(server, str) else server.url
    return OpenAIModel("tiny", url, **records(**settings))


async def one(under_test: OpenAIModel, request: Request | None = None) -> str:
    try:
        (completion,) = await under_test.generate([request or ask()])
        return completion.text
    finally:
        await under_test.close()


async def pieces_of(
    under_test: OpenAIModel, request: Request | None = None
) -> tuple[list[str], Completion]:
    """The pieces of a stream and what came last."""
    async with aclosing(under_test.stream(request or ask())) as pieces:  # type: ignore[type-var]
        *texts, last = [piece async for piece in pieces]
    assert isinstance(last, Completion)
    return [text for text in texts if isinstance(text, str)], last


async def streamed(
    under_test: OpenAIModel, request: Request | None = None
) -> tuple[list[str], Completion]:
    """The same, and the model is closed afterwards."""
    try:
        return await pieces_of(under_test, request)
    finally:
        await under_test.close()
