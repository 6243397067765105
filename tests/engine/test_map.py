"""A graph that is run for every item of a message: order, limits, records, replays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest
from graph_fakes import in_virtual_time

from swarm_ui import (
    CollabGraph,
    Limits,
    Message,
    NodeContext,
    NodeError,
    NodeReply,
    Trace,
)
from swarm_ui.nodes import Map, function_node


@function_node
def plan(inbox: Sequence[Message], context: NodeContext) -> str:
    return context.observation.goal


class Worker:
    """Shouts its item; a longer item takes less time. Some items fail."""

    def __init__(self, second: float = 1.0) -> None:
        self.id, self.second = "worker", second
        self.calls: list[str] = []
        self.running = self.most = 0

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        self.calls.append(context.message_id)
        self.running += 1
        self.most = max(self.most, self.running)
        item = inbox[-1].content
        await asyncio.sleep((10 - len(item)) * self.second)
        self.running -= 1
        if item == "bad":
            raise ValueError("a bad item")
        return NodeReply(content=item.upper())


@function_node
def check(inbox: Sequence[Message], context: NodeContext) -> str:
    return inbox[-1].content + "!"


def words(message: Message) -> list[str]:
    return message.content.split()


def team(worker: Worker, **more: object) -> CollabGraph:
    inside = CollabGraph([worker, check], [("worker", "check")], name="inside")
    node = Map("each", inside, over=words, **more)  # type: ignore[arg-type]
    return CollabGraph([plan, node], [("plan", "each")])


def test_results_come_in_the_order_of_the_items_and_all_is_recorded() -> None:
    worker = Worker()
    trace = in_virtual_time(team(worker).run("one three x"))
    assert json.loads(trace.output or "") == ["ONE!", "THREE!", "X!"]
    assert worker.most == 3
    assert [m.id for m in trace.messages] == [
        "plan:0", "each:0",
        "each:0/item:0", "each:0/item:0/worker:0", "each:0/item:0/check:0",
        "each:0/item:1", "each:0/item:1/worker:0", "each:0/item:1/check:0",
        "each:0/item:2", "each:0/item:2/worker:0", "each:0/item:2/check:0",
    ]  # fmt: skip
    heard = {call.id: call.heard for call in trace.calls}
    assert heard["each:0/item:1"] == ("plan:0",)
    assert heard["each:0/item:1/worker:0"] == ("each:0/item:1",)
    decision = trace.decision(trace.calls[3])
    assert [h.content for h in decision.heard] == ["one"]
    assert decision.observation.goal == "one"
    assert "item 1" in trace._repr_svg_()


def asked(
    graph: CollabGraph, worker: Worker, trace: Trace, **changes: object
) -> tuple[Trace, list[str]]:
    worker.calls.clear()
    again = in_virtual_time(graph.replay(trace, **changes))
    return again, sorted(worker.calls)


def test_a_replay_runs_only_the_items_that_a_change_affects() -> None:
    worker = Worker()
    graph = team(worker)
    trace = in_virtual_time(graph.run("one two"))
    assert asked(graph, worker, trace) == (trace, [])
    other, calls = asked(graph, worker, trace, messages={"each:0/item:1": "four"})
    assert json.loads(other.output or "") == ["ONE!", "FOUR!"]
    assert calls == ["each:0/item:1/worker:0"]
    fewer, calls = asked(graph, worker, trace, without=["each:0/item:0"])
    assert (json.loads(fewer.output or ""), calls) == (["TWO!"], [])
    more, calls = asked(graph, worker, trace, messages={"plan:0": "one two three"})
    assert json.loads(more.output or "") == ["ONE!", "TWO!", "THREE!"]
    assert "each:0/item:2/worker:0" in calls


def test_failures_of_items_are_recorded_and_only_all_of_them_fail_the_node() -> None:
    trace = in_virtual_time(team(Worker()).run("one bad"))
    said = json.loads(trace.output or "")
    assert said[0] == "ONE!"
    assert trace.message("each:0").error is None
    assert trace.message("each:0/item:1/worker:0").error == "ValueError: a bad item"
    alone = CollabGraph([plan, Map("each", CollabGraph([Worker()]), over=words)], [
        ("plan", "each")])  # fmt: skip
    partly = in_virtual_time(alone.run("one bad"))
    assert json.loads(partly.output or "") == ["ONE", None]
    failed = in_virtual_time(alone.run("bad bad"))
    assert "all 2 runs failed; the first: ValueError" in (failed.message("each:0").error or "")
    with pytest.raises(NodeError, match="a bad item"):
        in_virtual_time(alone.run("one bad", limits=Limits(on_failure="abort")))


def test_no_items_too_many_items_and_messages_without_items() -> None:
    assert in_virtual_time(team(Worker()).run("")).output == "[]"
    crowded = in_virtual_time(team(Worker(), most=2).run("a b c"))
    assert "got 3 items and runs at most 2" in (crowded.message("each:0").error or "")
    arrays = CollabGraph([plan, Map("each", CollabGraph([Worker()]))], [("plan", "each")])
    assert json.loads(in_virtual_time(arrays.run('["a", {"b": 1}]')).output or "") == [
        "A", '{"B": 1}',
    ]  # fmt: skip
    wrong = in_virtual_time(arrays.run("no array")).message("each:0").error or ""
    assert "message 'plan:0' has no items: expected a JSON array" in wrong
