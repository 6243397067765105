"""A model that says what it is told: for tests, examples, dry runs and replays."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from swarm_ui.errors import ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Request
from swarm_ui.nodes.models.scripted.recorded_replies import Recorded, RecordedReplies
from swarm_ui.prompts import as_chat, transcript

Reply = str | Completion | Exception
Script = Iterable[Reply] | Callable[[Request], Reply | Awaitable[Reply]]

_WORD = re.compile(r"\s*\S+|\s+")


class ScriptedModel:
    """A :class:`~swarm_ui.model.ChatModel` that follows a script.

    It is public: use it to test nodes, graphs and environments of your own. It also streams
    (:class:`~swarm_ui.model.StreamingModel`), word by word.

    >>> model = ScriptedModel(["hello", "bye"])
    >>> model = ScriptedModel(lambda request: f"seed {request.seed}")
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        """``script``: replies, given in the order of the requests; or a function (sync or async)
        from a request to its reply. A reply that is an exception is raised; a completion is given
        as it is; a text becomes one, with the prompt of a large model and words as tokens."""
        self.name = name
        self.requests: list[Request] = []
        """Every request so far, in the order they came."""
        self._replies = None if callable(script) else iter(script)
        self._function = script if callable(script) else None

    @staticmethod
    def from_trace(recorded: Recorded, *, name: str = "recorded") -> ScriptedModel:
        """A model that replies what was replied when a trace was recorded.

        A request gets the reply of the recorded call with the same context (decision, or exact
        prompt of a chat), adapter, seed and temperature, whatever the order of arrival; equal
        calls give their replies in the order recorded, then from the first again. A request for
        an adapter is answered by any recorded version of it (``"agent_2"`` by ``"agent_2@7"``).
        What nobody asked when it was recorded is a ``ModelError`` that names the closest call.

        Args:
            recorded: a trace, an episode, or any number of both.
            name: the model's name.

        Raises:
            ConfigError: no call in there was answered by a model.
        """
        return ScriptedModel(RecordedReplies(recorded), name=name)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """One reply a request. Raises ``ModelError`` when the script is at its end."""
        return [await self._one(request) for request in requests]

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        """The reply word by word, others run in between; then the completion."""
        completion = await self._one(request)
        for word in _WORD.findall(completion.text):
            yield word
            await asyncio.sleep(0)
        yield completion

    async def close(self) -> None:
        """Nothing to free."""

    async def _one(self, request: Request) -> Completion:
        self.requests.append(request)
        reply = await self._reply(request)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Completion):
            return reply
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
