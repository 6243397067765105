"""Fallbacks: who is asked, and what stays on record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from graph_fakes import BLANK, SCREEN, FixedModel, Sleeper, click, in_virtual_time, timeless

from swarm_ui import (
    BudgetExceeded,
    CollabGraph,
    GraphError,
    Limits,
    Message,
    NodeContext,
    NodeReply,
    RunFailed,
)
from swarm_ui.nodes import AgentNode, Fallback, MajorityVote


def failing(id: str = "bad") -> Sleeper:
    return Sleeper(id, fails=ValueError("no"))


def test_the_second_answers_and_the_failure_stays_on_record() -> None:
    nodes = [Sleeper("a"), Fallback(failing(), Sleeper("spare")), Sleeper("end")]
    graph = CollabGraph(nodes, [("a", "bad"), ("bad", "end")])
    trace = graph.run_sync(BLANK)
    assert [m.id for m in trace.messages] == [
        "a:0", "bad:0", "bad:0/bad:0", "bad:0/spare:1", "end:0",
    ]  # fmt: skip
    assert trace.message("bad:0").content == "bad/spare(a)" and trace.output == "end(bad)"
    errors = {call.id: str(call.error) for call in trace.calls if call.error}
    assert errors == {"bad:0/bad:0": "ValueError: no"}
    assert in_virtual_time(graph.replay(trace)) == trace


def test_each_has_its_own_time_and_a_fallback_goes_before_an_abort() -> None:
    graph = CollabGraph([Fallback(Sleeper("a", 99), Sleeper("spare", 4))])
    limits = Limits(timeout=5, on_failure="abort")
    trace = in_virtual_time(graph.run(BLANK, limits=limits))
    assert (str(trace.calls[1].error), trace.calls[0].ended) == ("no answer within 5 s", 9)
    node, spare = Sleeper("a", 99), Sleeper("spare", 4)
    node.timeout, spare.timeout = 1.0, 5.0  # type: ignore[attr-defined]
    trace = in_virtual_time(CollabGraph([Fallback(node, spare)]).run(BLANK))
    assert (trace.calls[0].error, trace.calls[0].ended) == (None, 5)


def test_graphs_as_parts_leave_slots_and_time_to_the_calls_inside_them() -> None:
    inner = CollabGraph([Sleeper("x", 4), Sleeper("y", 4)], [("x", "y")], name="inner")
    silent = CollabGraph([failing("f")], name="silent")
    for first in (failing("silent"), silent):
        graph = CollabGraph([Fallback(first, inner)])
        limits = Limits(timeout=5)
        trace = in_virtual_time(asyncio.wait_for(graph.run(BLANK, limits=limits), 100))
        assert (trace.calls[0].error, trace.output) == (None, "silent/inner/y(silent/inner/x)")
        assert timeless(in_virtual_time(graph.replay(trace))) == timeless(trace)


def test_if_both_fail_the_node_fails_as_the_second() -> None:
    graph = CollabGraph([Fallback(failing(), Sleeper("spare", fails=OSError("neither")))])
    with pytest.raises(RunFailed, match="neither") as failed:
        graph.run_sync(BLANK)
    trace = failed.value.partial
    assert [str(call.error) for call in trace.calls] == [
        "OSError: neither", "ValueError: no", "OSError: neither",
    ]  # fmt: skip
    assert in_virtual_time(graph.replay(trace)) == trace
    with pytest.raises(Exception, match="neither"):
        graph.run_sync(BLANK, limits=Limits(on_failure="abort"))


def test_it_does_not_hide_what_the_user_must_hear_of() -> None:
    spent = Fallback(Sleeper("a", fails=BudgetExceeded("spent")), Sleeper("spare"))
    with pytest.raises(BudgetExceeded, match="spent") as found:
        CollabGraph([Sleeper("x"), spent], [("x", "a")]).run_sync(BLANK)
    assert [m.id for m in found.value.partial.messages] == ["x:0"]


def test_a_vote_with_a_fallback_is_a_vote() -> None:
    class Broken(MajorityVote):
        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            raise OSError("down")

    agents = [AgentNode(name, FixedModel({None: click(1)})) for name in "ab"]
    vote = Fallback(Broken("first"), MajorityVote("second"), id="vote")
    trace = CollabGraph([*agents, vote], rounds=2).run_sync(SCREEN)
    assert trace.agents == ("a", "b") and trace.ballot == {click(1).replace(" ", ""): 2.0}


def test_what_cannot_be_a_fallback() -> None:
    with pytest.raises(GraphError, match="two nodes are called 'a'"):
        Fallback(Sleeper("a"), Sleeper("a"))
    with pytest.raises(GraphError, match="'spare' is not a node"):
        Fallback(Sleeper("a"), "spare")  # type: ignore[arg-type]
