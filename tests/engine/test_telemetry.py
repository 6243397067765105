"""OpenTelemetry spans of runs: how they nest, and what stays in the process."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from swarm_ui import CollabGraph, Completion, Limits, NodeError, Request, RunPaused
from swarm_ui.nodes import AgentNode, Ask, Fallback, Map, function_node


class Lab(InMemorySpanExporter):
    """What a program exports that has set a tracer provider."""

    def tree(self) -> dict[str, str]:
        """The id of the call around each call; the run's is ''."""
        found = self.get_finished_spans()
        ids = {s.context.span_id: str((s.attributes or {}).get("swarm_ui.id", "")) for s in found}
        tree = {ids[s.context.span_id]: ids.get(s.parent.span_id) for s in found if s.parent}
        assert len(ids) == len(found)
        return {id: parent for id, parent in tree.items() if parent is not None}

    def errors(self) -> dict[str, object]:
        """The type of the error of each span, by its name; spans without one are left out."""
        found = {s.name: (s.attributes or {}).get("error.type") for s in self.get_finished_spans()}
        self.clear()
        return {name: error for name, error in found.items() if error is not None}


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    lab, provider = Lab(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(lab))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", provider)
    return lab


class Phone(FixedModel):
    name = "phone-8b"

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        return [Completion(text=click(1), prompt="[user]\nSECRET SCREEN") for _ in requests]


def test_calls_are_inside_the_run_and_inside_the_calls_around_them(lab: Lab) -> None:
    @function_node
    def items(inbox: object, context: object) -> str:
        return '["a", "b"]'

    inner = CollabGraph([Sleeper("x", 1), Sleeper("y", 1)], [("x", "y")], name="inner")
    node = Fallback(Sleeper("bad", fails=ValueError("no")), Sleeper("spare"))
    graph = CollabGraph([items]) >> Map("each", CollabGraph([Sleeper("w", 1)])) >> inner >> node
    with otel.get_tracer("mine").start_as_current_span("mine") as mine:
        in_virtual_time(graph.named("all").run(BLANK, run_id="r"))
    run = next(s for s in lab.get_finished_spans() if s.name == "invoke_workflow all")
    assert run.parent is not None and run.parent.span_id == mine.get_span_context().span_id
    assert (run.attributes or {})["swarm_ui.run"] == "r"
    tree = lab.tree()
    assert tree.pop("") == ""  # the program's own span has no id either
    assert tree == {
        "items:0": "", "each:0": "", "each:0/item:0": "each:0", "each:0/item:1": "each:0",
        "each:0/item:0/w:0": "each:0", "each:0/item:1/w:0": "each:0",
        "x:0": "", "y:0": "", "bad:0": "", "bad:0/bad:0": "bad:0", "bad:0/spare:1": "bad:0",
    }  # fmt: skip
    assert lab.errors() == {"invoke_agent bad/bad": "ValueError"}


def test_what_was_seen_and_said_stays_here(lab: Lab) -> None:
    CollabGraph([AgentNode("a", Phone({}))]).run_sync(SCREEN)
    told = "".join(s.to_json() for s in lab.get_finished_spans())
    assert "invoke_agent a" in told
    assert "SECRET" not in told and SCREEN.goal not in told and "index" not in told


def test_failures_and_ends_have_an_error_status(lab: Lab) -> None:
    nodes = [Sleeper("a", 1, fails=ValueError("no \ud83d")), Sleeper("b", 9), Sleeper("end")]
    graph = CollabGraph(nodes, [("a", "end"), ("b", "end")], name="g")
    in_virtual_time(graph.run(BLANK, limits=Limits(timeout=5)))
    assert lab.errors() == {"invoke_agent a": "ValueError", "invoke_agent b": "timeout"}
    with pytest.raises(NodeError):
        in_virtual_time(graph.run(BLANK, limits=Limits(on_failure="abort")))
    assert lab.errors() == {
        "invoke_workflow g": "NodeError", "invoke_agent a": "ValueError",
        "invoke_agent b": "cancelled",
    }  # fmt: skip
    with pytest.raises(RunPaused):
        CollabGraph([Ask("person", "Go on?")]).run_sync(BLANK)
    assert lab.errors() == {"invoke_workflow team": "RunPaused"}


def test_replayed_calls_have_no_span(lab: Lab) -> None:
    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")])
    trace = graph.run_sync(BLANK)
    lab.clear()
    assert in_virtual_time(graph.replay(trace)) == trace
    assert len(lab.get_finished_spans()) == 1
