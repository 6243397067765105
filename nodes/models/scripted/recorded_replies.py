"""Replies out of recorded traces, found by what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import Completion, Decision, Request
from swarm_ui.prompts import as_chat, transcript
from swarm_ui.trace.records import Call, Episode, Trace

Recorded = Trace | Episode | Iterable[Trace | Episode]

_Asked = tuple[object, str | None, int, float]
"""Context, adapter, seed, temperature."""


@dataclass(slots=True)
class _Replies:
    """What was replied to one and the same request, in the order recorded."""

    calls: list[Call] = field(default_factory=list)
    given: int = 0

    def next(self) -> Call:
        call = self.calls[self.given % len(self.calls)]
        self.given += 1
        return call


@dataclass(frozen=True, slots=True)
class _Known:
    """A recorded call, to be named where nothing fits."""

    run: str
    call: Call
    decision: Decision | None


class RecordedReplies:
    """Finds the recorded call that asked the same: context, adapter, seed and temperature.

    The order in which requests arrive does not matter. A request that was recorded more than once
    gets the replies in the order recorded, and then from the first one again.
    """

    def __init__(self, recorded: Recorded) -> None:
        """Raises ``ConfigError`` if nothing recorded in there was said by a model."""
        self._known: list[_Known] = []
        self._replies: dict[_Asked, _Replies] = {}
        for trace in _traces(recorded):
            for call in trace.calls:
                self._learn(trace, call)
        if not self._replies:
            raise ConfigError(
                "expected a trace, an episode or some of them with at least one call of a model, "
                f"got {len(self._known)} calls without a prompt"
            )

    def __call__(self, request: Request) -> Completion:
        """The recorded reply.

        Raises:
            ModelError: nothing like this was recorded; names the closest call and what differs.
        """
        context = _context(request)
        found = self._replies.get((context, request.adapter, request.seed, request.temperature))
        if found is None:
            raise ModelError(self._unknown(request, context))
        call = found.next()
        return Completion(
            text=call.reply,
            prompt=call.prompt,
            usage=call.usage,
            logprob=call.logprob,
            model=call.model,
            adapter=call.adapter,
        )

    def _learn(self, trace: Trace, call: Call) -> None:
        decision = _decision(trace, call)
        self._known.append(_Known(trace.run, call, decision))
        if not call.prompt:
            return
        contexts: list[object] = [call.prompt]
        if decision is not None:
            contexts.append(_unpictured(decision))
        for context in contexts:
            for adapter in _names(call.adapter):
                asked = (context, adapter, call.seed, call.temperature)
                self._replies.setdefault(asked, _Replies()).calls.append(call)

    def _unknown(self, request: Request, context: object) -> str:
        closest, differs = min(
            ((known, _differences(known, request, context)) for known in self._known),
            key=lambda pair: pair[1][0],
        )
        call = closest.call
        failed = f" (that call failed: {call.error})" if call.error else ""
        return (
            f"no recorded call asked this; the closest of {len(self._known)} is '{call.message}' "
            f"of run {closest.run}, which differs in {'; '.join(differs[1])}{failed}. "
            "Record the call, or ask what was recorded"
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


def _decision(trace: Trace, call: Call) -> Decision | None:
    """The context of a call; ``None`` where it heard what the trace does not hold."""
    try:
        return trace.decision(call)
    except KeyError:
        return None


def _unpictured(decision: Decision) -> Decision:
    """Without the screenshot, which not every trace keeps."""
    if decision.observation.png is None:
        return decision
    observation = msgspec.structs.replace(decision.observation, png=None)
    return msgspec.structs.replace(decision, observation=observation)


def _context(request: Request) -> object:
    if request.decision is not None and request.chat is None:
        return _unpictured(request.decision)
    return transcript(as_chat(request))


def _names(adapter: str | None) -> set[str | None]:
    """Names a request may have asked for: a version answers for its adapter, ``"agent_2@7"``."""
    if adapter is None:
        return {None}
    return {adapter, adapter.rpartition("@")[0] or adapter}


def _differences(known: _Known, request: Request, context: object) -> tuple[int, list[str]]:
    """How far a recorded call is from a request, and in what."""
    call, far = known.call, 0
    words: list[str] = []
    if isinstance(context, Decision):
        far, words = _contexts(known.decision, context)
    elif context != call.prompt:
        asked = str(context)
        pairs = enumerate(zip(asked, call.prompt, strict=False))
        same = next((k for k, (a, b) in pairs if a != b), min(len(asked), len(call.prompt)))
        far = 1000 + len(asked) - same
        words.append(
            f"the prompt from character {same} on, recorded {call.prompt[same : same + 40]!r}, "
            f"asked {asked[same : same + 40]!r}"
        )
    settings: tuple[tuple[str, object, object, bool], ...] = (
        ("adapter", call.adapter, request.adapter, request.adapter in _names(call.adapter)),
        ("seed", call.seed, request.seed, call.seed == request.seed),
        ("temperature", call.temperature, request.temperature,
         call.temperature == request.temperature),
    )  # fmt: skip
    for name, recorded, wanted, fits in settings:
        if not fits:
            far += 10
            words.append(f"{name}, recorded {recorded!r}, asked {wanted!r}")
    if not call.prompt:
        far += 5
        words.append("having no reply of a model")
    return far, words


def _contexts(recorded: Decision | None, asked: Decision) -> tuple[int, list[str]]:
    if recorded is None:
        return 10_000, ["a context that its trace does not hold whole"]
    words = [
        f"observation.{name}"
        for name in asked.observation.__struct_fields__
        if name != "png" and getattr(recorded.observation, name) != getattr(asked.observation, name)
    ]
    far = 1000 * len(words)
    if recorded.heard != asked.heard:
        pairs = zip(recorded.heard, asked.heard, strict=False)
        same = sum(1 for a, b in pairs if a == b)
        far += 100 * (max(len(recorded.heard), len(asked.heard)) - same)
        whom = ", ".join(f"'{heard.sender}:{heard.round}'" for heard in asked.heard) or "nobody"
        words.append(f"what was heard (asked after hearing {whom})")
    return far, words
