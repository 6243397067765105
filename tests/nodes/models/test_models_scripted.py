"""The scripted model keeps the contract of every model."""

from __future__ import annotations

import pytest

from swarm_ui.errors import ModelError
from swarm_ui.json_text import last_object, objects
from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes import ScriptedModel


def ask(text: str) -> Request:
    return Request(chat=(ChatMessage("user", text),))


async def test_says_when_the_script_is_at_its_end() -> None:
    model = ScriptedModel(["one"])
    await model.generate([ask("a")])
    with pytest.raises(ModelError, match="no reply left in the script for call 2"):
        await model.generate([ask("b")])


async def test_follows_functions_and_raises_exceptions() -> None:
    async def reply(request: Request) -> str | Exception:
        assert request.chat is not None
        text = request.chat[0].content
        return ModelError("broken") if text == "break" else text.upper()

    model = ScriptedModel(reply)
    assert (await model.generate([ask("a")]))[0].text == "A"
    assert (await ScriptedModel(lambda r: "x").generate([ask("a")]))[0].text == "x"
    with pytest.raises(ModelError, match="broken"):
        await model.generate([ask("break")])


def test_objects_are_found_in_free_text_and_hostile_nesting_is_survived() -> None:
    text = 'a {"x": {"y": "}"}} {bad} ```{"z": [1]}``` {"open": '
    assert [f.value for f in objects(text)] == [{"x": {"y": "}"}}, {"z": [1]}]
    found = last_object(text)
    assert found is not None and text[found.start : found.end] == '{"z": [1]}'
    assert last_object('{"a":' * 3000) is None
    assert last_object("") is None
