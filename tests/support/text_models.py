"""Tiny random language models that read and write text, with a byte-level tokenizer."""

from __future__ import annotations

import functools

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from swarm_ui.model import Decision
from swarm_ui.nodes import CausalModel
from swarm_ui.observation import Element, Observation
from swarm_ui.prompts import FORMATS

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def text_model(
    *,
    prompt_format: str = "compact",
    dtype: torch.dtype = torch.float32,
    layers: int = 2,
    context: int = 1024,
    size: float = 8.0,
    constrained: bool | None = None,
) -> CausalModel:
    """A random Llama. ``size``: factor of its weights; larger ones give more decided replies."""
    words = _tokenizer()
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=48, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=context,
        bos_token_id=0, eos_token_id=1, pad_token_id=2,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = LlamaForCausalLM(config)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.dim() > 1:
                weight.mul_(size)
    return CausalModel(
        network.to(dtype), words, name="tiny-llama", prompt_format=prompt_format,  # type: ignore[arg-type]
        constrained=constrained,
    )  # fmt: skip


def screen_of(label: str = "Save", more: int = 3) -> Decision:
    """A screen with a button of this label and some others."""
    labels = [label, *(f"Other {k}" for k in range(more))]
    elements = tuple(Element(index=k, role="button", text=t) for k, t in enumerate(labels))
    return Decision(observation=Observation(goal=f"press {label}", elements=elements))


@functools.cache
def _tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    prompt = [turn.content for turn in FORMATS["compact"].chat(screen_of())]
    raw.train_from_iterator([*prompt * 3, "click Save [0]", "status complete"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        chat_template=TEMPLATE,
    )  # fmt: skip
