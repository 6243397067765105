"""Networks of other architectures: with adapters as peft computes them, in batches as alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from local_models import answers, disturb
from tiny_causal import tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from swarm_ui.errors import ConfigError
from swarm_ui.model import ChatMessage, Completion, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation

KINDS: dict[str, dict[str, Any]] = {
    # A window, in the cache or in the masks; distances by column; a recurrent state.
    "mistral": {"sliding_window": 16},
    "gpt_neo": {
        "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
        "window_size": 16,
    },
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "expansion_ratio": 2},
    "granitemoehybrid": {
        "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_expand": 2, "num_local_experts": 0,
        "layer_types": ["mamba", "attention"], "shared_intermediate_size": 48,
    },
    # Layers that get two dimensions.
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
}  # fmt: skip

SCALED: dict[str, dict[str, Any]] = {
    "cohere": {"logit_scale": 0.25}, "granite": {"logits_scaling": 8.0},
    "gemma2": {"final_logit_softcapping": 0.5, "head_dim": 8, "query_pre_attn_scalar": 8},
}  # fmt: skip


def network(kind: str, **more: Any) -> PreTrainedModel:
    """A tiny network with random weights."""
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer()), "hidden_size": 32, "intermediate_size": 48,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": 2048, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        config = AutoConfig.for_model(kind, **sizes | KINDS.get(kind, SCALED.get(kind, {})) | more)
        made: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.mul_(6)
    return made


def with_adapters(kind: str) -> CausalModel:
    model = CausalModel(network(kind), tokenizer(), name=kind, prompt_format="compact")
    for k in range(2):
        model.add_adapter(f"agent_{k}", rank=4, alpha=16)
        disturb(model, f"agent_{k}", k, 0.1)
    return model


def decisions() -> list[Request]:
    """Screens with labels of different lengths, so that rows differ in tokens without a choice."""
    asked = []
    for k in range(6):
        labels = [f"{' '.join(['Save the file'] * (n % 3 + 1))} {n * k}" for n in range(k + 2)]
        elements = tuple(
            Element(index=n, role="button", text=label) for n, label in enumerate(labels)
        )
        decision = Decision(observation=Observation(goal=f"press {k}", elements=elements))
        asked.append(
            Request(
                decision=decision, max_tokens=40, seed=k, temperature=k % 2,
                adapter=(None, "agent_0", "agent_1")[k % 3],
            )
        )  # fmt: skip
    return asked


def logits(model: CausalModel, ids: torch.Tensor, adapter: str | None) -> torch.Tensor:
    """The logits of some rows, by peft."""
    module: Any = model.module
    with torch.no_grad():
        if adapter is None:
            with model.routed([None]):
                return model.network(input_ids=ids, use_cache=False).logits  # type: ignore[no-any-return,operator]
        module.set_adapter(adapter)
        return module(input_ids=ids, use_cache=False).logits  # type: ignore[no-any-return]


def logprob(model: CausalModel, request: Request, reply: Completion) -> float:
    """The log-probability of a reply, from one forward of prompt and reply."""
    prompt = model.prompt(request)
    new = list(reply.sampled) or model.codec.spoken(prompt, reply.text)
    ids = torch.tensor([prompt.ids + new])
    gained = logits(model, ids, request.adapter)[0, :-1].log_softmax(-1)
    return float(gained.gather(1, ids[0, 1:, None])[-len(new) :].sum())


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.slow if "hybrid" in k else ()) for k in KINDS]
)
def test_replies_in_a_batch_are_those_of_a_row_alone(kind: str) -> None:
    model = with_adapters(kind)
    together = answers(model, decisions())
    for request, got in zip(decisions(), together, strict=True):
        model.forget_prompts()
        [alone] = answers(model, [request])
        assert got.text == alone.text
        assert got.logprob == pytest.approx(alone.logprob, abs=1e-3)
        assert got.logprob == pytest.approx(logprob(model, request, got), abs=1e-3)


@pytest.mark.parametrize("kind", ["cohere", "granite", "gemma2"])
def test_probabilities_of_options_are_those_of_scaled_and_capped_logits(kind: str) -> None:
    model = with_adapters(kind)
    options = ["yes", "no", "maybe"]
    firsts = [model.codec.first_token(option) for option in options]
    turns = [(ChatMessage("user", f"Is it right to press {'it ' * k}now?"),) for k in range(3)]
    asked = [Request(chat=turn) for turn in turns]
    found = asyncio.run(model.probabilities(asked, options))
    wanted = []
    for request in asked:
        ids = torch.tensor([model.prompt(request).ids])
        wanted.append(logits(model, ids, None)[0, -1, firsts].softmax(0))
    assert torch.allclose(torch.tensor(found), torch.stack(wanted), atol=1e-4)


@pytest.mark.parametrize("kind", ["mixtral", "qwen2_moe"])
def test_a_network_with_experts_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match="experts"):
        CausalModel(network(kind), tokenizer())


def test_a_network_with_logits_of_its_own_is_refused() -> None:
    made = network("falcon_h1", lm_head_multiplier=0.5, mamba_d_ssm=32, mamba_n_heads=4)
    with pytest.raises(ConfigError, match="expected logits of its output layer"):
        CausalModel(made, tokenizer())
