"""OpenTelemetry spans of runs."""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator, Sequence

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from swarm_ui import (
    CollabGraph,
    Completion,
    ConfigError,
    Limits,
    MissingExtra,
    NodeError,
    Request,
    Usage,
)
from swarm_ui.engine.events import Aborted, Event, Listeners, Token
from swarm_ui.engine.telemetry import Spans
from swarm_ui.errors import Failure
from swarm_ui.nodes import AgentNode, MajorityVote


class Lab:
    """A tracer provider that keeps its spans."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        """By message id; the run's under ''."""
        found = self.exporter.get_finished_spans()
        named = {str((s.attributes or {}).get("swarm_ui.id", "")): s for s in found}
        assert len(named) == len(found)
        return named

    @property
    def text(self) -> str:
        """All that leaves the process."""
        return "".join(s.to_json() for s in self.exporter.get_finished_spans())


@pytest.fixture
def lab() -> Lab:
    return Lab()


class Phone(FixedModel):
    """Has a name, counts tokens, types its reply."""

    name = "phone-8b"

    def __init__(self, reply: str, seconds: float = 0.0) -> None:
        super().__init__({})
        self.reply, self.seconds = reply, seconds

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        usage = Usage(prompt_tokens=12, completion_tokens=7)
        return [
            Completion(
                text=self.reply,
                prompt="[system]\nBe brief.\n\n[user]\nSECRET SCREEN",
                usage=usage,
                adapter=None if r.adapter is None else f"{r.adapter}@3",
                logprob=-0.25,
                model="phone-8b-0101",
            )
            for r in requests
        ]

    async def stream(self, request: Request) -> AsyncIterator[str | Completion]:
        for letter in self.reply:
            await asyncio.sleep(self.seconds)
            yield letter
        yield (await self.generate([request]))[0]


def at(span: ReadableSpan, root: ReadableSpan) -> tuple[float, float]:
    """Start and end in seconds since the run began."""
    assert None not in (span.start_time, span.end_time, root.start_time)
    return (
        round((span.start_time - root.start_time) / 1e9, 6),  # type: ignore[operator]
        round((span.end_time - root.start_time) / 1e9, 6),  # type: ignore[operator]
    )


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def attributes(span: ReadableSpan, prefix: str = "") -> dict[str, object]:
    return {k: v for k, v in (span.attributes or {}).items() if k.startswith(prefix)}


DIAMOND = CollabGraph(
    [Sleeper("a", 1), Sleeper("b", 2), Sleeper("c", 4), Sleeper("end", 8)],
    [("a", "b"), ("a", "c"), ("b", "end"), ("c", "end")],
    name="diamond",
)


def test_a_run_is_a_span_and_each_call_one_in_it_with_its_times(lab: Lab) -> None:
    in_virtual_time(
        DIAMOND.run(BLANK, run_id="r7", seed=5, on_event=Spans(lab.provider, name="diamond"))
    )
    spans = lab.spans
    root = spans[""]
    assert root.name == "invoke_workflow diamond" and root.kind is SpanKind.INTERNAL
    assert attributes(root) == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "diamond",
        "swarm_ui.run": "r7",
        "swarm_ui.seed": 5,
        "swarm_ui.rounds": 1,
        "swarm_ui.undecided": "no decision: of 4 answers 0 proposed a valid action, "
        "4 proposed none, 0 failed",
    }
    assert root.parent is None
    assert {id: s.name for id, s in spans.items() if id} == {
        f"{n}:0": f"invoke_agent {n}" for n in ("a", "b", "c", "end")
    }
    assert {parent(s) for id, s in spans.items() if id} == {root.context.span_id}
    assert len({s.context.trace_id for s in spans.values()}) == 1
    assert {id: at(s, root) for id, s in spans.items()} == {
        "a:0": (0, 1), "b:0": (1, 3), "c:0": (1, 5), "end:0": (5, 13), "": (0, 13),
    }  # fmt: skip
    assert all(s.status.status_code is StatusCode.UNSET for s in spans.values())


def test_the_run_starts_now_by_the_wall_clock(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000_000)
    in_virtual_time(DIAMOND.run(BLANK, on_event=Spans(lab.provider)))
    assert lab.spans[""].start_time == 1_000_000_000_000
    assert lab.spans["end:0"].end_time == 1_013_000_000_000


def test_links_show_who_was_heard(lab: Lab) -> None:
    graph = DIAMOND.with_rounds(2)
    in_virtual_time(graph.run(BLANK, on_event=Spans(lab.provider)))
    spans = lab.spans
    ids = {s.context.span_id: id for id, s in spans.items()}
    heard = {
        id: tuple(ids[link.context.span_id] for link in s.links) for id, s in spans.items() if id
    }
    assert heard["a:0"] == () and heard["c:0"] == ("a:0",)
    assert heard["end:1"] == ("end:0", "b:1", "c:1")
    assert [(link.attributes or {})["swarm_ui.id"] for link in spans["end:1"].links] == [
        "end:0", "b:1", "c:1",
    ]  # fmt: skip
    assert {id: (s.attributes or {})["swarm_ui.heard"] for id, s in spans.items() if id} == heard


def team(model: Phone | None = None, reply: str = click(1)) -> CollabGraph:
    answering = model or Phone(reply)
    return CollabGraph(
        [
            AgentNode("ada", answering, adapter="ada", temperature=0.5),
            AgentNode("bob", answering),
            MajorityVote(),
        ],
        [("ada", "bob"), ("ada", "vote"), ("bob", "vote")],
    )


def test_calls_of_models_have_the_conventions_attributes(lab: Lab) -> None:
    trace = team().run_sync(SCREEN, seed=2, on_event=Spans(lab.provider))
    ada = next(c for c in trace.calls if c.node == "ada")
    assert ada.model == "phone-8b-0101"
    found = attributes(lab.spans["ada:0"])
    del found["gen_ai.response.time_to_first_chunk"]
    assert found == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "ada",
        "gen_ai.request.model": "phone-8b-0101",
        "gen_ai.response.model": "phone-8b-0101",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": ada.seed,
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 7,
        "swarm_ui.id": "ada:0",
        "swarm_ui.round": 0,
        "swarm_ui.heard": (),
        "swarm_ui.adapter": "ada@3",
        "swarm_ui.logprob": -0.25,
        "swarm_ui.action_type": "click",
    }
    assert attributes(lab.spans["vote:0"], "gen_ai.") == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "vote",
    }


def test_the_first_token_is_timed(lab: Lab) -> None:
    in_virtual_time(team(Phone(click(1), 0.25)).run(SCREEN, on_event=Spans(lab.provider)))
    spans = lab.spans
    for id in ("ada:0", "bob:0"):
        waited = attributes(spans[id])["gen_ai.response.time_to_first_chunk"]
        assert waited == pytest.approx(0.25)
    assert at(spans["bob:0"], spans[""])[0] == pytest.approx(0.25 * len(click(1)))


def test_what_was_seen_and_said_stays_here_unless_it_is_asked_for(lab: Lab) -> None:
    reply = '{"action_type": "answer", "text": "PRIVATE"}'
    screen = BLANK.__class__(goal="HIDDEN GOAL", elements=SCREEN.elements)
    team(reply=reply).run_sync(screen, on_event=Spans(lab.provider))
    assert len(lab.spans) == 4
    for secret in ("SECRET", "PRIVATE", "HIDDEN", "button", "Be brief"):
        assert secret not in lab.text

    open_lab = Lab()
    team(reply=reply).run_sync(screen, on_event=Spans(open_lab.provider, content=True))
    found = attributes(open_lab.spans["bob:0"])
    assert json.loads(str(found["gen_ai.input.messages"])) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
        {"role": "user", "parts": [{"type": "text", "content": "SECRET SCREEN"}]},
    ]
    said = json.loads(str(found["gen_ai.output.messages"]))
    assert [(m["role"], m["parts"][0]["content"]) for m in said] == [("assistant", reply)]
    run = attributes(open_lab.spans[""])
    assert "HIDDEN GOAL" in str(run["gen_ai.input.messages"])
    assert "PRIVATE" in str(run["gen_ai.output.messages"])


def test_prompts_that_are_no_chats_and_half_characters_are_told_too(lab: Lab) -> None:
    class Odd(Phone):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            return [Completion(text="half \ud83d", prompt="<goal> open") for _ in requests]

    CollabGraph([AgentNode("ada", Odd("x"))]).run_sync(
        SCREEN, on_event=Spans(lab.provider, content=True)
    )
    found = attributes(lab.spans["ada:0"])
    assert "<goal> open" in str(found["gen_ai.input.messages"])
    assert "half ?" in str(found["gen_ai.output.messages"])
    assert found["gen_ai.request.model"] == "phone-8b"


def test_calls_of_nested_graphs_are_inside_the_span_of_their_node(lab: Lab) -> None:
    inner = CollabGraph([Sleeper("x", 1), Sleeper("y", 1)], [("x", "y")], name="team")
    outer = CollabGraph([Sleeper("a", 1), inner, Sleeper("z")], [("a", "team"), ("team", "z")])
    deep = CollabGraph([outer.named("big"), Sleeper("end")], [("big", "end")])
    in_virtual_time(deep.run(BLANK, on_event=Spans(lab.provider)))
    spans = lab.spans
    ids = {s.context.span_id: id for id, s in spans.items()}
    inside = {id: ids[s.parent.span_id] for id, s in spans.items() if s.parent is not None}
    assert inside == {
        "big:0": "",
        "end:0": "",
        "big:0/a:0": "big:0",
        "big:0/team:0": "big:0",
        "big:0/z:0": "big:0",
        "big:0/team:0/x:0": "big:0/team:0",
        "big:0/team:0/y:0": "big:0/team:0",
    }
    assert spans["big:0/team:0/x:0"].name == "invoke_agent big/team/x"
    # The open node hears what its graph hears, across the border.
    assert [ids[link.context.span_id] for link in spans["big:0/team:0/x:0"].links] == ["big:0/a:0"]
    assert at(spans["big:0/team:0"], spans[""]) == (1, 3)


def test_failures_have_an_error_status_and_their_kind(lab: Lab) -> None:
    bad = Sleeper("bad", fails=ValueError("token=abc"))
    slow = Sleeper("slow", 99)
    graph = CollabGraph([bad, slow, Sleeper("end")], [("bad", "end"), ("slow", "end")])
    trace = in_virtual_time(
        graph.run(BLANK, limits=Limits(timeout=3), on_event=Spans(lab.provider))
    )
    spans = lab.spans
    errors = {c.message: str(c.error) for c in trace.calls if c.error is not None}
    assert errors == {"bad:0": "ValueError: token=abc", "slow:0": "no answer within 3 s"}
    for id, error in errors.items():
        assert spans[id].status.status_code is StatusCode.ERROR
        assert spans[id].status.description == error
    assert attributes(spans["bad:0"])["error.type"] == "ValueError"
    assert attributes(spans["slow:0"])["error.type"] == "timeout"
    assert at(spans["slow:0"], spans[""]) == (0, 3)
    assert spans[""].status.status_code is spans["end:0"].status.status_code is StatusCode.UNSET
    # The words of an error are where the trace has them, and nowhere else.
    assert lab.text.count("token=abc") == 1
    assert all(not s.events for s in spans.values())


def test_skipped_calls_have_no_span_but_are_named(lab: Lab) -> None:
    graph = CollabGraph(
        [Sleeper("a"), Sleeper("b"), Sleeper("end")],
        [("a", "b"), ("a", "end"), ("b", "end")],
        when={("a", "b"): lambda message: False},
    )
    graph.run_sync(BLANK, on_event=Spans(lab.provider))
    spans = lab.spans
    assert set(spans) == {"", "a:0", "end:0"}
    assert attributes(spans[""])["swarm_ui.skipped"] == ("b:0",)


def test_a_run_that_raises_ends_all_its_spans_with_an_error(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    graph = CollabGraph(
        [Sleeper("a", 1), Sleeper("slow", 9), Sleeper("bad", 1, ValueError("no")), Sleeper("end")],
        [("a", "bad"), ("slow", "end"), ("bad", "end")],
    )
    heard: list[Event] = []
    with pytest.raises(NodeError) as raised:
        in_virtual_time(
            graph.run(
                BLANK,
                run_id="r",
                limits=Limits(on_failure="abort"),
                on_event=Listeners(heard.append, Spans(lab.provider)),
            )
        )
    assert heard[-1] == Aborted(run="r", error=Failure.of(raised.value), at=2.0)
    spans = lab.spans
    found = {
        id: (s.status.status_code.name, s.status.description, attributes(s).get("error.type"))
        for id, s in spans.items()
    }
    assert found == {
        "": ("ERROR", f"NodeError: {raised.value}", "NodeError"),
        "a:0": ("UNSET", None, None),
        "slow:0": ("ERROR", "cancelled", "cancelled"),
        "bad:0": ("ERROR", "ValueError: no", "ValueError"),
    }
    assert at(spans["slow:0"], spans[""]) == at(spans[""], spans[""]) == (0, 2)
    assert caplog.records == []  # a span that is ended twice is logged


def test_a_cancelled_run_says_so(lab: Lab) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(
            CollabGraph([Sleeper("a", 99)]).run(BLANK, on_event=Spans(lab.provider))
        )
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    in_virtual_time(cancel())
    spans = lab.spans
    assert spans[""].status.description == spans["a:0"].status.description == "cancelled"
    assert at(spans["a:0"], spans[""]) == (0, 5)


def test_a_run_is_inside_the_span_it_was_started_in(lab: Lab) -> None:
    tracer = lab.provider.get_tracer("mine")

    async def serve() -> int:
        with tracer.start_as_current_span("request") as span:
            await CollabGraph([Sleeper("a")]).run(BLANK, on_event=Spans(lab.provider))
            return span.get_span_context().span_id

    outer = asyncio.run(serve())
    found = {s.name: parent(s) for s in lab.exporter.get_finished_spans()}
    assert found["invoke_workflow team"] == outer


def test_concurrent_runs_stay_apart(lab: Lab) -> None:
    async def many() -> None:
        runs = [DIAMOND.run(BLANK, run_id="same", on_event=Spans(lab.provider)) for _ in range(5)]
        await asyncio.gather(*runs)

    in_virtual_time(many())
    spans = lab.exporter.get_finished_spans()
    groups: dict[int, list[str]] = {}
    for span in spans:
        groups.setdefault(span.context.trace_id, []).append(span.name)
    assert len(groups) == 5
    assert {tuple(sorted(names)) for names in groups.values()} == {
        ("invoke_agent a", "invoke_agent b", "invoke_agent c", "invoke_agent end",
         "invoke_workflow team"),
    }  # fmt: skip


@pytest.mark.parametrize("second", ["r", "other"])
def test_one_object_for_two_runs_is_refused_before_a_call_is_made(lab: Lab, second: str) -> None:
    spans = Spans(lab.provider)
    made: list[str] = []

    class Counted(Sleeper):
        async def __call__(self, inbox, context):  # type: ignore[no-untyped-def]
            made.append(context.run_id)
            return await super().__call__(inbox, context)

    graph = CollabGraph([Counted("a", 2), Sleeper("b")], [("a", "b")])

    async def both() -> None:
        first = asyncio.create_task(graph.run(BLANK, run_id="r", on_event=spans))
        await asyncio.sleep(1)
        with pytest.raises(ConfigError, match="Create a new Spans object for every run"):
            await graph.run(BLANK, run_id=second, on_event=spans)
        await first  # is not disturbed
        with pytest.raises(ConfigError, match="Create a new Spans object for every run"):
            await graph.run(BLANK, run_id=second, on_event=spans)

    in_virtual_time(both())
    assert made == ["r"]
    assert lab.spans[""].status.status_code is StatusCode.UNSET
    assert set(lab.spans) == {"", "a:0", "b:0"}


def test_a_replay_without_calls_is_a_run_without_calls(lab: Lab) -> None:
    trace = in_virtual_time(DIAMOND.run(BLANK))
    in_virtual_time(DIAMOND.run(BLANK, cached=trace, on_event=Spans(lab.provider)))
    assert set(lab.spans) == {""}


def test_a_nested_graph_that_is_entered_again_has_the_times_of_today(lab: Lab) -> None:
    inner = CollabGraph([Sleeper("x", 1)], name="team")
    graph = CollabGraph([Sleeper("a", 5), inner, Sleeper("z", 2)], [("a", "team"), ("team", "z")])
    trace = in_virtual_time(graph.run(BLANK))
    other = graph.with_node(Sleeper("new", 3), heard_by=["z"])
    in_virtual_time(other.run(BLANK, cached=trace, on_event=Spans(lab.provider)))
    spans = lab.spans
    assert {id: at(s, spans[""]) for id, s in spans.items()} == {
        "team:0": (0, 0), "new:0": (0, 3), "z:0": (3, 5), "": (0, 5),
    }  # fmt: skip


def test_without_a_provider_spans_go_nowhere_and_the_run_is_the_same() -> None:
    heard: list[Event] = []
    told = team().run_sync(SCREEN, on_event=Listeners(Spans(), heard.append))
    plain = team().run_sync(SCREEN)
    assert told.messages == plain.messages and told.action == plain.action
    assert any(isinstance(e, Token) for e in heard)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object, **more: object) -> object:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[telemetry\]"):
        Spans()
