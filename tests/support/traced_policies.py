"""Policies whose decisions are spans, also in the processes of workers."""

from __future__ import annotations

from pathlib import Path

from mortal_worlds import Spender
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from swarm_ui import CollabGraph, GraphPolicy


def traced() -> GraphPolicy:
    return GraphPolicy(CollabGraph.solo(Spender()).named("clicker"))


def traced_into(folder: str) -> GraphPolicy:
    """The policy of a worker, whose process writes its spans to files."""
    provider = TracerProvider()
    file = (Path(folder) / "spans.jsonl").open("a", encoding="utf-8", buffering=1)
    console = ConsoleSpanExporter(out=file, formatter=lambda s: s.to_json(indent=None) + "\n")
    provider.add_span_processor(SimpleSpanProcessor(console))
    trace.set_tracer_provider(provider)
    return traced()
