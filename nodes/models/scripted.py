"""Models whose replies are scripted or recorded: for tests, examples, dry runs and replays."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.message import Usage
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.trace.records import Call, Episode, Trace

Reply = str | Completion | Exception
Script = Iterable[Reply] | Callable[[Request], Reply | Awaitable[Reply]]
Recorded = Trace | Episode | Iterable[Trace | Episode]

_WORD = re.compile(r"\s*\S+|\s+")


class ScriptedModel:
    """A :class:`~swarm_ui.model.ChatModel` that follows a script.

    Use it to test your own nodes, graphs and environments. It also streams, word by word
    (:class:`~swarm_ui.model.StreamingModel`).

    >>> model = ScriptedModel(["hello", "bye"])
    >>> model = ScriptedModel(lambda request: f"seed {request.seed}")
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        """
        Args:
            script: replies, in the order of the requests; or a function (sync or async) from a
                request to its reply. A reply that is an exception is raised. A completion is
                returned as it is. A text becomes a completion with a chat prompt, in which each
                word counts as a token.
            name: the model's name.
        """
        self.name = name
        self.requests: list[Request] = []
        """Every request so far, in the order they came."""
        self._script: Callable[[Request], Reply | Awaitable[Reply] | None]
        self._in_order = not callable(script)
        if callable(script):
            self._script = script
        else:
            replies = iter(script)
            self._script = lambda _: next(replies, None)

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

    @staticmethod
    def from_trace(recorded: Recorded, *, name: str = "recorded") -> ScriptedModel:
        """A model that repeats the replies of a trace, an episode, or any number of both.

        A request gets the reply of the recorded call with the same context (decision, or exact
        prompt of a chat), adapter, seed and temperature, in any order of arrival. Equal calls give
        their replies in the recorded order, and then start again with the first one. A request for
        an adapter matches any recorded version of it (``"agent_2"`` matches ``"agent_2@7"``). A
        request that was not recorded raises a ``ModelError``.

        Raises:
            ConfigError: no recorded call was answered by a model.
        """
        return ScriptedModel(_RecordedReplies(recorded), name=name)

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


class _RecordedReplies:
    """Finds the recorded call with the context, adapter, seed and temperature of a request."""

    def __init__(self, recorded: Recorded) -> None:
        self._count = 0
        self._replies: dict[tuple[object, ...], deque[Completion]] = {}
        for trace in _traces(recorded):
            for call in trace.calls:
                self._learn(trace, call)
        if not self._replies:
            raise ConfigError(
                "expected traces or episodes with at least one call of a model, "
                f"got {self._count} calls without a prompt"
            )

    def _learn(self, trace: Trace, call: Call) -> None:
        self._count += 1
        if not call.prompt or call.completion is None:
            return
        try:
            decision = _bare(trace.decision(call))
        except KeyError:  # messages that it received are missing from the trace
            decision = None
        reply = Completion(
            text=call.reply,
            prompt_format=call.message.prompt_format,
            **msgspec.structs.asdict(call.completion),
        )
        name = call.adapter and call.adapter.rpartition("@")[0]
        for context in (call.prompt, decision):
            # With the version ("agent_2@7") and without. No temperature is like 0: models in this
            # process take one for the other.
            for adapter in {call.adapter, name or call.adapter}:
                key = (context, adapter, call.seed, call.temperature or 0.0)
                self._replies.setdefault(key, deque()).append(reply)

    def __call__(self, request: Request) -> Completion:
        for context in _contexts(request):
            key = (context, request.adapter, request.seed, request.temperature or 0.0)
            if replies := self._replies.get(key):
                replies.rotate(-1)
                return replies[-1]
        what = "a decision" if request.chat is None else "a chat"
        raise ModelError(
            f"none of the {self._count} recorded calls matches this request ({what}, adapter "
            f"{request.adapter!r}, seed {request.seed}, temperature {request.temperature}). Record "
            "the call, or send a request that was recorded"
        )


def _traces(recorded: Recorded) -> Iterator[Trace]:
    if isinstance(recorded, Trace):
        yield recorded
    elif isinstance(recorded, Episode):
        yield from (step.trace for step in recorded.steps)
    else:
        for one in recorded:
            if not isinstance(one, Trace | Episode):
                raise ConfigError(f"expected traces or episodes, got a {type(one).__name__}")
            yield from _traces(one)


def _bare(decision: Decision) -> Decision:
    """The decision as a node gives it to a model, without its screenshot: not every trace holds
    that, and only the model decides what its prompt leaves out."""
    observation = decision.observation
    if observation.png is not None:
        observation = msgspec.structs.replace(observation, png=None)
    return msgspec.structs.replace(decision, observation=observation, dropped=None)


def _contexts(request: Request) -> list[object]:
    """The contexts under which a request may be recorded. A request with tools has two prompts: one
    with the tools in the text, and one for tools that pass through the model's interface."""
    if request.decision is not None and request.chat is None:
        return [_bare(request.decision)]
    chat = as_chat(msgspec.structs.replace(request, tools=()))
    return [transcript(as_chat(request)), transcript(chat, request.tools)]
