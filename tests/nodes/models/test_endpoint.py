"""The endpoint model against a server in this process: requests, retries and secrets."""

from __future__ import annotations

import asyncio
import base64
import io
import pickle
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest
from loopback import GOOD, Loopback, Reply, failing, too_many
from loopback_client import (
    ask,
    model,
    no_proxy,  # noqa: F401  (a fixture)
    one,
    records,
)
from PIL import Image
from vllm_stand_in import StandIn

from swarm_ui.budget import Budget, Price
from swarm_ui.collab_graph import CollabGraph
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import OpenAIModel, RateLimits
from swarm_ui.nodes.models.openai.failures import pause
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import decision_chat, transcript

NOWHERE = "http://127.0.0.1:9/v1"


def png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(file, "PNG")
    return file.getvalue()


def screen(picture: bytes | None = None) -> Observation:
    return Observation(
        goal="g", elements=(Element(index=0, role="button", text="Save"),), png=picture
    )


# -- requests and replies --------------------------------------------------------------------


async def test_sends_the_request_and_returns_the_exact_prompt() -> None:
    decision = Decision(observation=screen())
    async with Loopback([Reply(logprobs=(-0.5, -0.25))]) as server:
        client = model(server, logprobs=True, extra_body={"top_k": 5})
        (completion,) = await client.generate([Request(decision=decision)])
        await client.close()
    body = server.requests[0].body
    assert completion.text == GOOD
    assert completion.prompt == transcript(decision_chat(decision))
    assert [m["content"] for m in body["messages"]] == [t.content for t in decision_chat(decision)]
    assert body["top_k"] == 5 and body["logprobs"] is True
    assert completion.logprob == pytest.approx(-0.75)
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (11, 7)
    assert client.budget.calls == 1


async def test_the_screenshot_goes_with_the_users_turn_where_the_model_can_see() -> None:
    picture = png()
    decision = Decision(observation=screen(picture))
    async with Loopback() as server:
        client, blind = model(server, vision=True), model(server)
        (completion,) = await client.generate([Request(decision=decision)])
        await blind.generate([Request(decision=decision)])
        with pytest.raises(ModelError, match="vision=True"):
            await blind.generate([Request(chat=(ChatMessage("user", "see", (picture,)),))])
        with pytest.raises(ModelError, match="PNG"):
            await client.generate([Request(chat=(ChatMessage("user", "see", (b"a jpeg",)),))])
        await client.close()
        await blind.close()
    seen, unseen = (request.body["messages"] for request in server.requests)
    text, image = seen[1]["content"]
    assert text == {"type": "text", "text": decision_chat(decision)[1].content}
    kind, _, data = image["image_url"]["url"].partition(",")
    assert (image["type"], kind) == ("image_url", "data:image/png;base64")
    assert base64.b64decode(data) == picture
    assert ", picture " in completion.prompt
    assert [m["content"] for m in unseen] == [turn.content for turn in decision_chat(decision)]


# -- faults ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        too_many("0"),
        failing(500),
        failing(503),
        Reply(cut=True),
        Reply(body="<html>"),
        Reply(body='{"choices": []}'),
        Reply(body='{"choices": {"0": "wrong"}}'),
        Reply(body='{"choices": [{"message": {"content": 3}}]}'),
        Reply(body=""),
    ],
    ids=lambda r: f"{r.status}-{r.body or ('cut' if r.cut else '')}"[:24],
)
async def test_tries_again_after_a_passing_fault(fault: Reply) -> None:
    async with Loopback([fault, fault, Reply("good")]) as server:
        client = model(server)
        assert await one(client) == "good"
    assert len(server.requests) == 3
    assert client.budget.calls == 3


# -- settings --------------------------------------------------------------------------------


async def test_a_server_may_keep_no_list_of_models() -> None:
    async with Loopback(models_status=404) as server:
        client = model(server)
        assert await client.check() == ()
        await client.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests": 0},
        {"concurrency": 0},
        {"max_retries": -1},
        {"timeout": 0.0},
        {"period": float("nan")},
        {"max_calls": -1},
        {"base_url": "localhost:8000"},
        {"base_url": "http://ada:secret@localhost/v1"},
        {"base_url": "http://localhost/v1?key=secret"},
        {"api_key_env": ""},
        {"max_cost": -0.5},
        {"max_cost": 1.0},
        {"max_cost": float("inf"), "prices": {"tiny": Price(prompt=1, completion=1)}},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        OpenAIModel("tiny", **records(**({"base_url": NOWHERE} | wrong)))
    with pytest.raises(ConfigError, match="model"):
        OpenAIModel(" ", NOWHERE)


async def test_a_reply_that_came_while_the_event_loop_was_blocked_is_in_time() -> None:
    def reply(body: object) -> str:
        time.sleep(0.2)
        return GOOD

    with StandIn("tiny", reply=reply) as server:
        client = OpenAIModel("tiny", f"{server.address}/v1", max_retries=0, timeout=0.6)
        asked = asyncio.create_task(client.generate([ask()]))
        await asyncio.sleep(0.1)
        time.sleep(1.0)  # such as the forward pass of a model
        assert [each.text for each in await asked] == [GOOD]
        await client.close()


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ({"retry-after": "3"}, 3.0, 3.0),
        ({"retry-after": "in a minute"}, 30.0, 60.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0, 0.0),
        ({"retry-after": "3600"}, 0.0, 0.5),
        ({"retry-after": "soon"}, 0.0, 0.5),
    ],
)
def test_a_server_says_when_to_ask_again(said: dict[str, str], least: float, most: float) -> None:
    if said.get("retry-after") == "in a minute":
        said = {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=60))}
    error: Any = SimpleNamespace(response=SimpleNamespace(headers=said))
    assert least <= pause(error, 1) <= most


# -- other processes -------------------------------------------------------------------------


async def test_the_key_is_never_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
        client = model(server)
        await client.generate([ask()])
        team = CollabGraph.collaborative(agents=2, rounds=1, model=client)
        message = cloudpickle.dumps([client, team])
        assert b"0123456789" not in message
        await client.close()
        monkeypatch.setenv("OPENAI_API_KEY", "the-worker's-own")
        copy = pickle.loads(message)[0]
        await one(copy)
        assert server.requests[-1].authorization == "Bearer the-worker's-own"


@pytest.mark.parametrize(
    "limited",
    [
        {"budget": Budget(max_calls=5)},
        {"budget": Budget(max_tokens=5)},
        {"budget": Budget(max_cost=1.0, prices={"tiny": Price(prompt=1, completion=1)})},
        {"limits": RateLimits(requests=5)},
    ],
    ids=lambda given: next(iter(given)),
)
def test_limits_that_each_copy_would_count_for_itself_are_not_sent(limited: Any) -> None:
    with pytest.raises(ConfigError, match="hold_model"):
        cloudpickle.dumps(OpenAIModel("tiny", NOWHERE, **limited))


# -- adapters that are loaded while the server runs ------------------------------------------


def weights(folder: Path, content: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(content)
    return folder


async def test_other_weights_have_another_name_on_the_server(tmp_path: Path) -> None:
    """Servers keep cached prompts under the name; another run may have loaded other weights."""
    with StandIn("tiny") as server:
        for number, content in enumerate((b"some", b"others", b"some")):
            client = model(f"{server.address}/v1", max_retries=0)
            await client.load_version("a@1", weights(tmp_path / str(number), content))
            await one(client, ask(adapter="a@1"))
        first, other, again = server.asked
        assert first == again != other and len(server.adapters) == 2


async def test_a_server_that_cannot_load_adapters(tmp_path: Path) -> None:
    with StandIn("tiny", can_load=False) as server:
        client = model(f"{server.address}/v1", max_retries=0)
        with pytest.raises(ModelError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
            await client.load_version("a@1", weights(tmp_path / "a"))
        with pytest.raises(ModelError, match="the tokens of a chat"):
            await client.tokens((ChatMessage("user", "hello"),))
        await client.close()
