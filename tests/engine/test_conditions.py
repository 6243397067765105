"""Conditions on edges, and fallbacks: who is asked when."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from graph_fakes import BLANK, Sleeper, in_virtual_time

from swarm_ui import (
    CollabGraph,
    Limits,
    Message,
    NodeContext,
    NodeError,
)
from swarm_ui.nodes import MajorityVote, function_node


def says(word: str) -> Callable[[Message], bool]:
    return lambda message: word in message.content


def says_none(*words: str) -> Callable[[Message], bool]:
    return lambda message: not any(word in message.content for word in words)


@function_node
def router(inbox: Sequence[Message], context: NodeContext) -> str:
    return context.observation.goal


def routed(output: str = "end") -> CollabGraph:
    nodes = [router, Sleeper("web"), Sleeper("phone"), Sleeper("other"), Sleeper("end")]
    edges = [(name, "end") for name in ("web", "phone", "other")]
    graph = CollabGraph(nodes, edges, output)
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
    trace = graph.run_sync("x")
    assert [m.id for m in trace.messages] == ["router:0", "end:0"]
    assert trace.skipped == ("a:0", "b:0", "c:0")


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
