"""OpenTelemetry spans of episodes, which join the trace of the process that asked for them.

If a span is current when a stream of episodes begins, every episode is a span ``play_episode
{task}`` in it, also in a worker on another machine: the W3C ``traceparent`` is sent with the jobs.
The spans of decisions (:class:`swarm_ui.engine.telemetry.Spans`) are then inside the span of their
episode. Each process needs a tracer provider of its own; in a worker, the function of ``PerWorker``
that makes the policy can set it.

Attributes: ``swarm_ui.task``, ``seed``, ``environment``, ``steps``, ``success`` and, in a worker,
``swarm_ui.worker`` and ``host.name``. A fault sets the error status and ``error.type``.

Nothing is imported or done in a program that does not use OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from swarm_ui.engine.telemetry import set_failed
from swarm_ui.trace.records import Episode

_IN_USE = "opentelemetry.trace"


class SpanParent(msgspec.Struct, frozen=True):
    """The parent span of the episodes of a worker."""

    headers: dict[str, str] = {}
    """W3C headers: ``traceparent`` and maybe ``tracestate``; empty: there is none."""
    worker: int = -1
    """-1: this is the process that asked for the episodes."""
    host: str = ""


HERE = SpanParent()
"""The span that is current in this process."""


def current_headers() -> dict[str, str]:
    """The current span as W3C headers; empty if there is none."""
    headers: dict[str, str] = {}
    if _IN_USE in sys.modules:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    return headers


async def in_span(
    parent: SpanParent, task: str, seed: int, play: Callable[[], Awaitable[Episode]]
) -> Episode:
    """Play an episode, as a span if there is a parent."""
    if not parent.headers and (parent.worker >= 0 or _IN_USE not in sys.modules):
        return await play()
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = None
    if parent.headers:
        context = TraceContextTextMapPropagator().extract(parent.headers)
    elif not trace.get_current_span().get_span_context().is_valid:
        return await play()
    attributes: Mapping[str, str | int] = {"swarm_ui.task": task, "swarm_ui.seed": seed}
    if parent.worker >= 0:
        attributes = {**attributes, "swarm_ui.worker": parent.worker, "host.name": parent.host}
    tracer = trace.get_tracer("swarm_ui")
    with tracer.start_as_current_span(
        f"play_episode {task}", context=context, attributes=attributes
    ) as span:
        episode = await play()
        span.set_attribute("swarm_ui.environment", episode.environment)
        span.set_attribute("swarm_ui.steps", len(episode.steps))
        if episode.success is not None:
            span.set_attribute("swarm_ui.success", episode.success)
        if episode.fault is not None:
            set_failed(span, episode.fault)
        return episode
