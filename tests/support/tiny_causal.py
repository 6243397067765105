"""Tiny language models of transformers with random weights, and a tokenizer for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from swarm_ui.model import ChatMessage, Decision, Request
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import decision_chat

KINDS = ["llama", "gpt2", "mistral"]

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def screen(label: str = "Save") -> Decision:
    element = Element(index=0, role="button", text=label)
    return Decision(observation=Observation(goal=f"press {label}", elements=(element,)))


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    prompt = [turn.content for turn in decision_chat(screen())]
    raw.train_from_iterator([*prompt, '{"action_type":"click","target":"Save","index":0}'], trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        chat_template=template,
    )  # fmt: skip


def network(kind: str, words: int) -> PreTrainedModel:
    """With random weights that are large enough to give decided answers."""
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    like_llama: dict[str, Any] = {
        "vocab_size": words, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048, **ends,
    }  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made: PreTrainedModel
        if kind == "llama":
            made = LlamaForCausalLM(LlamaConfig(**like_llama))
        elif kind == "mistral":  # a cache that forgets
            made = MistralForCausalLM(MistralConfig(**like_llama, sliding_window=16))
        else:  # learned positions, another kind of linear layer
            made = GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=words, n_positions=2048, n_embd=32, n_layer=2, n_head=4, **ends
                )
            )
        with torch.no_grad():
            for weight in made.parameters():
                if weight.dim() > 1:
                    weight.mul_(8)
    return made


def causal(kind: str = "llama", prompt_format: str = "json") -> CausalModel:
    """A model that was never saved."""
    words = tokenizer()
    return CausalModel(network(kind, len(words)), words, name=kind, prompt_format=prompt_format)


def saved(folder: Path) -> Path:
    """A model with room for the prompts of the phone, as transformers saves it."""
    words = tokenizer()
    model = network("llama", len(words))
    model.config.max_position_embeddings = 16_384
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def reads_alike(folder: Path) -> Callable[[Sequence[Mapping[str, str]]], list[int]]:
    """The tokens of the turns of a chat, as the saved model reads them."""
    reader = CausalModel.from_pretrained(folder)

    def tokens(turns: Sequence[Mapping[str, str]]) -> list[int]:
        chat = tuple(ChatMessage(role="user", content=turn["content"]) for turn in turns)
        return reader.prompt(Request(chat=chat)).ids

    return tokens
