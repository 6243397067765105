"""OpenTelemetry spans of runs, in programs that have set a tracer provider.

A run is a span ``invoke_workflow {graph}`` in the current one; in it, a call is ``invoke_agent
{node}``, a turn of a conversation ``chat {model}``, a call of a tool ``execute_tool {tool}``. Calls
from a record have none. Spans hold no prompt, screen or reply. Names are those of
https://github.com/open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from swarm_ui.errors import Failure
from swarm_ui.json_text import encodable
from swarm_ui.node import Known, Unanswered

_NAMES = {
    "invoke_workflow": "gen_ai.workflow.name",
    "invoke_agent": "gen_ai.agent.name",
    "chat": "gen_ai.request.model",
    "execute_tool": "gen_ai.tool.name",
}
"""The attribute that names the object of each operation."""


def tracer() -> Any:
    """The tracer of this library; ``None`` in a program that has set no provider."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None or isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("swarm_ui")


@contextmanager
def span(operation: str, name: str, **attributes: Any) -> Iterator[None]:
    """The block as a span; an exception sets the error status. ``attributes``: by their names after
    ``swarm_ui.``."""
    found = tracer()
    if found is None:
        yield
        return
    from opentelemetry.trace import SpanKind, Status, StatusCode

    own = {f"swarm_ui.{key}": value for key, value in attributes.items()}
    with found.start_as_current_span(
        f"{operation} {name}",
        kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": operation, _NAMES[operation]: name, **own},
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield
        except Unanswered:
            raise
        except BaseException as error:
            failure = error.failure if isinstance(error, Known) else Failure.of(error)
            made.set_attribute("error.type", failure.error or failure.kind)
            made.set_status(Status(StatusCode.ERROR, encodable(str(failure))))
            raise
