"""OpenTelemetry spans of episodes, which join the trace of the process that asked for them.

If a span is current when a stream of episodes begins, every episode is a span ``play_episode
{task}`` in it, also in a worker on another machine: the W3C ``traceparent`` is sent with the jobs.
Each process needs a tracer provider of its own; in a worker, the function of ``PerWorker`` that
makes the policy can set it.

Attributes: ``swarm_ui.task``, ``seed``, ``environment``, ``steps`` and ``success``. A fault sets
the error status and ``error.type``. Nothing is imported in a program that does not use
OpenTelemetry.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

from swarm_ui.engine.telemetry import set_failed
from swarm_ui.trace.records import Episode


def current_headers() -> dict[str, str]:
    """The current span as W3C headers; empty if there is none."""
    headers: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(headers)
    return headers


async def in_span(
    headers: dict[str, str], task: str, seed: int, play: Callable[[], Awaitable[Episode]]
) -> Episode:
    """Play an episode, as a span if ``headers`` name the span that it belongs to."""
    if not headers:
        return await play()
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    with trace.get_tracer("swarm_ui").start_as_current_span(
        f"play_episode {task}",
        context=TraceContextTextMapPropagator().extract(headers),
        attributes={"swarm_ui.task": task, "swarm_ui.seed": seed},
    ) as span:
        episode = await play()
        span.set_attribute("swarm_ui.environment", episode.environment)
        span.set_attribute("swarm_ui.steps", len(episode.steps))
        if episode.success is not None:
            span.set_attribute("swarm_ui.success", episode.success)
        if episode.fault is not None:
            set_failed(span, episode.fault)
        return episode
