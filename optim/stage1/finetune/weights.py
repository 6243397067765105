"""The network of a stage: its weights, their precision, and its adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM

from swarm_ui.adapter_metadata import fingerprint, read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1.finetune.config import FinetuneConfig

UNLOADABLE = (OSError, ValueError, KeyError, RuntimeError, ImportError)
_EAGER_BYTES = 2**32
"""Memory of attention weights above which a fused kernel is used instead."""


def computes_bfloat16(config: FinetuneConfig) -> bool:
    """Whether to compute in bfloat16: the setting, or what the processor can do."""
    if config.bf16 is not None:
        return config.bf16
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if torch.accelerator.is_available():
        return False
    return bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


def load_network(model: Path, before: Path | None, config: FinetuneConfig, *, longest: int) -> Any:
    """The network to train, with its adapter.

    With LoRA and computation in bfloat16, the frozen weights are in bfloat16, and norms and
    adapters in float32.

    Args:
        model: folder of the base model.
        before: folder of the previous stage, or of the adapter to start from, if any.
        config: settings.
        longest: tokens of the longest sample.

    Raises:
        ConfigError: the folder holds no causal language model, or the model lacks layers that
            ``config.layers`` names.
    """
    if config.method == "full":
        return load_weights(model if before is None else before, config, longest=longest)
    network = load_weights(model, config, longest=longest)
    if computes_bfloat16(config):
        for module in network.modules():
            if type(module).__name__.endswith("Norm"):
                module.float()  # faster and more exact than casting their input
    if before is not None:
        base = fingerprint(network.state_dict().values())
        read_metadata(before).expect_base(before, model.name, base)
        return PeftModel.from_pretrained(network, str(before), is_trainable=True)
    adapter = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=_linear_names(network) if config.layers else "all-linear",
        layers_to_transform=list(config.layers) or None,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return get_peft_model(network, adapter)


def load_weights(folder: Path, config: FinetuneConfig, *, longest: int) -> Any:
    """A causal language model. Raises ``ConfigError`` if the folder holds none."""
    frozen = computes_bfloat16(config) and config.method != "full"
    try:
        shape = AutoConfig.from_pretrained(str(folder)).get_text_config()
        _check_layers(config, getattr(shape, "num_hidden_layers", 0), folder)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(folder),
            dtype=torch.bfloat16 if frozen else torch.float32,
            use_safetensors=True,
            output_loading_info=True,
            **_attention(shape, config, longest),
        )
    except UNLOADABLE as error:
        raise ConfigError(f"finetune: no causal language model in '{folder}': {error}") from error
    network, found = loaded
    lost = sorted(found["missing_keys"])
    if lost:  # transformers would initialise them at random
        raise ConfigError(
            f"finetune: some weights are missing in '{folder}', such as {lost[0]}; "
            "save the model again, with all of its files"
        )
    return network


def _check_layers(config: FinetuneConfig, count: int, folder: Path) -> None:
    if config.layers and max(config.layers) >= count:
        raise ConfigError(
            f"finetune: 'layers' names layer {max(config.layers)}, and the model in '{folder}' "
            f"has the layers 0 … {count - 1}; "
            "name some of these"
        )


def _attention(shape: Any, config: FinetuneConfig, longest: int) -> dict[str, str]:
    """The option of ``from_pretrained`` that chooses plain attention; empty: the default is kept.

    On a CPU, plain matrix products are faster than the fused kernel for short samples.
    """
    heads, layers = (
        getattr(shape, name, 0) for name in ("num_attention_heads", "num_hidden_layers")
    )
    weights = 8 * config.batch_size * heads * longest**2 * layers
    if torch.accelerator.is_available() or not 0 < weights <= _EAGER_BYTES:
        return {}
    return {"attn_implementation": "eager"}


def _linear_names(network: nn.Module) -> list[str]:
    """The last parts of the names of all linear modules except the output layer."""
    head = network.get_output_embeddings()  # type: ignore[operator]
    linear = {
        name.rpartition(".")[2]
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
    return sorted(linear)
