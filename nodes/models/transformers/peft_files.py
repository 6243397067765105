"""Checks whether a folder holds an adapter in peft's format that this library supports."""

from __future__ import annotations

import json
from pathlib import Path

from swarm_ui.errors import ConfigError

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_MORE_THAN_LORA = (
    "use_dora", "alora_invocation_tokens", "modules_to_save", "trainable_token_indices",
    "target_parameters", "layer_replication", "lora_bias",
)  # fmt: skip


def check_files(folder: Path) -> None:
    """Check a folder before peft reads it, since peft looks for missing files on the network.
    Raises ``ConfigError`` if it holds no adapter, or not plain LoRA."""
    missing = [name for name in (_CONFIG, _WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise ConfigError(
            f"no adapter in '{folder}': expected {_CONFIG} and {_WEIGHTS}, as peft writes them; "
            f"missing: {', '.join(missing)}"
        )
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"'{folder / _CONFIG}' is not JSON: {error}") from error
    more = [key for key in _MORE_THAN_LORA if config.get(key)]
    if config.get("peft_type") != "LORA" or config.get("bias", "none") != "none" or more:
        got = f"{config.get('peft_type')} with {', '.join(more) or config.get('bias')}"
        raise ConfigError(
            f"the adapter in '{folder}' is {got}; only plain LoRA on linear layers can be mixed "
            "in one batch"
        )
