"""OpenTelemetry spans for runs, following the semantic conventions for generative AI.

    from swarm_ui.engine.telemetry import Spans

    trace = await team.run(screen, on_event=Spans(name="phone-team"))

In episodes, ``GraphPolicy(team, listen=Spans)`` makes the spans of every decision; see
:mod:`swarm_ui.rollout.spans` for those of the episodes.

Needs ``pip install 'swarm-ui[telemetry]'`` and a configured tracer provider; without one the spans
are discarded. Prompts, screens and replies leave the process only with ``content=True``.

A run is a span ``invoke_workflow {name}``; every call is a span ``invoke_agent {node}`` in it. The
calls of a nested graph are inside the span of its node, and so are the turns of a conversation
(``chat {model}``, of the kind ``CLIENT``) and its calls of tools (``execute_tool {tool}``). The
span of a call has links to the spans of the messages it received, so the spans also show the data
flow. Calls that are read from a record or a store are not executed and have no span. A run that
waited for a person continues its trace when it is resumed, also in another process.

Conventions: https://github.com/open-telemetry/semantic-conventions-genai (all of ``gen_ai.*`` is
in development there). Other attributes are named ``swarm_ui.*``: ``run``, ``seed``, ``rounds``,
``skipped`` (ids of calls that got no message and were not made) and ``undecided`` (why there is no
decision) of a run; ``id``, ``round``, ``heard`` (ids of the messages it received), ``adapter``,
``logprob`` and ``action_type`` of a call.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from swarm_ui.engine.events import (
    Aborted,
    CallFinished,
    CallStarted,
    Event,
    Failed,
    Finished,
    Skipped,
    Token,
)
from swarm_ui.errors import ConfigError, Failure, MissingExtra, TraceError
from swarm_ui.json_text import encodable
from swarm_ui.message import Message
from swarm_ui.model import ChatMessage
from swarm_ui.prompts import chat_of, written_calls
from swarm_ui.trace.records import Call, Trace

if TYPE_CHECKING:
    from opentelemetry.trace import Span, TracerProvider

_Value = str | int | float | bool | list[str]

_CANCELLED = Failure(kind="cancelled", message="cancelled")


class Spans:
    """Creates the spans of one run from its events; create a new object for every run.

    Pass it as a listener: ``team.run(screen, on_event=Spans())``. To combine it with other
    listeners, use :func:`swarm_ui.engine.events.Listeners`. As with any listener, models that can
    stream will do so.

    Raises:
        MissingExtra: OpenTelemetry is not installed.
        ConfigError: (when called) it already follows another run.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        name: str = "team",
        content: bool = False,
    ) -> None:
        """
        Args:
            tracer_provider: receives the spans; ``None``: the global provider of the process.
            name: name of the graph; use the same name for all its runs, since it groups the spans.
            content: whether spans carry the goal, prompts, replies and the decision.
        """
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise MissingExtra("telemetry", "making spans", "opentelemetry") from error
        self._otel = trace
        self._tracer = trace.get_tracer("swarm_ui", tracer_provider=tracer_provider)
        self._name, self._content = name, content
        self._root: Span | None = None
        self._run = ""
        self._second: float = 0.0  # of the event loop's clock, when the run began
        self._nanosecond = 0  # of the wall clock, then
        self._over = self._refused = False
        self._spans: dict[str, Span] = {}
        self._begun: dict[str, float] = {}
        self._streamed: set[str] = set()
        self._turns: set[str] = set()
        self._failures: dict[str, Failure] = {}
        self._skipped: list[str] = []

    @property
    def traceparent(self) -> str:
        """The W3C trace context of the run; empty before its first event."""
        if self._root is None:
            return ""
        span = self._root.get_span_context()
        return f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"

    def __call__(self, event: Event) -> None:
        """Handle an event. Must be called in the event loop."""
        if self._root is None:
            self._root = self._begin(event)
        self._check(event)
        match event:
            case CallStarted():
                self._start(event)
            case Token() if event.id not in self._streamed:
                self._streamed.add(event.id)
                waited = self._now() - self._begun[event.id]
                span = self._spans[event.id]
                span.set_attribute("gen_ai.response.time_to_first_chunk", waited)
            case Failed():
                self._failures[event.id] = event.error
                self._end_open(f"{event.id}/", self._now())
            case Skipped():
                self._skipped.append(event.id)
            case CallFinished():
                self._end(event.message, event.call)
            case Finished():
                self._finish(event.trace)
            case Aborted():
                self._abort(event)

    # -- the run ------------------------------------------------------------------------------

    def _begin(self, event: Event) -> Span:
        """Start the span of the run, as a child of the span that was current at its start."""
        at = event.at if isinstance(event, CallStarted | Aborted) else 0.0
        self._run = event.run
        self._second = asyncio.get_running_loop().time() - at
        self._nanosecond = time.time_ns() - int(at * 1e9)
        return self._tracer.start_span(
            f"invoke_workflow {self._name}",
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": self._name,
                "swarm_ui.run": event.run,
            },
            start_time=self._nanosecond,
        )

    def _check(self, event: Event) -> None:
        """Raise if the event belongs to another run.

        Events contain the id of their run. If two runs have the same id, their calls collide.
        """
        collides = isinstance(event, CallStarted) and event.id in self._begun
        # A rejected run still sends Aborted before it raises.
        refused = self._refused and isinstance(event, Aborted)
        if self._over or collides or refused or event.run != self._run:
            self._refused = collides and event.run == self._run
            raise ConfigError(
                f"Spans follows one run: it began with run '{self._run}' and received an event of "
                f"run '{event.run}'. Create a new Spans object for every run"
            )

    def _finish(self, trace: Trace) -> None:
        found: dict[str, _Value] = {"swarm_ui.seed": trace.seed, "swarm_ui.rounds": trace.rounds}
        if trace.undecided is not None:
            found["swarm_ui.undecided"] = trace.undecided
        if self._content:
            goal = [ChatMessage("user", trace.observation.goal)]
            found["gen_ai.input.messages"] = _messages(goal)
            if trace.action is not None:
                found["gen_ai.output.messages"] = _answer(trace.action.json())
        self._close(found, self._now())

    def _abort(self, event: Aborted) -> None:
        self._end_open("", event.at)
        assert self._root is not None
        set_failed(self._root, event.error)
        self._close({}, event.at)

    def _close(self, found: dict[str, _Value], at: float) -> None:
        assert self._root is not None
        if self._skipped:
            found["swarm_ui.skipped"] = self._skipped
        self._root.set_attributes(found)
        self._root.end(self._wall(at))
        self._over = True

    # -- a call -------------------------------------------------------------------------------

    def _start(self, event: CallStarted) -> None:
        head = event.id.rpartition("/")[0]
        if head not in self._spans:  # an item of a mapped graph has no span
            head = head.rpartition("/")[0]
        around = self._spans.get(head, self._root)
        assert around is not None
        links = [
            self._otel.Link(self._spans[id].get_span_context(), {"swarm_ui.id": id})
            for id in event.heard
            if id in self._spans
        ]
        self._begun[event.id] = event.at
        operation, key, name = _operation(event)
        if event.model:
            self._turns.add(event.id)
        kind = self._otel.SpanKind
        self._spans[event.id] = self._tracer.start_span(
            f"{operation} {name}",
            context=self._otel.set_span_in_context(around),
            kind=kind.CLIENT if event.model else kind.INTERNAL,
            attributes={
                "gen_ai.operation.name": operation,
                key: name,
                "swarm_ui.id": event.id,
                "swarm_ui.round": event.round,
                "swarm_ui.heard": event.heard,
            },
            links=links,
            start_time=self._wall(event.at),
        )

    def _end(self, message: Message, call: Call) -> None:
        span = self._spans[message.id]
        found = _described(message, call)
        if message.id in self._turns:  # the span has the name that was asked for
            found.pop("gen_ai.request.model", None)
        span.set_attributes(found)
        if self._content and call.prompt:
            span.set_attribute("gen_ai.input.messages", _messages(_turns(call.prompt)))
            span.set_attribute("gen_ai.output.messages", _answer(call.reply))
        if call.error is not None:
            set_failed(span, call.error)
        # The call's own times may come from a record, for example in a replayed nested graph.
        span.end(self._wall(self._now()))

    def _end_open(self, inside: str, at: float) -> None:
        """End the spans of calls that were stopped. ``inside``: the beginning of their ids, which
        the calls of a fallback may have too."""
        for id, span in self._spans.items():
            if not id.startswith(inside):
                continue
            self._begun.pop(id, None)
            if span.is_recording():
                set_failed(span, self._failures.get(id, _CANCELLED))
                span.end(self._wall(at))

    # -- time ---------------------------------------------------------------------------------

    def _now(self) -> float:
        """Seconds since the run began."""
        return asyncio.get_running_loop().time() - self._second

    def _wall(self, seconds: float) -> int:
        return self._nanosecond + int(seconds * 1e9)


def _operation(event: CallStarted) -> tuple[str, str, str]:
    """The operation of a call in the conventions, the attribute that names its object, and the
    name."""
    if event.model:
        return "chat", "gen_ai.request.model", event.model
    if event.tool:
        return "execute_tool", "gen_ai.tool.name", event.tool
    return "invoke_agent", "gen_ai.agent.name", event.node


@contextmanager
def in_trace(traceparent: str) -> Iterator[None]:
    """Continue a trace: the span that a W3C trace context names is the current one in the block."""
    if not traceparent or "opentelemetry.trace" not in sys.modules:
        yield
        return
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers = {"traceparent": traceparent}
    token = context.attach(TraceContextTextMapPropagator().extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def _described(message: Message, call: Call) -> dict[str, _Value]:
    """Attributes of a finished call, without any text of a screen or a model."""
    found: dict[str, _Value] = {}
    if call.prompt or call.model:
        if call.temperature is not None:
            found["gen_ai.request.temperature"] = float(call.temperature)
        found["gen_ai.request.seed"] = call.seed
        if call.model:
            found["gen_ai.request.model"] = found["gen_ai.response.model"] = call.model
    if call.usage.prompt_tokens or call.usage.completion_tokens:
        found["gen_ai.usage.input_tokens"] = call.usage.prompt_tokens
        found["gen_ai.usage.output_tokens"] = call.usage.completion_tokens
    if call.adapter is not None:
        found["swarm_ui.adapter"] = call.adapter
    if call.logprob is not None:
        found["swarm_ui.logprob"] = float(call.logprob)
    if message.action is not None:
        found["swarm_ui.action_type"] = message.action.action_type
    return found


def set_failed(span: Span, failure: Failure) -> None:
    """Set the error status, with the text that is in the trace and the class of the error."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", failure.error or failure.kind)
    span.set_status(Status(StatusCode.ERROR, encodable(str(failure))))


def _turns(prompt: str) -> list[ChatMessage]:
    """A prompt as chat turns; one user turn if it is not a chat or contains pictures."""
    try:
        return list(chat_of(prompt))
    except TraceError:
        return [ChatMessage("user", prompt)]


def _messages(turns: list[ChatMessage]) -> str:
    messages = [
        {"role": turn.role, "parts": [{"type": "text", "content": encodable(_said(turn))}]}
        for turn in turns
    ]
    return msgspec.json.encode(messages).decode()


def _said(turn: ChatMessage) -> str:
    return written_calls(turn.content, turn.calls) if turn.calls else turn.content


def _answer(text: str) -> str:
    part = {"type": "text", "content": encodable(text)}
    # The finish reason is not recorded, but the conventions require the field.
    answer = {"role": "assistant", "parts": [part], "finish_reason": "unknown"}
    return msgspec.json.encode([answer]).decode()
