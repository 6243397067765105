"""Reads and writes adapters in peft's format. Plain LoRA only, with one rank and one scale.

A folder may come from an untrusted source, so only the numbers that plain LoRA needs are read from
it, and the names of the weights tell which layers are meant. Other settings could make peft change
the shared base model (PiSSA, OLoRA, CorDA, base weights in the file), search for a model on the
network, or match expensive regular expressions.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from peft import LoraConfig
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.transformers.routing import AdapterWeights, LoraWeights

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
VERSIONS_FILE = "versions.json"
"""Lists the adapters in a folder of several, with their versions."""
_PREFIX = "base_model.model."
_KEY = re.compile(r"base_model\.model\.((?:\w+\.)+)lora_([AB])\.weight")
_LARGEST = 1e6


class _Config(msgspec.Struct):
    """The fields of ``adapter_config.json`` that describe plain LoRA."""

    peft_type: Literal["LORA"]
    r: Annotated[int, Meta(ge=1)] = 8
    lora_alpha: Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)] = 8
    lora_dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    use_rslora: bool = False
    init_lora_weights: bool | Literal["gaussian", "eva", "orthogonal"] = True
    """Initialisation of the adapter; other values change the base model."""


_UNREAD = frozenset({
    "task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping",
    "peft_version", "runtime_config", "eva_config", "megatron_core", "megatron_config",
    "target_modules", "layers_to_transform", "layers_pattern", "exclude_modules", "fan_in_fan_out",
})  # fmt: skip


def read_adapter(folder: Path) -> tuple[LoraConfig, dict[str, LoraWeights]]:
    """Read the adapter in a folder, without peft, which would search the network for missing files.
    Raises ``ConfigError`` if there is none, it is damaged, or it is not plain LoRA."""
    if missing := [name for name in (_CONFIG, _WEIGHTS) if not (folder / name).is_file()]:
        raise ConfigError(
            f"no adapter in '{folder}', as peft writes them; missing: {', '.join(missing)}"
        )
    given, normal = _decoded(folder / _CONFIG, dict[str, Any]), LoraConfig()
    more = [
        f"{key}={str(value)[:40]}"
        for key, value in sorted(given.items())
        if key not in _UNREAD.union(_Config.__struct_fields__)
        and value
        and value != getattr(normal, key, None)
    ]
    try:
        config = msgspec.convert(given, _Config)
    except msgspec.ValidationError as error:
        more.append(str(error))
    if more:
        raise ConfigError(
            f"the adapter in '{folder}' is not plain LoRA ({', '.join(more)}); only plain LoRA on "
            "linear layers, with one rank, which leaves the shared base as it is, can be mixed in "
            "one batch. Save it as plain LoRA: save_pretrained of peft has "
            "path_initial_model_for_weight_conversion"
        )
    rank = config.r
    scale = config.lora_alpha / (rank**0.5 if config.use_rslora else rank)
    weights: dict[str, LoraWeights] = {}
    for layer, parts in _weights(folder / _WEIGHTS).items():
        if {*parts} != {"A", "B"} or not rank == parts["A"].shape[0] == parts["B"].shape[1]:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit its configuration: expected two matrices "
                f"of rank {rank} for {layer}"
            )
        weights[layer] = LoraWeights(parts["A"], parts["B"], scale)
    plain: dict[str, Any] = msgspec.structs.asdict(config) | {"init_lora_weights": True}
    return LoraConfig(**plain, target_modules=[*weights]), weights


def read_versions(folder: Path) -> dict[str, int]:
    """The adapters in a folder of several, with their versions. Raises ``ConfigError`` if there are
    none, or the file that lists them is damaged."""
    if not (folder / VERSIONS_FILE).is_file():
        raise ConfigError(f"no adapters in '{folder}': expected {VERSIONS_FILE} there")
    kind = dict[str, Annotated[int, Meta(ge=0)]]
    numbers: dict[str, int] = _decoded(folder / VERSIONS_FILE, kind)
    return numbers


def _weights(path: Path) -> dict[str, dict[str, Tensor]]:
    """The weights of a file, which must all be those of plain LoRA, by layer and "A" or "B"."""
    try:
        weights = load(path.read_bytes())
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise ConfigError(f"'{path}' is not a readable safetensors file: {error}") from error
    found: dict[str, dict[str, Tensor]] = {}
    for key, weight in weights.items():
        named = _KEY.fullmatch(key)
        if not named or ".lora_" in named[1] or weight.ndim != 2 or not weight.is_floating_point():
            raise ConfigError(
                f"'{path}' must hold weights of plain LoRA alone, such as "
                f"{_PREFIX}layer.lora_A.weight, got {key}"
            )
        if not weight.isfinite().all():
            raise ConfigError(f"'{path}': {key} holds numbers that are not finite")
        found.setdefault(named[1].removesuffix("."), {})[named[2]] = weight
    if not found:
        raise ConfigError(f"'{path}' must hold weights of plain LoRA alone, got none")
    return found


def _decoded(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"'{path}' is not JSON of the expected form: {error}") from error


def write_adapter(folder: Path, weights: AdapterWeights, network: PreTrainedModel) -> None:
    """Write one adapter of a network in peft's format. Raises ``OSError`` if the disk is full."""
    first = next(iter(weights.values()))
    rank = first.down.shape[0]
    tensors: dict[str, Tensor] = {}
    for layer, (down, up, _) in weights.items():
        tensors[f"{_PREFIX}{layer}.lora_A.weight"] = down.detach().cpu().contiguous()
        tensors[f"{_PREFIX}{layer}.lora_B.weight"] = up.detach().cpu().contiguous()
    names = {layer.rpartition(".")[2] for layer in weights}
    alike = {key for key, _ in network.named_modules() if key.rpartition(".")[2] in names}
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(network.name_or_path),
        "r": rank, "lora_alpha": first.scale * rank, "lora_dropout": 0.0, "bias": "none",
        "target_modules": sorted(names if alike <= weights.keys() else weights),
        "inference_mode": True,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / _WEIGHTS, save(tensors, metadata={"format": "pt"}))
    write_atomic(folder / _CONFIG, json.dumps(config, indent=1) + "\n")
