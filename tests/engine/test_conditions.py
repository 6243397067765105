"""Conditions on edges, and fallbacks: who is asked when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time, timeless

from swarm_ui import (
    BudgetExceeded,
    CollabGraph,
    DirectoryStore,
    GraphError,
    Limits,
    Message,
    NodeContext,
    NodeError,
    NodeReply,
    RunFailed,
)
from swarm_ui.engine.events import Event, Failed, Skipped
from swarm_ui.nodes import AgentNode, MajorityVote, function_node


def says(word: str) -> Callable[[Message], bool]:
    return lambda message: word in message.content


def says_none(*words: str) -> Callable[[Message], bool]:
    return lambda message: not any(word in message.content for word in words)


@function_node
def router(inbox: Sequence[Message], context: NodeContext) -> str:
    return context.observation.goal


def routed() -> CollabGraph:
    nodes = [router, Sleeper("web"), Sleeper("phone"), Sleeper("other"), Sleeper("end")]
    edges = [(name, "end") for name in ("web", "phone", "other")]
    graph = CollabGraph(nodes, edges, "end")
    graph = graph.with_edge("router", "other", when=says_none("web", "phone"))
    graph = graph.with_edge("router", "web", when=says("web"))
    return graph.with_edge("router", "phone", when=says("phone"))


@pytest.mark.parametrize(
    ("goal", "asked"),
    [
        ("a web page", ["web"]),
        ("a phone", ["phone"]),
        ("a web page on a phone", ["web", "phone"]),
        ("a letter", ["other"]),
    ],
)
def test_a_message_goes_where_its_condition_holds(goal: str, asked: list[str]) -> None:
    trace = routed().run_sync(goal)
    assert [m.sender for m in trace.messages] == ["router", *asked, "end"]
    assert trace.message("end:0").content == f"end({','.join(asked)})"
    missing = {"web", "phone", "other"} - set(asked)
    assert set(trace.skipped) == {f"{name}:0" for name in missing}


def test_skipping_goes_on_to_all_who_would_hear_nobody() -> None:
    graph = CollabGraph(
        [router, Sleeper("a"), Sleeper("b"), Sleeper("c"), Sleeper("end")],
        [("a", "b"), ("b", "c"), ("c", "end"), ("router", "end")],
    ).with_edge("router", "a", when=says("never"))
    heard: list[Event] = []
    trace = graph.run_sync("x", on_event=heard.append)
    assert [m.id for m in trace.messages] == ["router:0", "end:0"]
    assert trace.skipped == ("a:0", "b:0", "c:0")
    assert [e.id for e in heard if isinstance(e, Skipped)] == ["a:0", "b:0", "c:0"]


def test_an_output_that_nothing_reaches_has_no_answer_and_says_so() -> None:
    lonely = CollabGraph([router, Sleeper("end")], [("router", "end")], when={
        ("router", "end"): says("never")
    })  # fmt: skip
    trace = lonely.run_sync("x")
    assert trace.action is None
    assert trace.undecided == (
        "no decision: of 1 answers 0 proposed a valid action, 1 proposed none, 0 failed, 1 skipped"
    )
    outer = CollabGraph([lonely.named("inner"), Sleeper("end")], [("inner", "end")])
    nested = outer.run_sync("x")
    assert nested.message("end:0").content == ("end([nothing reached the output 'end' of 'inner'])")
    assert nested.skipped == ("inner:0/end:0",)


def test_conditions_are_asked_every_round_and_own_words_do_not_count_as_heard() -> None:
    @function_node
    def counter(inbox: Sequence[Message], context: NodeContext) -> str:
        return f"round {context.round}"

    graph = CollabGraph(
        [counter, Sleeper("b"), MajorityVote()], [("b", "vote")], output="vote", rounds=3
    )
    trace = graph.with_edge("counter", "b", when=says("0")).run_sync("x")
    assert [m.id for m in trace.messages if m.sender == "b"] == ["b:0"]
    assert trace.skipped == ("b:1", "b:2", "vote:2")
    trace = graph.with_edge("counter", "b", when=says("1")).run_sync("x")
    assert trace.skipped == ("b:0", "b:2", "vote:2")
    trace = graph.with_edge("counter", "b", when=says("2")).run_sync("x")
    assert trace.message("b:2").content == "b(counter)"


def test_a_vote_hears_only_what_passes() -> None:
    model = {"a": FixedModel({None: click(1)}), "b": FixedModel({None: click(2)})}
    graph = CollabGraph(
        [AgentNode("a", model["a"]), AgentNode("b", model["b"]), MajorityVote()],
        [("a", "vote"), ("b", "vote")],
        when={("a", "vote"): lambda m: m.action is not None and m.action.index == 2},
    )
    trace = graph.run_sync(SCREEN)
    assert trace.action is not None and trace.action.index == 2
    assert next(c.heard for c in trace.calls if c.node == "vote") == ("b:0",)


def test_a_condition_that_fails_is_a_failure_of_the_listener() -> None:
    def broken(message: Message) -> bool:
        raise KeyError("score")

    graph = CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], when={("a", "b"): broken})
    assert graph.run_sync(BLANK).message("b:0").error == "KeyError: 'score'"
    with pytest.raises(NodeError, match="node 'b', round 0, run r: KeyError"):
        graph.run_sync(BLANK, run_id="r", limits=Limits(on_failure="abort"))


def test_conditions_are_replayed_too() -> None:
    graph = routed()
    trace = graph.run_sync("a web page")
    assert in_virtual_time(graph.replay(trace)) == trace
    changed = in_virtual_time(graph.replay(trace, messages={"router:0": "a phone"}))
    assert changed.message("end:0").content == "end(phone)"
    assert set(changed.skipped) == {"web:0", "other:0"}


def test_conditions_that_cannot_be_are_refused() -> None:
    with pytest.raises(GraphError, match="no edge b -> a to put a condition on"):
        CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], when={("b", "a"): says("")})
    with pytest.raises(GraphError, match=r"a -> b: a condition is a function .* got a str"):
        CollabGraph([Sleeper("a"), Sleeper("b")], [("a", "b")], when={("a", "b"): "x"})  # type: ignore


# -- fallbacks --------------------------------------------------------------------------------


def test_a_fallback_speaks_in_the_name_of_a_failed_node_and_the_failure_stays_on_record() -> None:
    bad = Sleeper("bad", fails=ValueError("no"))
    graph = CollabGraph([Sleeper("a"), bad, Sleeper("end")], [("a", "bad"), ("bad", "end")])
    heard: list[Event] = []
    trace = graph.with_fallback("bad", Sleeper("spare")).run_sync(BLANK, on_event=heard.append)
    assert [m.sender for m in trace.messages] == ["a", "bad", "end"]
    assert trace.message("bad:0").content == "bad(a)"
    assert trace.message("end:0").content == "end(bad)"
    call = next(c for c in trace.calls if c.node == "bad")
    assert (call.error, str(call.rescued)) == (None, "ValueError: no")
    assert [str(e.error) for e in heard if isinstance(e, Failed)] == ["ValueError: no"]


def test_a_fallback_has_its_own_time_and_goes_before_an_abort() -> None:
    graph = CollabGraph([Sleeper("a", 99)]).with_fallback("a", Sleeper("spare", 4))
    limits = Limits(timeout=5, on_failure="abort")
    trace = in_virtual_time(graph.run(BLANK, limits=limits))
    call = trace.calls[0]
    assert (str(call.rescued), call.ended) == ("no answer within 5 s", 9)


def test_a_fallback_is_limited_by_its_own_time_and_not_by_that_of_the_node() -> None:
    node, spare = Sleeper("a", 99), Sleeper("spare", 4)
    node.timeout, spare.timeout = 1.0, 5.0  # type: ignore[attr-defined]
    trace = in_virtual_time(CollabGraph([node]).with_fallback("a", spare).run(BLANK))
    assert (trace.calls[0].error, trace.calls[0].ended) == (None, 5)
    spare.timeout = None  # type: ignore[attr-defined]
    with pytest.raises(RunFailed) as failed:
        in_virtual_time(CollabGraph([node]).with_fallback("a", spare).run(BLANK))
    trace = failed.value.partial
    assert str(trace.calls[0].error) == "no answer within 1 s; its fallback: no answer within 1 s"


def test_a_graph_as_fallback_leaves_slots_and_time_to_the_calls_inside_it() -> None:
    inner = CollabGraph([Sleeper("x", 4), Sleeper("y", 4)], [("x", "y")], name="inner")
    graph = CollabGraph([Sleeper("a", fails=ValueError("no"))]).with_fallback("a", inner)
    limits = Limits(concurrency=1, timeout=5)
    trace = in_virtual_time(asyncio.wait_for(graph.run(BLANK, limits=limits), 100))
    assert (trace.calls[0].error, trace.output) == (None, "a/y(a/x)")


def test_a_fallback_that_fails_too_leaves_both_reasons() -> None:
    bad = Sleeper("a", fails=ValueError("no"))
    graph = CollabGraph([bad]).with_fallback("a", Sleeper("spare", fails=OSError("neither")))
    with pytest.raises(RunFailed) as failed:
        graph.run_sync(BLANK)
    trace = failed.value.partial
    assert str(trace.calls[0].error) == "ValueError: no; its fallback: OSError: neither"
    assert trace.message("a:0").error == str(trace.calls[0].error)
    with pytest.raises(NodeError, match="OSError: neither"):
        graph.run_sync(BLANK, limits=Limits(on_failure="abort"))


def test_a_fallback_does_not_hide_what_the_user_must_hear_of() -> None:
    spent = CollabGraph([Sleeper("x"), Sleeper("a", fails=BudgetExceeded("spent"))], [("x", "a")])
    with pytest.raises(BudgetExceeded, match="spent") as found:
        spent.with_fallback("a", Sleeper("spare")).run_sync(BLANK)
    assert found.value.partial is not None
    assert [m.id for m in found.value.partial.messages] == ["x:0"]


def test_a_graph_may_be_a_fallback() -> None:
    inner = CollabGraph([Sleeper("x"), Sleeper("y")], [("x", "y")], name="inner")
    graph = CollabGraph([Sleeper("a", fails=ValueError("no"))]).with_fallback("a", inner)
    trace = graph.run_sync(BLANK)
    assert [m.id for m in trace.messages] == ["a:0", "a:0/x:0", "a:0/y:0"]
    assert trace.message("a:0").content == "a/y(a/x)"
    assert timeless(in_virtual_time(graph.replay(trace))) == timeless(trace)


def test_calls_that_a_fallback_skipped_are_known_to_a_replay_and_a_resumed_run(
    tmp_path: Path,
) -> None:
    inner = CollabGraph([Sleeper("x"), Sleeper("y"), Sleeper("z")], [("x", "z")], "z", name="inner")
    inner = inner.with_edge("x", "y", when=says("never"))
    graph = CollabGraph([Sleeper("a", fails=ValueError("no"))]).with_fallback("a", inner)
    with DirectoryStore(tmp_path) as store:
        trace = graph.run_sync(BLANK, run_id="r", store=store)
        assert trace.skipped == ("a:0/y:0",)
        assert graph.run_sync(BLANK, run_id="r", store=store) == trace
    assert in_virtual_time(graph.replay(trace)) == trace


def test_who_is_rescued_is_asked_about_through_the_fallback() -> None:
    asked: list[int] = []

    class Scoring(FixedModel):
        async def score(self, requests: Sequence[object], replies: Sequence[str]) -> list[float]:
            asked.append(len(requests))
            return [-1.0] * len(requests)

    model = Scoring({None: click(1)})
    other = Scoring({None: click(2)})
    team = CollabGraph.collaborative(agents=2, rounds=1, model=other, vote="probability", edges=[])
    lame = team.with_node(Sleeper("agent_0", fails=OSError("down")), name="agent_0")
    trace = lame.with_fallback("agent_0", AgentNode("spare", model)).run_sync(SCREEN)
    assert trace.undecided is None and asked == [2, 2]


def test_a_fallback_for_nobody_is_refused() -> None:
    with pytest.raises(GraphError, match="fallback for: node 'b' is not in the graph"):
        CollabGraph([Sleeper("a")]).with_fallback("b", Sleeper("spare"))
    with pytest.raises(GraphError, match="fallback for 'a' is not a node: a str"):
        CollabGraph([Sleeper("a")]).with_fallback("a", "spare")  # type: ignore[arg-type]


def test_a_fallbacks_answer_of_the_wrong_kind_is_told() -> None:
    class Wrong:
        id = "wrong"

        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            return "text"

    graph = CollabGraph([Sleeper("a", fails=ValueError("no"))]).with_fallback("a", Wrong())
    with pytest.raises(RunFailed, match="answered with a str, not a NodeReply"):
        graph.run_sync(BLANK)


def test_the_output_of_a_trace_is_that_of_the_output_node() -> None:
    trace = routed().with_output("web").run_sync("web")
    assert trace.messages[-1].sender == "end"
    assert (trace.output, trace.output_id) == ("web(router)", "web:0")
    missing = routed().with_output("phone").run_sync("web")
    assert missing.output is None and "no output" in repr(missing)
