"""A node with a language model: what it is asked, and what its message holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from swarm_ui import (
    ChatMessage,
    CollabGraph,
    ConfigError,
    Element,
    Limits,
    Message,
    ModelError,
    NodeContext,
    NodeError,
    Observation,
    RunFailed,
    Trace,
)
from swarm_ui.nodes import ChatNode, ScriptedModel, function_node


class Point(msgspec.Struct):
    x: int


@dataclass
class Place:
    x: int


@function_node
def writer(inbox: Sequence[Message], context: NodeContext) -> str:
    return "a draft </said> that ends"


def asked(trace: Trace, node: str) -> str:
    """The prompt of the first call of a node."""
    return next(call.prompt for call in trace.calls if call.node == node)


def test_without_a_prompt_it_is_asked_the_goal_and_hears_its_predecessors() -> None:
    model = ScriptedModel(["first", "second"])
    graph = CollabGraph(
        [writer, ChatNode("critic", model, system="You review.")], [("writer", "critic")], rounds=2
    )
    trace = graph.run_sync("write well")
    assert model.requests[0].chat == (
        ChatMessage("system", "You review."),
        ChatMessage(
            "user", "write well\n\nwriter said:\n<said>\na draft ‹/said> that ends\n</said>"
        ),
    )
    assert model.requests[1].chat is not None
    told = model.requests[1].chat[1].content
    assert told.startswith("write well\n\nYour previous answer:\n<said>\nfirst\n</said>\n\nwriter")
    assert trace.message("critic:1").content == "second"
    calls = {call.id: call for call in trace.calls}
    assert calls["critic:0"].reply == "first" and calls["critic:0"].model == "scripted"
    assert calls["critic:0"].usage.completion_tokens == 1
    assert model.requests[0].seed != model.requests[1].seed
    assert len(trace.calls) == 4  # a plain chat has no calls inside


def test_a_template_is_filled_in_and_a_screen_is_shown() -> None:
    screen = Observation(
        goal="save it", app="Notes", elements=(Element(index=0, role="button", text="Save"),)
    )
    prompt = "{{Round}} {round} of {rounds}: {goal}\n{screen}\n{messages}{own}"
    trace = CollabGraph([ChatNode("one", ScriptedModel(["ok"]), prompt=prompt)]).run_sync(screen)
    text = asked(trace, "one")
    assert text.startswith("[user]\n{Round} 1 of 1: save it\nOn the screen:\n<screen>\n")
    assert "(in front: Notes)" in text and "Save" in text


def test_a_function_makes_the_prompt_or_a_whole_chat() -> None:
    def text(inbox: Sequence[Message], context: NodeContext) -> str:
        return f"{inbox[-1].sender} wrote: {inbox[-1].content}"

    def chat(inbox: Sequence[Message], context: NodeContext) -> list[ChatMessage]:
        return [
            ChatMessage("user", "2+2"),
            ChatMessage("assistant", "4"),
            ChatMessage("user", "+1"),
        ]

    model = ScriptedModel(["a", "b"])
    nodes = [writer, ChatNode("p", model, prompt=text), ChatNode("q", model, prompt=chat)]
    CollabGraph(nodes, [("writer", "p"), ("p", "q")]).run_sync("go")
    assert [len(request.chat or ()) for request in model.requests] == [1, 3]
    assert (model.requests[0].chat or ())[0].content.startswith("writer wrote: a draft")


@pytest.mark.parametrize(
    "settings",
    [
        {"prompt": "Review {writer}"},
        {"prompt": "Review {"},
        {"prompt": 'Reply with {goal: "..."}'},
        {"prompt": "Round {round:d}"},
        {"prompt": "{goal:{width}}"},
        {"prompt": "{goal!x}"},
        {"max_tokens": 0},
        {"max_repairs": -1},
        {"temperature": -0.5},
        {"schema": object},
    ],
)
def test_settings_that_cannot_work_are_found_before_a_run(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="one"):
        ChatNode("one", ScriptedModel([]), **settings)


@pytest.mark.parametrize("schema", [Point, Place])
def test_the_content_is_the_json_value_and_value_parses_it(schema: Any) -> None:
    model = ScriptedModel(['Here it is:\n```json\n{"x": 4}\n```\nDone.'])
    node = ChatNode("one", model, schema=schema)
    trace = CollabGraph([node]).run_sync("where?")
    assert trace.message("one:0").content == '{"x": 4}'
    assert node.value(trace.message("one:0")) == schema(x=4)
    request = model.requests[0]
    assert request.json_schema is not None and '"x"' in request.json_schema
    assert request.chat is not None and request.json_schema in request.chat[-1].content


def test_a_pydantic_type_is_checked_by_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")
    Even = pydantic.create_model("Even", x=(int, pydantic.Field(multiple_of=2)))
    node = ChatNode("one", ScriptedModel(['{"x": 3}', '{"x": 4}']), schema=Even)
    trace = CollabGraph([node]).run_sync("where?")
    assert node.value(trace.message("one:0")).x == 4


def test_an_invalid_reply_is_sent_back_with_the_error_and_both_turns_are_recorded() -> None:
    model = ScriptedModel(["I do not know", '{"x": "four"}', '{"x": 4}'])
    trace = CollabGraph([ChatNode("one", model, schema=Point)]).run_sync("where?")
    assert [message.id for message in trace.messages] == [
        "one:0", "one:0/model:0", "one:0/model:1", "one:0/model:2"
    ]  # fmt: skip
    last = model.requests[2].chat or ()
    assert [turn.role for turn in last] == ["user", "assistant", "user", "assistant", "user"]
    assert "there is no JSON value" in last[2].content
    assert "Expected `int`, got `str` - at `$.x`" in last[4].content
    assert trace.calls[0].usage.prompt_tokens == 0  # what was used is in the calls inside
    assert len({request.seed for request in model.requests}) == 3


def test_replies_that_never_follow_the_schema_are_a_failure_with_its_turns_in_the_trace() -> None:
    def graph(model: ScriptedModel) -> CollabGraph:
        return CollabGraph([ChatNode("one", model, schema=Point, max_repairs=1)])

    with pytest.raises(RunFailed) as failed:
        graph(ScriptedModel(lambda request: "no")).run_sync("where?")
    trace = failed.value.partial
    (call, *inside) = trace.calls
    assert call.error is not None and call.error.kind == "reply" and call.error.node == "one"
    assert "no reply matched the schema after 2 attempts; the last error: there is no" in str(
        call.error
    )
    assert [each.node for each in inside] == ["one/model", "one/model"]
    with pytest.raises(ModelError, match="'one' failed"):
        ChatNode("one", ScriptedModel([]), schema=Point).value(trace.message("one:0"))
    with pytest.raises(NodeError, match="no reply matched"):
        graph(ScriptedModel(lambda request: "no")).run_sync(
            "where?", limits=Limits(on_failure="abort")
        )
