"""A model that says what it is told: for tests, examples and dry runs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence

from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.prompts import as_chat, transcript

Reply = str | Exception
Script = Iterable[Reply] | Callable[[Request], Reply | Awaitable[Reply]]


class ScriptedModel:
    """A :class:`~swarm_ui.model.ChatModel` that follows a script.

    >>> model = ScriptedModel(["hello", "bye"])
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        """``script``: replies, given in the order of the requests; or a function (sync or async)
        from a request to its reply. A reply that is an exception is raised."""
        self.name = name
        self.requests: list[Request] = []
        """Every request so far, in the order they came."""
        self._replies = None if callable(script) else iter(script)
        self._function = script if callable(script) else None

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One reply a request. Raises ``ModelError`` when the script is at its end."""
        return [await self._one(request) for request in requests]

    async def close(self) -> None:
        """Nothing to free."""

    async def _one(self, request: Request) -> Completion:
        self.requests.append(request)
        reply = await self._reply(request)
        if isinstance(reply, Exception):
            raise reply
        prompt = transcript(as_chat(request))
        usage = Usage(prompt_tokens=len(prompt.split()), completion_tokens=len(reply.split()))
        return Completion(
            text=reply, prompt=prompt, usage=usage, model=self.name, adapter=request.adapter
        )

    async def _reply(self, request: Request) -> Reply:
        if self._function is not None:
            reply = self._function(request)
            return await reply if inspect.isawaitable(reply) else reply
        assert self._replies is not None
        for given in self._replies:
            return given
        raise ModelError(f"{self.name}: no reply left in the script for call {len(self.requests)}")


class ScriptedScoringModel(ScriptedModel):
    """A scripted model that also has an opinion: a :class:`~swarm_ui.model.ScoringModel`."""

    def __init__(
        self, script: Script, score: Callable[[Request, str], float], *, name: str = "scripted"
    ) -> None:
        super().__init__(script, name=name)
        self._score = score

    async def score(self, requests: Sequence[Request], replies: Sequence[str]) -> list[float]:
        """``score(request, reply)`` of each, in nats."""
        return [self._score(q, r) for q, r in zip(requests, replies, strict=True)]
