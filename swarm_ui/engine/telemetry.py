"""OpenTelemetry spans of runs, by the semantic conventions for generative AI.

A program that has set a tracer provider (``opentelemetry.trace.set_tracer_provider``) gets spans;
in all others nothing is imported or done. A run is a span ``invoke_workflow {graph}`` in the span
that is current where it starts. In it, every call is a span ``invoke_agent {node}``, a turn of a
conversation ``chat {model}`` (of the kind ``CLIENT``), a call of a tool ``execute_tool {tool}``.
Calls that are taken from a record have none. A run that waited for a person continues its trace
when it is resumed, also in another process.

Prompts, screens and replies leave the process only if the environment variable
``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` is ``true``.

Conventions: https://github.com/open-telemetry/semantic-conventions-genai. Other attributes are
named ``swarm_ui.*``: ``run``, ``seed``, ``rounds``, ``skipped`` (ids) and ``undecided`` of a run;
``id``, ``round``, ``heard`` (ids), ``adapter``, ``logprob`` and ``action_type`` of a call.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swarm_ui.engine.record import Unanswered
from swarm_ui.errors import Failure, TraceError
from swarm_ui.json_text import encodable
from swarm_ui.model import ChatMessage
from swarm_ui.prompts import chat_of, written_calls
from swarm_ui.trace.records import Call, Trace

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

_NAMES = {
    "invoke_workflow": "gen_ai.workflow.name",
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
}
"""The attribute that names the object of each operation."""


def tracer() -> Tracer | None:
    """The tracer of this library; ``None`` in a program that has set no provider."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    found: Tracer = trace.get_tracer("swarm_ui")
    return found


@contextmanager
def run_span(name: str, run: str, seed: int) -> Iterator[Span | None]:
    """A run as a span; ``None`` without a tracer."""
    found = tracer()
    if found is None:
        yield None
        return
    with span(found, "invoke_workflow", name, run=run, seed=seed) as made:
        yield made


@contextmanager
def span(tracer: Tracer, operation: str, name: str, **attributes: Any) -> Iterator[Span]:
    """The block as a span in the current one; an exception sets the error status."""
    from opentelemetry.trace import SpanKind

    found = {f"swarm_ui.{key}": value for key, value in attributes.items()}
    with tracer.start_as_current_span(
        f"{operation} {name}",
        kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": operation, _NAMES[operation]: name, **found},
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield made
        except Unanswered:
            raise
        except BaseException as error:
            set_failed(made, Failure.of(error))
            raise


def traceparent(span: Span | None) -> str:
    """The W3C trace context of a span."""
    if span is None:
        return ""
    own = span.get_span_context()
    return f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"


@contextmanager
def in_trace(traceparent: str) -> Iterator[None]:
    """Continue a trace: the span that a W3C trace context names is the current one in the block."""
    if not traceparent or tracer() is None:
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


def describe_run(span: Span, trace: Trace) -> None:
    """Set the attributes of a finished run."""
    span.set_attribute("swarm_ui.seed", trace.seed)
    span.set_attribute("swarm_ui.rounds", trace.rounds)
    if trace.skipped:
        span.set_attribute("swarm_ui.skipped", trace.skipped)
    if trace.undecided is not None:
        span.set_attribute("swarm_ui.undecided", trace.undecided)
    if _content():
        goal = [ChatMessage("user", trace.observation.goal)]
        span.set_attribute("gen_ai.input.messages", _messages(goal))
        if trace.action is not None:
            span.set_attribute("gen_ai.output.messages", _answer(trace.action.json()))


def describe(span: Span, call: Call) -> None:
    """Set the attributes of a finished call."""
    found: dict[str, Any] = {}
    made = call.completion
    if made is not None:
        found = {
            "swarm_ui.adapter": made.adapter,
            "swarm_ui.logprob": made.logprob,
            "gen_ai.request.temperature": call.temperature,
            "gen_ai.request.seed": call.seed,
            "gen_ai.response.model": made.model or None,
        }
        if made.usage.prompt_tokens or made.usage.completion_tokens:
            found["gen_ai.usage.input_tokens"] = made.usage.prompt_tokens
            found["gen_ai.usage.output_tokens"] = made.usage.completion_tokens
    if call.message.action is not None:
        found["swarm_ui.action_type"] = call.message.action.action_type
    if _content() and call.prompt:
        found["gen_ai.input.messages"] = _messages(_turns(call.prompt))
        found["gen_ai.output.messages"] = _answer(call.reply)
    span.set_attributes({key: value for key, value in found.items() if value is not None})
    if call.error is not None:
        set_failed(span, call.error)


def set_failed(span: Span, failure: Failure) -> None:
    """Set the error status, with the text that is in the trace and the class of the error."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", failure.error or failure.kind)
    span.set_status(Status(StatusCode.ERROR, encodable(str(failure))))


def _content() -> bool:
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "") == "true"


def _turns(prompt: str) -> list[ChatMessage]:
    """A prompt as chat turns; one user turn if it is not a chat or contains pictures."""
    try:
        return list(chat_of(prompt))
    except TraceError:
        return [ChatMessage("user", prompt)]


def _messages(turns: list[ChatMessage]) -> str:
    said = [(t.role, written_calls(t.content, t.calls) if t.calls else t.content) for t in turns]
    return json.dumps(
        [
            {"role": role, "parts": [{"type": "text", "content": encodable(text)}]}
            for role, text in said
        ]
    )


def _answer(text: str) -> str:
    part = {"type": "text", "content": encodable(text)}
    # The finish reason is not recorded, but the conventions require the field.
    return json.dumps([{"role": "assistant", "parts": [part], "finish_reason": "unknown"}])
