"""OpenTelemetry spans of episodes: in the trace of the driver, also from other processes."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest
from local_ray import local_ray
from mortal_worlds import REFUSES, MortalWorld
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from traced_policies import traced, traced_into

from swarm_ui import EnvironmentFault, GraphPolicy, Observation
from swarm_ui.rollout import LocalWorker, PerWorker, Rollouts, Work, ray_rollouts, rollout_many


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Receives the spans of this process."""
    found, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return found


async def play(rollouts: Rollouts, policy: PerWorker[GraphPolicy] | GraphPolicy) -> None:
    async with rollouts:
        with trace.get_tracer("driver").start_as_current_span("evaluation"):
            await rollout_many(rollouts, policy, [("count", 0), ("count", 1)])


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def test_episodes_are_spans_in_the_current_one(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    world = partial(MortalWorld, str(tmp_path))
    asyncio.run(play(Rollouts([LocalWorker(world, slots=2)]), traced()))
    (driver,) = named(exporter, "evaluation")
    episodes = named(exporter, "play_episode count")
    assert [e.parent and e.parent.span_id for e in episodes] == [driver.context.span_id] * 2
    found = sorted((e.attributes or {})["swarm_ui.seed"] for e in episodes)  # type: ignore[type-var]
    assert found == [0, 1]
    decisions = named(exporter, "invoke_workflow clicker")
    assert len(decisions) == 3, "one click, and two"
    inside = {e.context.span_id for e in episodes}
    assert {d.parent and d.parent.span_id for d in decisions} == inside


def test_a_worker_joins_the_trace_that_is_sent_with_the_jobs(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    work = Work(policy=traced(), parent=header)

    async def main() -> None:
        worker = LocalWorker(partial(MortalWorld, str(tmp_path)))
        await worker.play(("count", 1), work)
        await worker.close()

    asyncio.run(main())
    (episode,) = named(exporter, "play_episode count")
    assert episode.parent is not None
    assert f"{episode.parent.trace_id:032x}" == header.split("-")[1]
    assert f"{episode.parent.span_id:016x}" == header.split("-")[2]
    traces = {span.context.trace_id for span in exporter.get_finished_spans()}
    assert len(traces) == 1, "decisions and calls too"


class Broken(MortalWorld):
    """Breaks at the first step."""

    async def reset(self, *, task: str, seed: int) -> Observation:
        raise EnvironmentFault("no emulator \ud83d")


def test_a_fault_is_an_error_and_an_exception_is_recorded(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    world = partial(Broken, str(tmp_path))
    asyncio.run(play(Rollouts([LocalWorker(world, retries=0)]), traced()))
    for span in named(exporter, "play_episode count"):
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})["error.type"] == "EnvironmentFault"

    async def refused() -> None:
        async with Rollouts([LocalWorker(partial(MortalWorld, str(tmp_path)))]) as rollouts:
            with trace.get_tracer("driver").start_as_current_span("evaluation"):
                await rollout_many(rollouts, traced(), [("count", REFUSES)])

    exporter.clear()
    with pytest.raises(Exception, match="no such task"):
        asyncio.run(refused())
    (span,) = named(exporter, "play_episode count")
    assert span.status.status_code is StatusCode.ERROR


@pytest.mark.ray
@pytest.mark.slow
def test_spans_of_ray_workers_are_in_the_trace_of_the_driver(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    with local_ray(cpus=2):
        rollouts = ray_rollouts(partial(MortalWorld, str(tmp_path)), workers=2)
        asyncio.run(play(rollouts, PerWorker(partial(traced_into, str(tmp_path)))))
    (driver,) = named(exporter, "evaluation")
    lines = (tmp_path / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    spans = [json.loads(line) for line in lines]
    ours = f"0x{driver.context.trace_id:032x}"
    assert {span["context"]["trace_id"] for span in spans} == {ours}
    episodes = [span for span in spans if span["name"] == "play_episode count"]
    assert {e["parent_id"] for e in episodes} == {f"0x{driver.context.span_id:016x}"}
