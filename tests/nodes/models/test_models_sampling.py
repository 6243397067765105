"""Many samples of one request, pictures, schemas and leased adapters on a real server."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import msgspec
import pytest
from loopback import Loopback, Reply, failing
from loopback_client import ask, model, no_proxy, one  # noqa: F401  (a fixture)
from PIL import Image

from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request, SamplingModel, VersionedModel
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import chat_of, decision_chat

SCHEMA = '{"type": "object", "required": ["a"]}'


def png(width: int = 3, height: int = 2, colour: str = "red") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "PNG")
    return file.getvalue()


def screen(picture: bytes | None) -> Observation:
    return Observation(
        goal="g", elements=(Element(index=0, role="button", text="Save"),), png=picture
    )


# -- samples ----------------------------------------------------------------------------------


async def test_samples_come_from_one_call_and_the_prompt_counts_once() -> None:
    async with Loopback([Reply(texts=("a", "bb", "cccccc"))]) as server:
        client = model(server, send_seed=True)
        assert isinstance(client, SamplingModel)
        got = await client.sample(ask(temperature=1.0, seed=5), 3)
        await client.close()
    assert [c.text for c in got] == ["a", "bb", "cccccc"]
    (seen,) = server.requests
    assert (seen.body["n"], seen.body["seed"]) == (3, 5)
    assert [c.usage.prompt_tokens for c in got] == [11, 0, 0]
    assert sum(c.usage.completion_tokens for c in got) == 21
    assert client.spent.prompt_tokens == 11 and client.spent.completion_tokens == 21


async def test_samples_a_server_does_not_give_are_asked_for_with_other_seeds() -> None:
    def ignores(body: dict[str, Any]) -> Reply:
        return Reply(texts=(f"seed {body['seed']}",))

    async with Loopback(ignores) as server:
        client = model(server, send_seed=True)
        got = await client.sample(ask(seed=5), 3)
        await client.close()
    assert [c.text for c in got] == ["seed 5", "seed 6", "seed 7"]
    assert sum(c.usage.prompt_tokens for c in got) == client.spent.prompt_tokens == 33


async def test_a_server_that_refuses_n_is_not_asked_for_it_again() -> None:
    def refuses(body: dict[str, Any]) -> Reply:
        return failing(400, "n must be 1") if "n" in body else Reply(f"seed {body['seed']}")

    async with Loopback(refuses) as server:
        client = model(server, send_seed=True)
        for _ in range(2):
            got = await client.sample(ask(), 2)
            assert [c.text for c in got] == ["seed 0", "seed 1"]
        await client.close()
    assert ["n" in seen.body for seen in server.requests] == [True] + [False] * 4


async def test_a_request_that_is_wrong_in_itself_is_not_blamed_on_n() -> None:
    async with Loopback(lambda body: failing(400, "context too long")) as server:
        client = model(server)
        with pytest.raises(ModelError, match="context too long"):
            await client.sample(ask(), 2)
        with pytest.raises(ConfigError, match="n must be >= 1, got 0"):
            await client.sample(ask(), 0)
        await client.close()


async def test_all_samples_are_held_of_the_budget_before_they_are_asked_for() -> None:
    async with Loopback() as server:
        client = model(server, max_tokens=100)
        with pytest.raises(BudgetExceeded):
            await client.sample(ask(max_tokens=40), 3)
        await client.sample(ask(max_tokens=40), 2)
        await client.close()
    assert len(server.requests) == 1


# -- pictures ---------------------------------------------------------------------------------


async def test_the_screenshot_goes_with_the_users_turn_where_the_model_can_see() -> None:
    picture = png()
    decision = Decision(observation=screen(picture))
    async with Loopback() as server:
        client = model(server, vision=True)
        (completion,) = await client.generate([Request(decision=decision)])
        await client.close()
    system, user = server.requests[0].body["messages"]
    text, image = user["content"]
    assert text == {"type": "text", "text": decision_chat(decision)[1].content}
    kind, _, data = image["image_url"]["url"].partition(",")
    assert (image["type"], kind) == ("image_url", "data:image/png;base64")
    assert base64.b64decode(data) == picture
    assert isinstance(system["content"], str)
    assert f"[user, picture 3x2 ({len(picture)} bytes, " in completion.prompt
    assert chat_of(completion.prompt, pictures=[picture])[1].images == (picture,)


async def test_a_model_that_cannot_see_is_sent_no_picture() -> None:
    decision = Decision(observation=screen(png()))
    async with Loopback() as server:
        client = model(server)
        (completion,) = await client.generate([Request(decision=decision)])
        with pytest.raises(ModelError, match="vision=True"):
            await client.generate([Request(chat=(ChatMessage("user", "see", (png(),)),))])
        await client.close()
    assert [m["content"] for m in server.requests[0].body["messages"]] == [
        turn.content for turn in decision_chat(decision)
    ]
    assert "picture" not in completion.prompt.split("\n")[0]
    assert len(server.requests) == 1


async def test_pictures_of_a_chat_keep_their_turns_and_count_as_tokens() -> None:
    large = png(1080, 2400)
    chat = (ChatMessage("user", "one", (png(), large)), ChatMessage("user", "two"))
    async with Loopback() as server:
        client = model(server, vision=True, max_tokens=2000)
        small = (msgspec.structs.replace(chat[0], images=(png(),)), chat[1])
        await client.generate([Request(chat=small, max_tokens=9)])
        with pytest.raises(BudgetExceeded):
            await client.generate([Request(chat=chat, max_tokens=9)])
        await client.close()
    first, second = server.requests[0].body["messages"]
    assert [part["type"] for part in first["content"]] == ["text", "image_url"]
    assert second["content"] == "two"


async def test_a_picture_that_is_no_png_is_refused_before_anything_is_sent() -> None:
    async with Loopback() as server:
        chat = (ChatMessage("user", "see", (b"\xff\xd8\xff\xe0 a jpeg",)),)
        with pytest.raises(ModelError, match="must be a PNG file"):
            await one(model(server, vision=True), Request(chat=chat))
    assert server.requests == []


# -- schemas ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 422, 501])
async def test_a_server_without_schemas_gets_it_in_words_and_is_remembered(status: int) -> None:
    def old(body: dict[str, Any]) -> Reply:
        return failing(status) if "response_format" in body else Reply("Sure! {not json")

    async with Loopback(old) as server:
        client = model(server)
        for _ in range(2):
            (completion,) = await client.generate([ask("hello", json_schema=SCHEMA)])
            assert completion.text == "Sure! {not json"  # as it is, for the reader to judge
        (plain,) = await client.generate([ask("hello")])
        await client.close()
    assert ["response_format" in seen.body for seen in server.requests] == [True] + [False] * 3
    sent = server.requests[1].body["messages"]
    assert [turn.content for turn in chat_of(completion.prompt)] == [m["content"] for m in sent]
    assert sent[0]["content"].startswith("hello\n\n") and sent[0]["content"].endswith(SCHEMA)
    assert plain.prompt == "[user]\nhello"


async def test_a_request_that_is_wrong_in_itself_is_not_blamed_on_the_schema() -> None:
    async with Loopback(
        [failing(400, "context too long"), failing(400, "still too long"), Reply("fine")]
    ) as server:
        client = model(server)
        with pytest.raises(ModelError, match="context too long"):
            await client.generate([ask(json_schema=SCHEMA)])
        await client.generate([ask(json_schema=SCHEMA)])
        await client.close()
    formats = ["response_format" in seen.body for seen in server.requests]
    assert formats == [True, False, True]


async def test_the_schema_is_not_put_into_words_where_the_server_is_only_busy() -> None:
    async with Loopback([failing(503), Reply("{}")]) as server:
        client = model(server)
        assert await one(client, ask(json_schema=SCHEMA)) == "{}"
    assert all("response_format" in seen.body for seen in server.requests)
    assert server.requests[0].body["response_format"]["json_schema"]["schema"] == json.loads(SCHEMA)


@pytest.mark.parametrize("schema", ["{", "[]", "3"])
async def test_a_schema_that_is_none_is_refused_before_anything_is_sent(schema: str) -> None:
    async with Loopback() as server:
        with pytest.raises(ModelError, match="json_schema of a request must be a JSON object"):
            await one(model(server), ask(json_schema=schema))
    assert server.requests == []


# -- versions ---------------------------------------------------------------------------------


async def test_a_leased_version_answers_until_it_is_released_whatever_is_loaded_since() -> None:
    names = {"agent_0": "agent_0@3"}
    async with Loopback() as server:
        client = model(server, adapter_names=names)
        assert isinstance(client, VersionedModel)
        version = client.lease("agent_0")
        assert client.lease("agent_0") == version == "agent_0@3"
        names["agent_0"] = "agent_0@4"
        client.release(version)
        assert client.leased == {"agent_0@3"}
        requests = [ask(adapter=version), ask(adapter="agent_0"), ask(adapter="agent_0@4")]
        got = await client.generate(requests)
        client.release(version)
        with pytest.raises(ModelError, match="of the adapters: agent_0; got 'agent_0@3"):
            await client.generate([ask(adapter=version)])
        await client.close()
    assert [c.adapter for c in got] == ["agent_0@3", "agent_0@4", "agent_0@4"]
    assert client.leased == frozenset()


def test_a_lease_names_what_exists_and_is_given_back_once() -> None:
    client = model("http://127.0.0.1:9/v1", adapter_names={"a": "b", "b": "c"})
    with pytest.raises(ModelError, match="got 'z'"):
        client.lease("z")
    with pytest.raises(
        ModelError, match="maps 'a' to the served name 'b', which is itself an adapter"
    ):
        client.lease("a")
    version = client.lease("b")
    client.release(version)
    with pytest.raises(ModelError, match="leased versions: none; got 'c'"):
        client.release(version)
    assert model("http://127.0.0.1:9/v1").lease("own name") == "own name"
