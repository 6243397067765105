"""Questions to people: the run pauses, its state is kept, and it goes on with the answers."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from graph_fakes import FixedModel, Sleeper, click

from swarm_ui import (
    Action,
    CollabGraph,
    ConfigError,
    Journal,
    Message,
    NodeContext,
    NodeReply,
    RunPaused,
    Trace,
)
from swarm_ui.nodes import AgentNode, Ask, Fallback, Map, function_node

CALLS: list[str] = []


@function_node
def writer(inbox: Sequence[Message], context: NodeContext) -> str:
    CALLS.append(context.message_id)
    notes = [m.content for m in inbox if m.sender == "approve"]
    return f"letter {context.round}" + "".join(f" {note}" for note in notes)


@function_node
def send(inbox: Sequence[Message], context: NodeContext) -> str:
    CALLS.append(context.message_id)
    return f"sent: {inbox[-1].content}"


@pytest.fixture(autouse=True)
def no_calls() -> None:
    CALLS.clear()


def team(**more: tuple[str, ...]) -> CollabGraph:
    ask = Ask("approve", "Send this letter?", **more)
    nodes = [writer, ask, send, Sleeper("other")]
    return CollabGraph(nodes, [("writer", "approve"), ("approve", "send")], "send")


def paused(graph: CollabGraph, **options: object) -> RunPaused:
    with pytest.raises(RunPaused) as found:
        graph.run_sync("x", **options)  # type: ignore[arg-type]
    return found.value


def resumed(
    graph: CollabGraph, run: str | Trace, answers: Mapping[str, str], **more: object
) -> Trace:
    return asyncio.run(graph.resume(run, answers, **more))  # type: ignore[arg-type]


def test_a_run_pauses_with_its_question_and_goes_on_with_the_answer() -> None:
    graph = team()
    error = paused(graph, run_id="r")
    (question,) = error.questions
    assert (question.id, question.node, question.round) == ("approve:0", "approve", 0)
    assert question.text == "Send this letter?\nwriter: letter 0"
    assert "the run 'r' waits for an answer to 'approve:0': Send this letter?" in str(error)
    assert {m.id for m in error.partial.messages} == {"writer:0", "other:0"}
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.questions) == (str(error), error.questions)

    trace = resumed(graph, error.partial, {"approve:0": "yes"})
    assert trace.output == "sent: yes"
    call = next(call for call in trace.calls if call.node == "approve")
    assert (call.prompt, call.reply, call.model) == (question.text, "yes", "person")
    assert CALLS == ["writer:0", "send:0"]
    assert asyncio.run(graph.replay(trace)) == trace
    changed = asyncio.run(graph.replay(trace, messages={"approve:0": "no"}))
    assert changed.output == "sent: no"
    other = asyncio.run(graph.replay(trace, messages={"writer:0": "another letter"}))
    assert other.output == "sent: yes", "the answer stands"
    asked = next(call for call in other.calls if call.node == "approve").prompt
    assert asked.endswith("another letter")


def test_the_state_of_a_paused_run_is_on_disk(tmp_path: Path) -> None:
    graph, path = team(), tmp_path / "runs.jsonl"
    question = paused(graph, run_id="r", journal=Journal(path)).questions[0]
    journal = Journal(path)  # as another process would
    record = journal.read("r")
    assert record.questions == {question.id: question} and not record.finished
    assert len(record.calls) == 2
    assert paused(graph, run_id="r", journal=journal).questions == (question,)
    CALLS.clear()
    trace = resumed(graph, "r", {"approve": "yes"}, journal=journal)
    assert trace.output == "sent: yes" and CALLS == ["send:0"]
    assert not journal.read("r").questions and journal.read("r").finished
    assert graph.run_sync("x", run_id="r", journal=journal) == trace
    with pytest.raises(ConfigError, match="'approve:0' of run 'r' is answered already"):
        resumed(graph, "r", {"approve:0": "no"}, journal=journal)


def test_a_loop_asks_in_every_round_and_until_ends_it() -> None:
    ask = Ask("approve", lambda inbox: f"Is '{inbox[-1].content}' fine?")
    graph = CollabGraph(
        [writer, ask], [("writer", "approve")], "writer", 5,
        until=lambda newest: newest["approve"].content == "yes",
    ).with_edge("approve", "writer", delay=1)  # fmt: skip
    first = paused(graph)
    assert [q.text for q in first.questions] == ["Is 'letter 0' fine?"]
    with pytest.raises(RunPaused) as second:
        resumed(graph, first.partial, {"approve:0": "shorter"})
    assert [q.text for q in second.value.questions] == ["Is 'letter 1 shorter' fine?"]
    trace = resumed(graph, second.value.partial, {"approve:1": "yes"})
    assert (trace.rounds, trace.output) == (2, "letter 1 shorter")
    assert CALLS == ["writer:0", "writer:1"]


def test_all_open_questions_are_told_at_once_also_of_nested_and_mapped_graphs() -> None:
    nodes = [writer, Ask("a", "first?"), Sleeper("b")]
    inner = CollabGraph(nodes, [("writer", "a"), ("a", "b")], name="inner")
    pair = CollabGraph([send, Ask("ok", "ok?")], [("send", "ok")])
    each = Map("each", pair, over=lambda message: ["x", "y"])
    start = Sleeper("start")
    graph = CollabGraph(
        [start, inner, each, Sleeper("end")],
        [("start", "each"), ("inner", "end"), ("each", "end")],
    )
    error = paused(graph)
    ids = ["each:0/item:0/ok:0", "each:0/item:1/ok:0", "inner:0/a:0"]
    assert sorted(q.id for q in error.questions) == ids
    assert error.questions[0].text == "ok?\neach/send: sent: x"
    with pytest.raises(RunPaused) as left:
        resumed(graph, error.partial, {"each/ok": "fine", "each:0/item:1/ok:0": "bad"})
    assert [q.id for q in left.value.questions] == ["inner:0/a:0"]
    whole = {"each/ok": "fine", "each:0/item:1/ok:0": "bad", "inner/a": "go"}
    trace = resumed(graph, error.partial, whole)
    assert trace.message("each:0").content == '["fine", "bad"]'
    assert trace.message("inner:0").content == "inner/b(inner/a)"
    made = ["each:0/item:0/send:0", "each:0/item:1/send:0", "inner:0/writer:0"]
    assert sorted(CALLS) == made  # none of them was made again


def test_an_answer_out_of_place_is_refused() -> None:
    graph = team(options=("yes", "no"))
    error = paused(graph)
    assert error.questions[0].text.endswith("(yes / no)")
    with pytest.raises(
        ConfigError, match="answer to 'approve:0' is 'maybe'; expected one of 'yes'"
    ):
        resumed(graph, error.partial, {"approve:0": "maybe"})
    with pytest.raises(ConfigError, match="did you mean 'approve'"):
        resumed(graph, error.partial, {"aprove:0": "yes"})
    with pytest.raises(ConfigError, match="find the run 'r' by its name, set journal="):
        resumed(graph, "r", {"approve:0": "yes"})


class Assistant:
    """Looks something up, as a step of its own, and then asks a person about it."""

    id = "assistant"

    async def __call__(self, inbox: Sequence[Message], context: NodeContext) -> NodeReply:
        async def look(heard: Sequence[Message], inside: NodeContext) -> NodeReply:
            CALLS.append(inside.message_id)
            return NodeReply(content="42")

        found = await context.step("look", inbox, look)
        answer = await context.ask(f"Is it {found.message.content}?")
        return NodeReply(content=answer)


@pytest.mark.parametrize("nested", [False, True])
def test_steps_that_a_node_made_before_it_asked_are_not_made_again(nested: bool) -> None:
    graph = CollabGraph([Assistant()])
    graph = CollabGraph([graph.named("inner")]) if nested else graph
    around = "inner:0/" if nested else ""
    error = paused(graph)
    trace = resumed(graph, error.partial, {f"{around}assistant:0": "yes"})
    assert trace.output == "yes" and list(CALLS) == [f"{around}assistant:0/look:0"]
    assert f"{around}assistant:0/look:0" in {message.id for message in trace.messages}


def test_a_fallback_may_be_a_person_and_a_failed_question_is_no_pause() -> None:
    broken = AgentNode("ada", FixedModel({}))
    graph = CollabGraph([Fallback(broken, Ask("person", "What now?"))], name="t")
    error = paused(graph)
    assert error.questions[0].id == "ada:0/person:1"
    trace = resumed(graph, error.partial, {"ada/person": click(1)})
    assert trace.output == click(1) and trace.calls[1].error is not None
    assert trace.action == Action(action_type="click", index=1)

    @function_node
    async def careful(inbox: Sequence[Message], context: NodeContext) -> str:
        return "heard " + await context.ask("from a function?")

    alone = CollabGraph([careful])
    found = resumed(alone, paused(alone).partial, {"careful": "this"})
    assert found.output == "heard this"
