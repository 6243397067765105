"""Checks of VLLMModel with vLLM's CPU build. They run in vLLM's own environment, without peft:
``test_vllm_engine.py`` starts them there. One engine, made with a tiny random model, serves all."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from swarm_ui import CollabGraph
from swarm_ui.errors import ModelError
from swarm_ui.model import ChatMessage, Request, VersionedModel
from swarm_ui.nodes import VLLMModel
from swarm_ui.observation import Element, Observation

pytestmark = pytest.mark.asyncio(loop_scope="module")
assert os.environ["VLLM_CPU_KVCACHE_SPACE"], (
    "test_vllm_engine.py sets the environment of the CPU build"
)
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
LAYERS, WIDTH, RANK = 2, 128, 4
SCREEN = Observation(
    goal="save the page",
    elements=(
        Element(index=0, role="button", text="Save"),
        Element(index=1, role="field", text="Name", editable=True),
    ),
)
CHAT = (ChatMessage(role="user", content="press Save"),)


def saved_model(folder: Path) -> Path:
    """A tiny Llama with random weights, large enough to give decided answers."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(
        ["click save [0]", "input_text name [1] : milk", "press Save"],
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=["<s>", "</s>", "<pad>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )  # fmt: skip
    words = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        chat_template=TEMPLATE,
    )  # fmt: skip
    torch.manual_seed(0)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words), hidden_size=WIDTH, intermediate_size=256,
            num_hidden_layers=LAYERS, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=1024, bos_token_id=0, eos_token_id=1, pad_token_id=2,
        )
    )  # fmt: skip
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() > 1:
                weight.mul_(4)
    network.save_pretrained(str(folder))
    words.save_pretrained(str(folder))
    return folder


def saved_adapter(folder: Path, seed: int) -> Path:
    """A random adapter in peft's format, as ``swarm_ui`` writes it."""
    draw = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(LAYERS):
        place = f"base_model.model.model.layers.{layer}.self_attn.o_proj"
        tensors[f"{place}.lora_A.weight"] = torch.randn(RANK, WIDTH, generator=draw)
        tensors[f"{place}.lora_B.weight"] = torch.randn(WIDTH, RANK, generator=draw)
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    (folder / "adapter_config.json").write_text(
        '{"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "lora_alpha": 8, '
        '"bias": "none", "target_modules": ["o_proj"], "base_model_name_or_path": ""}'
    )
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(place: Path) -> AsyncIterator[VLLMModel]:
    settings = {"dtype": "float32", "enforce_eager": True, "max_model_len": 512}
    engine = VLLMModel(place, prompt_format="compact", settings=settings, max_loras=2)
    yield engine
    await engine.close()


def ask(adapter: str | None = None, **fields: Any) -> Request:
    return Request(chat=CHAT, adapter=adapter, max_tokens=12, **fields)


async def text(model: VLLMModel, adapter: str | None) -> str:
    [reply] = await model.generate([ask(adapter)])
    return reply.text


async def test_greedy_replies_and_logprobs_are_those_of_transformers(
    model: VLLMModel, place: Path
) -> None:
    [reply] = await model.generate([ask()])
    network = LlamaForCausalLM.from_pretrained(str(place), dtype=torch.float32)
    words = PreTrainedTokenizerFast.from_pretrained(str(place))
    ids = torch.tensor([model._reader.prompt(CHAT).ids])
    with torch.inference_mode():
        whole = network.generate(ids, max_new_tokens=12, do_sample=False)
        logprobs = network(whole).logits.log_softmax(-1)
    new = whole[0, ids.shape[1] :]
    at = logprobs[0, ids.shape[1] - 1 : -1]
    whole_text = words.decode(new, skip_special_tokens=True)
    assert reply.text == whole_text.rstrip("\ufffd")  # vLLM leaves half a character out
    assert reply.logprob == pytest.approx(float(at.gather(1, new[:, None]).sum()), abs=1e-2)
    assert reply.prompt == "<|user|>press Save</s><|assistant|>"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (ids.shape[1], len(new))


async def test_each_version_answers_as_itself(model: VLLMModel, tmp_path: Path) -> None:
    assert isinstance(model, VersionedModel)
    base = await text(model, None)
    first = "agent_0@0"
    await model.load_version(first, saved_adapter(tmp_path / "1", 1))
    old = await text(model, "agent_0")
    held = model.lease("agent_0")
    second = "agent_0@1"
    await model.load_version(second, saved_adapter(tmp_path / "2", 2))
    assert (first, held, second) == ("agent_0@0", "agent_0@0", "agent_0@1")
    new = await text(model, "agent_0")
    assert len({base, old, new}) == 3
    # Prefix caches must not mix versions, and a leased version stays.
    assert (await text(model, held), await text(model, "agent_0@1")) == (old, new)
    model.release(held)
    with pytest.raises(ModelError, match="no adapter 'agent_0@0'"):
        await model.generate([ask("agent_0@0")])
    with pytest.raises(ModelError, match="is not leased"):
        model.release(held)
    assert model.adapters == ("agent_0",)


async def test_agents_with_different_adapters_in_one_batch(
    model: VLLMModel, tmp_path: Path
) -> None:
    for k in range(2):
        await model.load_version(f"agent_{k}@7", saved_adapter(tmp_path / str(k), 10 + k))
    alone = [await text(model, f"agent_{k}") for k in range(2)]
    replies = await model.generate([ask(f"agent_{k % 2}") for k in range(8)])
    assert [reply.text for reply in replies] == alone * 4
    assert [reply.adapter for reply in replies] == ["agent_0@7", "agent_1@7"] * 4
    team = CollabGraph.collaborative(2, 1, model=model, adapters=["agent_0", "agent_1"])
    trace = await team.run(SCREEN)
    assert {c.adapter for c in trace.calls if c.adapter} == {"agent_0@7", "agent_1@7"}
    assert trace.action is not None  # replies are restricted to what the screen allows
