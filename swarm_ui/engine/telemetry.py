"""OpenTelemetry spans of runs and episodes, by the semantic conventions for generative AI.

A program that has set a tracer provider (``opentelemetry.trace.set_tracer_provider``) gets spans;
in all others nothing is imported or done. A run is a span ``invoke_workflow {graph}`` in the span
that is current where it starts. In it, every call is a span ``invoke_agent {node}``, a turn of a
conversation ``chat {model}`` (of the kind ``CLIENT``), a call of a tool ``execute_tool {tool}``.
Calls that are taken from a record have none. A run that waited for a person continues its trace
when it is resumed, and an episode (``play_episode {task}``) belongs to the span that was current
when its stream began, also in another process. Spans hold no prompt, screen or reply.

Conventions: https://github.com/open-telemetry/semantic-conventions-genai. Other attributes are
named ``swarm_ui.*``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from swarm_ui.engine.record import Unanswered
from swarm_ui.errors import Failure
from swarm_ui.json_text import encodable
from swarm_ui.trace.records import Call

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_NAMES = {
    "invoke_workflow": "gen_ai.workflow.name",
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
    "play_episode": "swarm_ui.task",
}
"""The attribute that names the object of each operation."""


def tracer() -> Any:
    """The tracer of this library; ``None`` in a program that has set no provider."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("swarm_ui")


@contextmanager
def span(operation: str, name: str, **attributes: Any) -> Iterator[Span | None]:
    """The block as a span in the current one; ``None`` without a tracer. An exception sets the
    error status. ``attributes``: by their names after ``swarm_ui.``."""
    found = tracer()
    if found is None:
        yield None
        return
    from opentelemetry.trace import SpanKind

    own = {f"swarm_ui.{key}": value for key, value in attributes.items()}
    with found.start_as_current_span(
        f"{operation} {name}",
        kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": operation, _NAMES[operation]: name, **own},
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


def traceparent() -> str:
    """The W3C trace context of the current span; empty if there is none."""
    if tracer() is None:
        return ""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers.get("traceparent", "")


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
            "gen_ai.usage.input_tokens": made.usage.prompt_tokens or None,
            "gen_ai.usage.output_tokens": made.usage.completion_tokens or None,
        }
    if call.message.action is not None:
        found["swarm_ui.action_type"] = call.message.action.action_type
    span.set_attributes({key: value for key, value in found.items() if value is not None})
    if call.error is not None:
        set_failed(span, call.error)


def set_failed(span: Span, failure: Failure) -> None:
    """Set the error status, with the text that is in the trace and the class of the error."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", failure.error or failure.kind)
    span.set_status(Status(StatusCode.ERROR, encodable(str(failure))))
