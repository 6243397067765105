"""The versions of VLLMModel, with a stand-in for vLLM's engine."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from swarm_ui.nodes import VLLMModel
from swarm_ui.nodes.models import vllm_model


class LoRARequest(NamedTuple):
    lora_name: str
    lora_int_id: int
    lora_path: str


class Engine:
    """Holds adapters, and refuses those of a folder that does not exist."""

    def __init__(self) -> None:
        self.held: dict[int, LoRARequest] = {}
        self.names: list[str] = []

    def get_tokenizer(self) -> object:
        return object()

    async def add_lora(self, lora: LoRARequest) -> None:
        if not Path(lora.lora_path).is_dir():
            raise ValueError("no such folder")
        await asyncio.sleep(0)
        self.held[lora.lora_int_id] = lora
        self.names.append(lora.lora_name)

    async def remove_lora(self, id: int) -> None:
        del self.held[id]


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def model(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> VLLMModel:
    request: Any = ModuleType("vllm.lora.request")
    request.LoRARequest = LoRARequest
    for name, module in (("vllm", ModuleType("vllm")), ("vllm.lora", ModuleType("vllm.lora")),
                         ("vllm.lora.request", request)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vllm_model, "_started", lambda arguments: engine)
    monkeypatch.setattr(vllm_model, "ChatReader", lambda tokenizer, name: None)
    return VLLMModel("base")


async def test_no_served_name_is_given_twice_and_old_versions_go(
    model: VLLMModel, engine: Engine, tmp_path: Path
) -> None:
    for number in (7, 8, 7):  # other weights, perhaps
        await model.load_version(f"agent@{number}", tmp_path)
        assert model.adapters == ("agent",) and len(engine.held) == 1
    assert len(set(engine.names)) == len(engine.names) == 3
    held = model.lease("agent")
    await model.load_version("agent@9", tmp_path)
    assert len(engine.held) == 2
    model.release(held)
    await model.generate([])
    assert len(engine.held) == 1


async def test_a_version_that_is_loaded_twice_at_once_is_held_once(
    model: VLLMModel, engine: Engine, tmp_path: Path
) -> None:
    await asyncio.gather(*(model.load_version("agent@3", tmp_path) for _ in range(3)))
    assert len(engine.held) == 1
