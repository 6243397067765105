"""Converts a quantised GGUF file to a bfloat16 folder as transformers saves it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging


def convert(gguf_file: Path, folder: Path) -> None:
    """Write weights (dequantised, bfloat16), configuration and tokenizer into a folder.

    Progress bars of transformers are switched off.

    Args:
        gguf_file: a causal language model with its tokenizer and chat template.
        folder: exists and is empty.

    Raises:
        OSError, ValueError, KeyError, RuntimeError: the file cannot be read by transformers.
        Exception: the folder cannot be written; safetensors and tokenizers raise errors of their
            own.
    """
    place, name = str(gguf_file.parent), gguf_file.name
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer: Any = AutoTokenizer.from_pretrained(place, gguf_file=name)
    loaded: Any = AutoModelForCausalLM.from_pretrained(place, gguf_file=name, dtype=torch.float32)
    plain = _without_quantisation(loaded)
    plain.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def _without_quantisation(loaded: Any) -> Any:
    """A new network with the same weights, which can be saved. transformers refuses to save a
    network that was read from GGUF."""
    config = copy.deepcopy(loaded.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with torch.random.fork_rng(devices=[]):  # a new network draws weights, which are replaced
        plain = type(loaded)(config)
    plain.load_state_dict({key: value.float() for key, value in loaded.state_dict().items()})
    plain.tie_weights()
    plain.generation_config = loaded.generation_config
    return plain.to(torch.bfloat16)
