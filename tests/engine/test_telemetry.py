"""OpenTelemetry spans of runs: how they nest, what they tell and what stays in the process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from swarm_ui import CollabGraph, Completion, Limits, NodeError, Request, RunFailed, Usage
from swarm_ui.nodes import AgentNode, Fallback, MajorityVote, Map, function_node


class Lab:
    """What a program exports that has set a tracer provider."""

    def __init__(self) -> None:
        self.exporter, self.provider = InMemorySpanExporter(), TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """By message id; the run's under ''."""
        found = self.exporter.get_finished_spans()
        named = {str((s.attributes or {}).get("swarm_ui.id", "")): s for s in found}
        assert len(named) == len(found)
        return named

    @property
    def tree(self) -> dict[str, str]:
        """The id of the span around each span."""
        ids = {s.context.span_id: id for id, s in self.spans.items()}
        return {id: ids[s.parent.span_id] for id, s in self.spans.items() if s.parent is not None}


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab = Lab()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", lab.provider)
    return lab


class Phone(FixedModel):
    """Has a name, counts tokens, types its reply."""

    name = "phone-8b"

    def __init__(self, reply: str) -> None:
        super().__init__({})
        self.reply, self.prompt = reply, "[user]\nSECRET SCREEN"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        usage = Usage(prompt_tokens=12, completion_tokens=7)
        return [
            Completion(
                text=self.reply, prompt=self.prompt, usage=usage, logprob=-0.25,
                adapter=None if r.adapter is None else f"{r.adapter}@3", model="phone-8b-0101",
            )
            for r in requests
        ]  # fmt: skip


def test_calls_are_inside_the_run_and_inside_the_calls_around_them(lab: Lab) -> None:
    inner = CollabGraph([Sleeper("x", 1), Sleeper("y", 1)], [("x", "y")], name="inner")
    graph = CollabGraph([Sleeper("a", 1), inner, Sleeper("b")], [("inner", "b")], "b", name="all")
    with lab.provider.get_tracer("mine").start_as_current_span("mine"):
        in_virtual_time(graph.run(BLANK, run_id="r", seed=7))
    mine = next(s for s in lab.exporter.get_finished_spans() if s.name == "mine")
    spans = [s for s in lab.exporter.get_finished_spans() if s is not mine]
    run = next(s for s in spans if s.name == "invoke_workflow all")
    assert run.parent is not None and run.parent.span_id == mine.context.span_id
    assert dict(run.attributes or {}) == {
        "gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "all",
        "swarm_ui.run": "r", "swarm_ui.seed": 7, "swarm_ui.rounds": 1,
    }  # fmt: skip
    around = {s.context.span_id: s.name for s in spans}
    assert {s.name: around.get(s.parent.span_id) for s in spans if s.parent and s is not run} == {
        "invoke_agent a": "invoke_workflow all", "invoke_agent inner": "invoke_workflow all",
        "invoke_agent inner/x": "invoke_agent inner", "invoke_agent inner/y": "invoke_agent inner",
        "invoke_agent b": "invoke_workflow all",
    }  # fmt: skip
    heard = next(s for s in spans if s.name == "invoke_agent inner/y").attributes or {}
    assert heard["swarm_ui.heard"] == ("inner:0/x:0",)


def test_parts_of_fallbacks_and_items_of_maps(lab: Lab) -> None:
    @function_node
    def items(inbox: object, context: object) -> str:
        return '["a", "b"]'

    node = Fallback(Sleeper("bad", fails=ValueError("no")), Sleeper("spare"))
    graph = CollabGraph([items]) >> Map("each", CollabGraph([Sleeper("w", 1)])) >> node
    in_virtual_time(graph.run(BLANK))
    assert lab.tree == {
        "items:0": "", "each:0": "", "each:0/item:0": "each:0", "each:0/item:1": "each:0",
        "each:0/item:0/w:0": "each:0", "each:0/item:1/w:0": "each:0",
        "bad:0": "", "bad:0/bad:0": "bad:0", "bad:0/spare:1": "bad:0",
    }  # fmt: skip
    failed = [id for id, s in lab.spans.items() if s.status.status_code is StatusCode.ERROR]
    assert failed == ["bad:0/bad:0"]


def test_calls_of_models_have_the_attributes_of_the_conventions(lab: Lab) -> None:
    model = Phone(click(1))
    agents = [AgentNode("a", model, adapter="ui", temperature=0.5), MajorityVote()]
    CollabGraph(agents).run_sync(SCREEN, seed=3)
    found = dict(lab.spans["a:0"].attributes or {})
    assert found.pop("gen_ai.request.seed") is not None
    assert found == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "swarm_ui.id": "a:0",
        "swarm_ui.round": 0, "swarm_ui.heard": (), "swarm_ui.adapter": "ui@3",
        "swarm_ui.logprob": -0.25, "swarm_ui.action_type": "click",
        "gen_ai.request.temperature": 0.5, "gen_ai.response.model": "phone-8b-0101",
        "gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 7,
    }  # fmt: skip


def test_what_was_seen_and_said_stays_here(lab: Lab) -> None:
    CollabGraph([AgentNode("a", Phone(click(1)))]).run_sync(SCREEN)
    told = "".join(s.to_json() for s in lab.exporter.get_finished_spans())
    assert "SECRET" not in told and SCREEN.goal not in told and "index" not in told


def test_failures_and_ends_have_an_error_status(lab: Lab) -> None:
    nodes = [Sleeper("a", 1, fails=ValueError("no")), Sleeper("b", 9), Sleeper("end")]
    graph = CollabGraph(nodes, [("a", "end"), ("b", "end")])
    in_virtual_time(graph.run(BLANK, limits=Limits(timeout=5)))
    status = {id: (s.attributes or {}).get("error.type") for id, s in lab.spans.items()}
    assert status == {"": None, "a:0": "ValueError", "b:0": "timeout", "end:0": None}
    lab.exporter.clear()
    with pytest.raises(NodeError):
        in_virtual_time(graph.run(BLANK, limits=Limits(on_failure="abort")))
    status = {id: (s.attributes or {}).get("error.type") for id, s in lab.spans.items()}
    assert status == {"": "NodeError", "a:0": "NodeError", "b:0": "cancelled"}
    lab.exporter.clear()
    with pytest.raises(RunFailed):
        CollabGraph([Sleeper("a", fails=ValueError("no"))]).run_sync(BLANK)
    assert lab.spans[""].status.status_code is StatusCode.ERROR


async def test_concurrent_runs_stay_apart(lab: Lab) -> None:
    graph = CollabGraph([Sleeper("a", 0.001), Sleeper("b", 0.001)], [("a", "b")])
    await asyncio.gather(*[graph.run(BLANK, run_id=str(k)) for k in range(20)])
    found = lab.exporter.get_finished_spans()
    assert len(found) == 60 and len({s.context.trace_id for s in found}) == 20


def test_replayed_calls_have_no_span(lab: Lab) -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    trace = graph.run_sync(BLANK)
    lab.exporter.clear()
    assert in_virtual_time(graph.replay(trace)) == trace
    assert list(lab.spans) == [""]


def test_without_a_provider_there_are_no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)
    seen: list[object] = []

    @function_node
    def node(inbox: object, context: object) -> str:
        seen.append(otel.get_current_span().get_span_context().is_valid)
        return "x"

    assert CollabGraph([node]).run_sync(BLANK).output == "x" and seen == [False]
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    assert CollabGraph([node]).run_sync(BLANK).output == "x"
