"""Calls of tools as different servers write them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from swarm_ui.nodes.models.openai.tool_calls import StreamedCalls, called_tools

Piece = tuple[int | None, str | None, str | None, str | None]
"""Index, id, name and arguments."""


def streamed(*pieces: Piece) -> list[tuple[str, str, str]]:
    calls = StreamedCalls()
    for index, id, name, arguments in pieces:
        function = SimpleNamespace(name=name, arguments=arguments)
        piece = SimpleNamespace(index=index, id=id, function=function)
        assert calls.add(SimpleNamespace(tool_calls=[piece])) >= len(arguments or "")
    return [(call.name, call.arguments, call.id) for call in calls.finish()]


TWO = [("add", '{"a": 1}', "c1"), ("add", '{"a": 2}', "c2")]


@pytest.mark.parametrize(
    "pieces",
    [
        # As the protocol says.
        [(0, "c1", "add", ""), (0, None, None, '{"a":'), (1, "c2", "add", ""),
         (0, None, None, " 1}"), (1, None, None, '{"a": 2}')],
        # In the order of the numbers.
        [(1, "c2", "add", '{"a": 2}'), (0, "c1", "add", '{"a": 1}')],
        # The id and the name in every piece.
        [(0, "c1", "add", '{"a":'), (0, "c1", "add", " 1}"), (1, "c2", "add", '{"a": 2}')],
        # No numbers.
        [(None, "c1", "add", '{"a": 1}'), (None, "c2", "add", '{"a": 2}')],
        # Number 0 for all.
        [(0, "c1", "add", '{"a": 1}'), (0, "c2", "add", '{"a": 2}')],
        [(0, "c1", "add", ""), (0, None, None, '{"a": 1}'), (0, "c2", "add", ""),
         (0, None, "", '{"a":'), (0, "", None, " 2}")],
        [(0, "c1", "add", '{"a":'), (0, "c1", "add", ' 1}'), (0, "c2", "add", '{"a": 2}')],
    ],
)  # fmt: skip
def test_two_calls_are_told_apart(pieces: list[Piece]) -> None:
    assert streamed(*pieces) == TWO


def test_calls_without_ids_are_told_apart_by_complete_arguments() -> None:
    one, two = '{"a": 1}', '{"a": 2}'
    whole: list[Piece] = [(0, "", "add", one), (0, "", "add", two), (0, "", "sub", two)]
    assert [found[:2] for found in streamed(*whole)] == [("add", one), ("add", two), ("sub", two)]
    repeated: list[Piece] = [(0, None, "add", '{"a":'), (0, None, "add", " 1}"), (0, "", "add", "")]
    assert [found[:2] for found in streamed(*repeated)] == [("add", one)]


def test_arguments_that_are_a_value_become_its_text() -> None:
    function = SimpleNamespace(name="add", arguments={"a": 1})
    message = SimpleNamespace(tool_calls=[SimpleNamespace(id="c1", function=function)])
    [call] = called_tools(message)
    assert (call.name, call.arguments) == ("add", '{"a":1}')


def test_another_id_in_a_later_piece_begins_no_call_without_a_name() -> None:
    assert streamed((0, "c1", "add", '{"a":'), (0, "x7", None, " 1}")) == TWO[:1]


def test_a_reply_has_a_maximum_of_calls() -> None:
    with pytest.raises(TypeError, match="more than 128 tool calls"):
        streamed(*[(0, f"c{k}", "add", "{}") for k in range(129)])
    assert len(streamed(*[(0, f"c{k}", "add", "{}") for k in range(128)])) == 128
