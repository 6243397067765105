"""Tiny language models of transformers with random weights, and tokenizers for them."""

from __future__ import annotations

import functools
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
from swarm_ui.prompts import FORMATS, decision_chat

KINDS = ["llama", "gpt2", "mistral"]
ENDS: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def screen(label: str = "Save", more: int = 0) -> Decision:
    """A screen with a button of this label and some others."""
    labels = [label, *(f"Other {k}" for k in range(more))]
    elements = tuple(Element(index=k, role="button", text=t) for k, t in enumerate(labels))
    return Decision(observation=Observation(goal=f"press {label}", elements=elements))


def trained(
    texts: Sequence[str], words: int, template: str | None = TEMPLATE
) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with at most so many words, trained on some texts."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=words, special_tokens=["<s>", "</s>", "<pad>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    raw.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        chat_template=template,
    )  # fmt: skip


def tokenizer(template: str | None = TEMPLATE) -> PreTrainedTokenizerFast:
    """Trained on a prompt in the format ``json``."""
    prompt = [turn.content for turn in decision_chat(screen())]
    return trained([*prompt, '{"action_type":"click","target":"Save","index":0}'], 700, template)


def sizes(words: int, context: int, hidden: int = 32, inner: int = 48) -> dict[str, Any]:
    return {
        "vocab_size": words, "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "max_position_embeddings": context, **ENDS,
    }  # fmt: skip


def made(make: Callable[[], PreTrainedModel], seed: int = 0, size: float = 8.0) -> PreTrainedModel:
    """Random weights; ``size``: their factor. Larger ones give more decided answers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = make()
    with torch.no_grad():
        for weight in made.parameters():
            if weight.dim() > 1:
                weight.mul_(size)
    return made


def network(kind: str, words: int) -> PreTrainedModel:
    """A network of each kind."""
    if kind == "llama":
        return made(lambda: LlamaForCausalLM(LlamaConfig(**sizes(words, 2048))))
    if kind == "mistral":  # a cache that forgets
        config = MistralConfig(**sizes(words, 2048), sliding_window=16)
        return made(lambda: MistralForCausalLM(config))
    # Learned positions, another kind of linear layer.
    config = GPT2Config(vocab_size=words, n_positions=2048, n_embd=32, n_layer=2, n_head=4, **ENDS)
    return made(lambda: GPT2LMHeadModel(config))


def causal(kind: str = "llama", prompt_format: str = "json") -> CausalModel:
    """A model that was never saved."""
    words = tokenizer()
    return CausalModel(network(kind, len(words)), words, name=kind, prompt_format=prompt_format)


@functools.cache
def _compact_words() -> PreTrainedTokenizerFast:
    prompt = [turn.content for turn in FORMATS["compact"].chat(screen(more=3))]
    return trained([*prompt * 3, "click Save [0]", "status complete"], 500)


def text_model(
    *,
    prompt_format: str = "compact",
    dtype: torch.dtype = torch.float32,
    layers: int = 2,
    context: int = 1024,
    size: float = 8.0,
    constrained: bool | None = None,
) -> CausalModel:
    """A Llama that reads and writes compact prompts."""
    words = _compact_words()
    config = LlamaConfig(**{**sizes(len(words), context), "num_hidden_layers": layers})
    return CausalModel(
        made(lambda: LlamaForCausalLM(config), size=size).to(dtype), words, name="tiny-llama",  # type: ignore[arg-type]
        prompt_format=prompt_format, constrained=constrained,
    )  # fmt: skip


def save_model(folder: Path, model: PreTrainedModel, words: PreTrainedTokenizerFast) -> Path:
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


def saved(folder: Path) -> Path:
    """A model with room for the prompts of the phone, as transformers saves it."""
    words = tokenizer()
    model = network("llama", len(words))
    model.config.max_position_embeddings = 16_384
    return save_model(folder, model, words)


def save_llama(folder: Path, *, seed: int = 0, tied: bool = True) -> Path:
    """A few thousand weights, and a tokenizer of single bytes."""
    words = trained([], 259)
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": tied}
    config = LlamaConfig(**{**sizes(len(words), 4096, 16, 24), **heads})
    return save_model(folder, made(lambda: LlamaForCausalLM(config), seed), words)


def write_tiny_model(folder: Path) -> Path:
    """Small weights, and a tokenizer that knows the question of a critic."""
    text = "Goal: App: Done: nothing button item field click status Is this reply right? yes no"
    words = trained([text] * 2, 500)
    config = LlamaConfig(**sizes(len(words), 4096, 32, 64))
    return save_model(folder, made(lambda: LlamaForCausalLM(config), size=1.0), words)


def reads_alike(folder: Path) -> Callable[[Sequence[Mapping[str, str]]], list[int]]:
    """The tokens of the turns of a chat, as the saved model reads them."""
    reader = CausalModel.from_pretrained(folder)

    def tokens(turns: Sequence[Mapping[str, str]]) -> list[int]:
        chat = tuple(ChatMessage(role="user", content=turn["content"]) for turn in turns)
        return reader.prompt(Request(chat=chat)).ids

    return tokens
