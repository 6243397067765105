"""OpenTelemetry spans of episodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from mortal_worlds import MortalWorld, clicker
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from swarm_ui import EnvironmentFault, Observation, rollout_many


class Broken(MortalWorld):
    """Breaks at the first step of seed 1."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        if seed == 1:
            raise EnvironmentFault("no emulator \ud83d")
        return await super().reset(task=task, seed=seed)


async def test_an_episode_is_a_span_around_its_decisions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    world = partial(Broken, str(tmp_path))
    with trace.get_tracer("driver").start_as_current_span("evaluation") as driver:
        await rollout_many(world, clicker(), [("count", 0), ("count", 1)], retry=False)
    spans = exporter.get_finished_spans()
    played, broken = sorted(
        (span for span in spans if span.name == "play_episode count"),
        key=lambda span: (span.attributes or {})["swarm_ui.seed"],  # type: ignore[arg-type, return-value]
    )
    for span in (played, broken):
        assert span.parent is not None and span.parent.span_id == driver.get_span_context().span_id
    (decision,) = [span for span in spans if span.name.startswith("invoke_workflow")]
    assert decision.parent is not None and decision.parent.span_id == played.context.span_id
    assert played.status.status_code is StatusCode.UNSET
    assert broken.status.status_code is StatusCode.ERROR
    assert (broken.attributes or {})["error.type"] == "EnvironmentFault"
