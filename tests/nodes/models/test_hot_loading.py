"""Adapters that are loaded on a server while it runs, against a stand-in for vLLM."""

from __future__ import annotations

from pathlib import Path

import pytest
from vllm_stand_in import StandIn

from swarm_ui.errors import ModelError
from swarm_ui.model import ChatMessage, Request
from swarm_ui.nodes import OpenAIModel

CHAT = (ChatMessage(role="user", content="hello"),)


def ask(adapter: str | None) -> Request:
    return Request(chat=CHAT, adapter=adapter)


def model_of(server: StandIn) -> OpenAIModel:
    return OpenAIModel("base", f"{server.address}/v1", max_retries=0)


def weights(folder: Path, content: bytes = b"weights") -> Path:
    folder.mkdir(parents=True)
    (folder / "adapter_model.safetensors").write_bytes(content)
    return folder


async def test_other_weights_have_another_name_on_the_server(tmp_path: Path) -> None:
    """Servers keep cached prompts under the name; another run may have loaded other weights."""
    with StandIn("base") as server:
        for number, content in enumerate((b"some", b"others", b"some")):
            model = model_of(server)
            await model.load_version("a@1", weights(tmp_path / str(number), content))
            await model.generate([ask("a@1")])
            await model.close()
        first, other, again = server.asked
        assert first == again != other and len(server.adapters) == 2


async def test_a_server_that_cannot_load_adapters(tmp_path: Path) -> None:
    with StandIn("base", can_load=False) as server:
        model = model_of(server)
        with pytest.raises(ModelError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"):
            await model.load_version("a@1", weights(tmp_path / "a"))
        with pytest.raises(ModelError, match="the tokens of a chat"):
            await model.tokens(CHAT)
        await model.close()
