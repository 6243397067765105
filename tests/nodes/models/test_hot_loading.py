"""Adapters that are loaded on a server while it runs, against a stand-in for vLLM."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from vllm_stand_in import StandIn

from swarm_ui.errors import ModelError, ModelUnavailable
from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes import OpenAIModel, RetryPolicy
from swarm_ui.nodes.models.openai.served_adapters import adapter_version, served_name

CHAT = (ChatMessage(role="user", content="hello"),)


def ask(adapter: str | None) -> Request:
    return Request(chat=CHAT, adapter=adapter)


def model_of(server: StandIn) -> OpenAIModel:
    return OpenAIModel("base", f"{server.address}/v1", retry=RetryPolicy(retries=0))


def weights(folder: Path, content: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("version", "served"),
    [
        ("agent_2@7", "agent_2-v7"),
        ("a@0", "a-v0"),
        ("a-v1@2", "a-v1-v2"),
        ("agent_2", "agent_2"),
        ("me@home", "me@home"),
        ("a@007", "a@007"),
    ],
)
def test_a_version_and_its_name_on_a_server(version: str, served: str) -> None:
    assert served_name(version) == served
    assert adapter_version(served) == version
    assert served_name(served) == served


async def test_a_version_is_loaded_asked_and_unloaded(tmp_path: Path) -> None:
    with StandIn("base") as server:
        model = model_of(server)
        folder = weights(tmp_path / "one")
        await model.load_version("agent_2@7", folder)
        await model.load_version("agent_2@7", folder)  # the same weights: nothing to do
        assert server.adapters == {"agent_2-v7": str(folder)}
        [reply] = await model.generate([ask("agent_2@7")])
        assert (server.asked, reply.adapter) == (["agent_2-v7"], "agent_2@7")
        await model.unload_version("agent_2@7")
        await model.unload_version("agent_2@7")
        assert server.adapters == {}
        await model.close()


async def test_a_name_can_be_mapped_to_a_version_that_was_loaded(tmp_path: Path) -> None:
    with StandIn("base", {"agent_0-v1": "/srv/agent_0"}) as server:
        names = {"agent_0": "agent_0-v1"}
        model = OpenAIModel("base", f"{server.address}/v1", adapter_names=names)
        await model.load_version("agent_0@2", weights(tmp_path / "two"))
        old = model.lease("agent_0")
        names["agent_0"] = "agent_0@2"
        new = model.lease("agent_0")
        replies = await model.generate([ask(old), ask(new)])
        assert [reply.adapter for reply in replies] == ["agent_0@1", "agent_0@2"]
        assert sorted(server.asked) == ["agent_0-v1", "agent_0-v2"]
        await model.close()


async def test_other_weights_have_another_salt_of_the_prefix_cache(tmp_path: Path) -> None:
    with StandIn("base") as server:
        model = model_of(server)
        for number, content in enumerate((b"some", b"others", b"some")):
            folder = weights(tmp_path / str(number), content)
            await model.load_version(f"a@{number}", folder)
            await model.generate([ask(f"a@{number}")])
        await model.generate([ask(None)])
        first, other, again, base = server.salts
        assert first == again != other and base is None and first is not None
        await model.close()


async def test_a_server_that_was_restarted_gets_its_adapters_again(tmp_path: Path) -> None:
    with StandIn("base") as server:
        model = model_of(server)
        await model.load_version("a@1", weights(tmp_path / "a"))
        await model.load_version("b@1", weights(tmp_path / "b"))
        server.dead = True
        with pytest.raises(ModelUnavailable):
            await model.generate([ask("a@1")])
        server.restart()
        asked = [ask("a@1"), ask("b@1")] * 3
        replies = await model.generate(asked)
        assert [reply.adapter for reply in replies] == ["a@1", "b@1"] * 3
        assert set(server.adapters) == {"a-v1", "b-v1"}
        await model.close()


async def test_a_name_with_other_weights_is_not_used(tmp_path: Path) -> None:
    with StandIn("base", {"a-v1": "/another/run/a-v1"}) as server:
        model = model_of(server)
        with pytest.raises(ModelError, match="'a-v1' is loaded already, from /another/run/a-v1"):
            await model.load_version("a@1", weights(tmp_path / "a"))
        assert server.adapters == {"a-v1": "/another/run/a-v1"}
        await model.close()


async def test_what_an_earlier_process_of_the_run_left_behind_is_replaced(tmp_path: Path) -> None:
    left = weights(tmp_path / "served" / "a-v1-old")
    with StandIn("base", {"a-v1": str(left)}) as server:
        model = model_of(server)
        new = weights(tmp_path / "served" / "a-v1-new")
        await model.load_version("a@1", new)
        assert server.adapters == {"a-v1": str(new)}
        await model.close()


async def test_a_server_that_cannot_load_adapters(tmp_path: Path) -> None:
    with StandIn("base", can_load=False) as server:
        model = model_of(server)
        with pytest.raises(ModelError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
            await model.load_version("a@1", weights(tmp_path / "a"))
        with pytest.raises(ModelError, match="the tokens of a chat"):
            await model.tokens(CHAT)
        await model.close()


async def test_an_adapter_of_somebody_else_is_not_loaded_again() -> None:
    with StandIn("base", {"theirs": "/srv/theirs"}) as server:
        model = model_of(server)
        await model.generate([ask("theirs")])
        server.restart()
        with pytest.raises(ModelError, match="`theirs` does not exist"):
            await asyncio.wait_for(model.generate([ask("theirs")]), 10.0)
        await model.close()
