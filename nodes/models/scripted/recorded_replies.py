"""Replies from recorded traces, found by the request."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from os.path import commonprefix
from typing import NamedTuple

import msgspec

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.trace.records import Call, Episode, Trace

Recorded = Trace | Episode | Iterable[Trace | Episode]

_Key = tuple[object, str | None, int, float]
"""Context, adapter, seed and temperature of a request. No temperature is like 0: models in this
process take one for the other, and so did earlier versions of this library."""


class _Reply(NamedTuple):
    """A recorded call, and the format of its reply, which only the message holds."""

    call: Call
    prompt_format: str


class _Known(NamedTuple):
    """A recorded call, kept to explain why a request does not match."""

    run: str
    call: Call
    decision: Decision | None


class RecordedReplies:
    """Finds the recorded call with the same context, adapter, seed and temperature.

    The order of the requests does not matter. A request that was recorded more than once gets the
    replies in the recorded order, and then starts again with the first one.
    """

    def __init__(self, recorded: Recorded) -> None:
        """Raise ``ConfigError`` if no recorded call was answered by a model."""
        self._known: list[_Known] = []
        self._replies: dict[_Key, deque[_Reply]] = {}
        for trace in _traces(recorded):
            formats = {message.id: message.prompt_format for message in trace.messages}
            for call in trace.calls:
                self._learn(trace, call, formats.get(call.message, "json"))
        if not self._replies:
            raise ConfigError(
                "expected traces or episodes with at least one call of a model, "
                f"got {len(self._known)} calls without a prompt"
            )

    def __call__(self, request: Request) -> Completion:
        """The recorded reply. Raises ``ModelError`` if no recorded call matches; its text names
        the closest call and how it differs."""
        contexts = _contexts(request)
        keys = [
            (each, request.adapter, request.seed, request.temperature or 0.0) for each in contexts
        ]
        found = next((self._replies[key] for key in keys if key in self._replies), None)
        if found is None:
            raise ModelError(self._unknown(request, contexts[0]))
        call, prompt_format = found[0]
        found.rotate(-1)
        return Completion(
            text=call.reply,
            prompt=call.prompt,
            usage=call.usage,
            logprob=call.logprob,
            model=call.model,
            adapter=call.adapter,
            prompt_format=prompt_format,
            dropped=call.dropped,
            sampled=call.sampled,
        )

    def _learn(self, trace: Trace, call: Call, prompt_format: str) -> None:
        try:
            decision = trace.decision(call)
        except KeyError:  # messages that it received are missing from the trace
            decision = None
        self._known.append(_Known(trace.run, call, decision))
        if not call.prompt:
            return
        contexts: list[object] = [call.prompt]
        if decision is not None:
            contexts.append(_given(decision))
        for context in contexts:
            for adapter in _names(call.adapter):
                key = (context, adapter, call.seed, call.temperature or 0.0)
                self._replies.setdefault(key, deque()).append(_Reply(call, prompt_format))

    def _unknown(self, request: Request, context: object) -> str:
        compared = [(_differences(known, request, context), known) for known in self._known]
        differences, closest = min(compared, key=lambda pair: len(pair[0]))
        call = closest.call
        failed = f" (that call failed: {call.error})" if call.error else ""
        return (
            f"no recorded call matches this request; the closest of {len(self._known)} is "
            f"'{call.message}' of run {closest.run}, which differs in: {'; '.join(differences)}"
            f"{failed}. Record the call, or send a request that was recorded"
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


def _given(decision: Decision) -> Decision:
    """The decision as a node gives it to a model, without its screenshot: not every trace holds
    that, and only the model decides what its prompt leaves out."""
    observation = decision.observation
    if observation.png is None and decision.dropped is None:
        return decision
    bare = msgspec.structs.replace(observation, png=None)
    return msgspec.structs.replace(decision, observation=bare, dropped=None)


def _contexts(request: Request) -> list[object]:
    """The prompts under which a request may be recorded. A request with tools has two: one
    with the tools in the text of the chat, and one for tools that are passed through the model's
    interface."""
    if request.decision is not None and request.chat is None:
        return [_given(request.decision)]
    texts: list[object] = [transcript(as_chat(request))]
    if request.tools and request.chat is not None:
        texts.append(transcript(request.chat, request.tools))
    return texts


def _names(adapter: str | None) -> set[str | None]:
    """The names that match a recorded adapter, with the version (``"agent_2@7"``) and without."""
    if adapter is None:
        return {None}
    return {adapter, adapter.rpartition("@")[0] or adapter}


def _differences(known: _Known, request: Request, context: object) -> list[str]:
    """The differences between a recorded call and a request."""
    call = known.call
    found = []
    if isinstance(context, Decision):
        found = _context_differences(known.decision, context)
    elif context != call.prompt:
        same = len(commonprefix([str(context), call.prompt]))  # noqa: RUF071  # of characters
        part = slice(same, same + 40)
        told = f"(recorded {call.prompt[part]!r}, requested {str(context)[part]!r})"
        found.append(f"the prompt from character {same} on {told}")
    for name in ("adapter", "seed", "temperature"):
        recorded, wanted = getattr(call, name), getattr(request, name)
        same = wanted in _names(recorded) if name == "adapter" else not (recorded or wanted)
        if recorded != wanted and not same:
            found.append(f"{name} (recorded {recorded!r}, requested {wanted!r})")
    if not call.prompt:
        found.append("the reply, which no model gave")
    return found


def _context_differences(recorded: Decision | None, wanted: Decision) -> list[str]:
    if recorded is None:
        return ["the context, which the trace does not hold"]
    found = [
        f"observation.{name}"
        for name in wanted.observation.__struct_fields__
        if getattr(recorded.observation, name) != getattr(wanted.observation, name)
        and name != "png"
    ]
    if recorded.heard != wanted.heard:
        senders = ", ".join(f"'{heard.sender}:{heard.round}'" for heard in wanted.heard) or "none"
        found.append(f"the messages heard (requested with: {senders})")
    return found
