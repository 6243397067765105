"""What the tests of the endpoint model share: short requests, and a model that hardly waits."""

from __future__ import annotations

import random
from contextlib import aclosing
from typing import Any

import pytest
from loopback import Loopback

from swarm_ui.model import ChatMessage, Completion, Request
from swarm_ui.nodes.models.openai.model import OpenAIModel


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way to this process does not lead through somebody's proxy."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def ask(text: str = "hi", **kwargs: Any) -> Request:
    return Request(chat=(ChatMessage("user", text),), **kwargs)


def model(server: Loopback | str, **kwargs: Any) -> OpenAIModel:
    url = server if isinstance(server, str) else server.url
    kwargs.setdefault("backoff", 0.001)
    return OpenAIModel("tiny", url, jitter=random.Random(0), **kwargs)


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
