"""A causal language model of a few thousand random weights, in a folder."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def save_llama(folder: Path, *, seed: int = 0, tied: bool = True) -> Path:
    """Weights in float32, and a tokenizer of single bytes; returns the folder."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: k for k, word in enumerate(["<s>", "</s>", "<pad>", *letters])}
    raw = Tokenizer(models.BPE(vocab=words, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", pad_token="<pad>",
        chat_template=TEMPLATE,
    )  # fmt: skip
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=4096,
        bos_token_id=0, eos_token_id=1, pad_token_id=2, tie_word_embeddings=tied,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = LlamaForCausalLM(config)
        with torch.no_grad():
            for weight in network.parameters():
                if weight.dim() > 1:
                    weight.mul_(8)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
