"""Graphs of ordinary nodes: fallbacks, maps, people, feedback; one journal for crash and replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from swarm_ui import CollabGraph, Journal, Message, NodeContext, NodeReply, RunPaused
from swarm_ui.nodes import Ask, Fallback, Map, function_node

CALLS: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


@function_node
def outline(inbox: Sequence[Message], context: NodeContext) -> str:
    CALLS.append("outline")
    return '["tea", "coffee"]'


@function_node
def write(inbox: Sequence[Message], context: NodeContext) -> str:
    CALLS.append("write")
    return f"about {context.observation.goal}"


@function_node
def broken(inbox: Sequence[Message], context: NodeContext) -> str:
    raise RuntimeError("no service")


@function_node
def plain(inbox: Sequence[Message], context: NodeContext) -> str:
    return " and ".join(message.content for message in inbox)


def book() -> CollabGraph:
    chapters = Map("chapters", CollabGraph([write]))
    approve = Ask("approve", "Print it?")
    return CollabGraph([outline]) >> chapters >> Fallback(broken, plain) >> approve


async def test_a_paused_run_goes_on_in_another_process_and_is_replayed(tmp_path: Path) -> None:
    with pytest.raises(RunPaused) as paused:
        await book().run("write a book", run_id="book", journal=Journal(tmp_path / "runs.jsonl"))
    assert [question.node for question in paused.value.questions] == ["approve"]
    made = len(CALLS)
    trace = await book().resume(
        "book", {"approve": "yes"}, journal=Journal(tmp_path / "runs.jsonl")
    )
    assert trace.output == "yes" and len(CALLS) == made == 3
    assert any("no service" in str(call.error) for call in trace.calls)
    assert trace.message("broken:0").content == '["about tea", "about coffee"]'

    assert await book().replay(trace) == trace and len(CALLS) == made
    edited = await book().replay(trace, messages={"outline:0": '["milk"]'})
    assert len(CALLS) == made + 1
    assert any(message.content == "about milk" for message in edited.messages)


async def test_an_item_is_the_goal_of_its_run_also_behind_messages_that_stay_the_same() -> None:
    @function_node
    def same(inbox: Sequence[Message], context: NodeContext) -> str:
        return "as ever"

    inner = CollabGraph([same, write], [("same", "write")])
    graph = CollabGraph([outline]) >> Map("chapters", inner)
    trace = await graph.run("write a book")
    assert trace.output == '["about tea", "about coffee"]'
    assert trace.decision("chapters:0/item:1/write:0").observation.goal == "coffee"
    edited = await graph.replay(trace, messages={"chapters:0/item:1": "milk"})
    assert edited.output == '["about tea", "about milk"]' and CALLS.count("write") == 3


async def test_a_node_of_ones_own_runs_graphs_and_steps_inside_its_call() -> None:
    """The calls inside are in the trace, and a replay makes none of them again."""
    inner = CollabGraph([write], name="inner")

    class Twice:
        id = "twice"

        async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
            async def look(heard: Sequence[Message], inside: NodeContext) -> NodeReply:
                CALLS.append("look")
                return NodeReply(content="42")

            found = (await context.step("look", inbox, look)).message
            replies = [await context.run(inner, [found], name) for name in ("first", "second")]
            return NodeReply(content=" ".join(reply.content for reply in replies))

    graph = CollabGraph([outline, Twice()], [("outline", "twice")])
    trace = await graph.run("tea")
    assert [message.id for message in trace.messages] == [
        "outline:0", "twice:0", "twice:0/look:0", "twice:0/first/write:0", "twice:0/second/write:0",
    ]  # fmt: skip
    assert trace.output == "about tea about tea" and len(CALLS) == 4
    assert await graph.replay(trace) == trace and len(CALLS) == 4
    edited = await graph.replay(trace, messages={"twice:0/second/write:0": "else"})
    assert edited.output == "about tea else" and len(CALLS) == 4
