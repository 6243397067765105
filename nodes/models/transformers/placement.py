"""Options for loading the weights of a model: devices, and 4-bit quantisation."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from swarm_ui.errors import ConfigError, MissingExtra

SPREAD = ("auto", "balanced", "sequential")
"""Ways in which accelerate distributes layers over devices."""
QUANTIZED = ("", "4bit")


def placement(device: str, quantize: str) -> dict[str, Any]:
    """Options of ``from_pretrained``; empty: load on the CPU, and move the network afterwards.

    Raises:
        ConfigError: the quantisation does not exist.
        MissingExtra: it needs bitsandbytes, which is not installed.
    """
    if quantize not in QUANTIZED:
        raise ConfigError(f"quantize must be '4bit' or empty, got {quantize!r}")
    options: dict[str, Any] = {"device_map": device} if device in SPREAD else {}
    if not quantize:
        return options
    if find_spec("bitsandbytes") is None:
        raise MissingExtra("qlora", "a base model in 4 bits", "bitsandbytes")
    import torch
    from transformers import BitsAndBytesConfig

    options["quantization_config"] = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    options.setdefault("device_map", {"": device})
    return options
