"""A model whose replies are scripted: for tests, examples and dry runs."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.prompts import as_chat, transcript

Reply = str | Completion | Exception
Script = Iterable[Reply] | Callable[[Request], Reply | Awaitable[Reply]]

_WORD = re.compile(r"\s*\S+|\s+")


class ScriptedModel:
    """A :class:`~swarm_ui.model.ChatModel` that follows a script.

    Use it to test your own nodes, graphs and environments. It also streams, word by word
    (:class:`~swarm_ui.model.StreamingModel`).

    >>> model = ScriptedModel(["hello", "bye"])
    >>> model = ScriptedModel(lambda request: f"seed {request.seed}")
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        """``script``: replies, in the order of the requests; or a function (sync or async) from a
        request to its reply. A reply that is an exception is raised; a text becomes a completion
        with a chat prompt, in which each word counts as a token."""
        self.name = name
        self.requests: list[Request] = []
        """Every request so far, in the order they came."""
        self._in_order = not callable(script)
        replies = iter(()) if callable(script) else iter(script)
        self._script = script if callable(script) else lambda _: next(replies, None)

    def __repr__(self) -> str:
        return f"ScriptedModel('{self.name}')"

    def __getstate__(self) -> dict[str, Any]:
        if self._in_order:
            raise ConfigError(
                f"the model '{self.name}' replies in the order of the requests, and requests of "
                "several processes have no common order. Script it with a function of the "
                "request, or hold it in an actor that all workers ask: hold_model of swarm_ui.nodes"
            )
        return self.__dict__ | {"requests": []}

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One reply per request. Raises ``ModelError`` if the script has no reply left."""
        return [await self._one(request) for request in requests]

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """The reply word by word, then the completion. Other tasks run between the words."""
        completion = await self._one(request)
        for word in _WORD.findall(completion.text):
            yield word
            await asyncio.sleep(0)
        yield completion

    async def _one(self, request: Request) -> Completion:
        self.requests.append(request)
        reply = self._script(request)
        if inspect.isawaitable(reply):
            reply = await reply
        if reply is None:
            raise ModelError(
                f"{self.name}: no reply left in the script for call {len(self.requests)}; give one "
                "reply for each call, or a function"
            )
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
        prompt = transcript(as_chat(request))
        usage = Usage(prompt_tokens=len(prompt.split()), completion_tokens=len(reply.split()))
        return Completion(
            text=reply, prompt=prompt, usage=usage, model=self.name, adapter=request.adapter
        )
