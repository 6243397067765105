"""Reads and writes adapters in peft's format. Everything except plain LoRA is refused.

The folder may come from an untrusted source, so only the numbers that plain LoRA needs are read
from it. Other settings are never passed to peft. They could make peft change the shared base model
(initialisations such as PiSSA, OLoRA and CorDA, or base weights in the file), search for a model
on the network, or match expensive regular expressions.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import torch
from msgspec import Meta
from peft import LoraConfig, PeftModel, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer, ParamWrapper
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError, brief
from swarm_ui.files import write_atomic
from swarm_ui.nodes.models.transformers.adapters.routing import AdapterWeights

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")
"""The files of one adapter."""
VERSIONS_FILE = "versions.json"
"""Lists the adapters in a folder of several, with their versions."""
_CONFIG, _WEIGHTS = ADAPTER_FILES
_PREFIX = "base_model.model."
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_KEY = re.compile(r"base_model\.model\.(?:\w+\.)+lora_[AB]\.weight")
_LARGEST = 1e6

Rank = Annotated[int, Meta(ge=1)]
Alpha = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
Layer = Annotated[str, Meta(pattern=r"^[\w.\-]+$", max_length=200)]


class _Config(msgspec.Struct):
    """The fields of ``adapter_config.json`` that describe plain LoRA."""

    peft_type: Literal["LORA"]
    r: Rank = 8
    lora_alpha: Alpha = 8
    lora_dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    target_modules: str | Annotated[list[str], Meta(max_length=2000)] | None = None
    rank_pattern: dict[Layer, Rank] | None = None
    alpha_pattern: dict[Layer, Alpha] | None = None
    use_rslora: bool = False
    fan_in_fan_out: bool = False
    bias: Literal["none"] = "none"
    init_lora_weights: bool | Literal["gaussian", "eva", "orthogonal"] = True
    """Initialisation of the adapter; other values change the base model."""


_UNUSED = frozenset({
    "task_type", "base_model_name_or_path", "revision", "inference_mode", "auto_mapping",
    "peft_version", "runtime_config", "eva_config", "megatron_core", "megatron_config",
})  # fmt: skip
_CHOOSING = frozenset({"layers_to_transform", "layers_pattern", "exclude_modules"})
"""Fields that choose layers, partly by regular expressions. They are not passed to peft: the names
of the weights tell which layers are meant."""


class PlainAdapter(NamedTuple):
    """A plain LoRA adapter, as read from a folder."""

    fields: Mapping[str, Any]
    weights: dict[str, Tensor]

    def config(self) -> LoraConfig:
        """Make a configuration for peft. Each call makes a new one, because peft changes the
        configuration that it is given."""
        return LoraConfig(**self.fields, inference_mode=True)


def read_adapter(folder: Path) -> PlainAdapter:
    """Read the adapter in a folder, without peft, which would search the network for missing files.

    Raises:
        ConfigError: the folder holds no adapter, a damaged one, or not plain LoRA.
    """
    if missing := [name for name in ADAPTER_FILES if not (folder / name).is_file()]:
        raise ConfigError(
            f"no adapter in '{folder}', as peft writes them; missing: {', '.join(missing)}"
        )
    given = _decoded(folder / _CONFIG, dict[str, Any])
    known = {field: given[field] for field in _Config.__struct_fields__ if field in given}
    normal = LoraConfig()
    more = [
        key
        for key in given.keys() - known.keys() - _UNUSED - _CHOOSING
        if given[key] and given[key] != getattr(normal, key, None)
    ]
    try:
        config = msgspec.convert(known, _Config)
    except msgspec.ValidationError as error:
        shown = {key: known.get(key) for key in ("peft_type", "bias", "init_lora_weights")}
        raise _more_than_lora(folder, f"{error}, in a configuration with {shown}") from error
    if more:
        raise _more_than_lora(folder, ", ".join(sorted(more)))
    weights = _weights(folder / _WEIGHTS)
    rank = max([w.shape[0] for key, w in weights.items() if ".lora_A." in key], default=0)
    if max(config.r, *(config.rank_pattern or {}).values(), 0) > rank:
        raise ConfigError(
            f"the adapter in '{folder}' does not fit its configuration, which has ranks above "
            f"{rank}"
        )
    named = isinstance(config.target_modules, list) or config.target_modules == "all-linear"
    if not named or any(given.get(key) for key in _CHOOSING):
        config.target_modules = sorted({key.split(".lora_")[0] for key in weights})
        config.target_modules = [name.removeprefix(_PREFIX) for name in config.target_modules]
    fields = msgspec.structs.asdict(config) | {"init_lora_weights": True}
    return PlainAdapter({k: v for k, v in fields.items() if v is not None}, weights)


def read_versions(folder: Path) -> dict[str, int]:
    """The adapters in a folder of several, with their versions.

    Raises:
        ConfigError: there are none, or the file that lists them is damaged.
    """
    if not (folder / VERSIONS_FILE).is_file():
        raise ConfigError(f"no adapters in '{folder}': expected {VERSIONS_FILE} there")
    numbers: dict[str, int] = _decoded(
        folder / VERSIONS_FILE, dict[str, Annotated[int, Meta(ge=0)]]
    )
    return numbers


def _weights(path: Path) -> dict[str, Tensor]:
    """The weights of a file, which must all be those of plain LoRA."""
    try:
        with safe_open(path, framework="pt") as file:
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, SafetensorError) as error:
        raise ConfigError(f"'{path}' is not a readable safetensors file: {error}") from error
    wrong = [
        key
        for key, weight in weights.items()
        if not _KEY.fullmatch(key)
        or key.count(".lora_") > 1
        or weight.ndim != 2
        or not weight.is_floating_point()
    ]
    if wrong or not weights:
        raise ConfigError(
            f"'{path}' must hold weights of plain LoRA alone, such as "
            f"{_PREFIX}layer.lora_A.weight, got {', '.join(wrong[:3]) or 'none'}"
        )
    broken = next((key for key, weight in weights.items() if not weight.isfinite().all()), None)
    if broken is not None:
        raise ConfigError(f"'{path}': {broken} holds numbers that are not finite")
    return weights


def _decoded(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"'{path}' is not JSON of the expected form: {error}") from error


def _more_than_lora(folder: Path, found: str) -> ConfigError:
    return ConfigError(
        f"the adapter in '{folder}' is not plain LoRA ({found}); only plain LoRA on linear "
        "layers, which leaves the shared base as it is, can be mixed in one batch. Save it again "
        "as plain LoRA: peft's save_pretrained has path_initial_model_for_weight_conversion"
    )


def check_name(network: nn.Module, name: str) -> None:
    """Raise ``ConfigError`` if an adapter of a network cannot have this name."""
    if not _NAME.fullmatch(name):  # it becomes part of versions, file and module names
        raise ConfigError(
            f"an adapter cannot be named {name!r}; use letters, digits, '_' and '-', "
            "and begin with a letter"
        )
    parts = {part for key, _ in network.named_modules() for part in key.split(".")}
    # peft keeps the weights of a layer's adapters in dictionaries, which have names themselves.
    if name in parts | {"lora_A", "lora_B"} or hasattr(nn.ModuleDict(), name):
        raise ConfigError(
            f"an adapter cannot be named '{name}': a layer of the network, or a part of a "
            "layer, has that name"
        )


def misplaced_weights(network: PeftModel, adapter: PlainAdapter, name: str) -> list[str]:
    """Fill a new adapter of a network with the weights of a file.

    Returns:
        The weights that the file lacks or has in addition, and the layers that are not plain LoRA.
    """
    found: Any = set_peft_model_state_dict(network, adapter.weights, adapter_name=name)
    wrong = [key for key in found.missing_keys if ".lora_" in key and f".{name}." in key]
    wrong += found.unexpected_keys
    parts = network.get_base_model().named_modules()
    return wrong + [
        k for k, part in parts if isinstance(part, LoraLayer) and not _plain(part, name)
    ]


def write_adapter(folder: Path, weights: AdapterWeights, network: PreTrainedModel) -> None:
    """Write one adapter of a network in peft's format, with one rank and one scale for all layers.

    Servers require this. Smaller ranks are padded with zeros. If the scale of a layer differs from
    that of the first layer, the ratio is multiplied into its weights. Raises ``OSError`` if the
    disk is full.
    """
    rank = max(each.down.shape[0] for each in weights.values())
    scale = next(iter(weights.values())).scale
    tensors: dict[str, Tensor] = {}
    for layer, (down, up, own) in weights.items():
        missing = rank - down.shape[0]
        up = up.detach() * (own / scale) if own != scale else up.detach()
        tensors[f"{_PREFIX}{layer}.lora_A.weight"] = pad(down.detach(), (0, 0, 0, missing))
        tensors[f"{_PREFIX}{layer}.lora_B.weight"] = pad(up, (0, missing))
    names = {layer.rpartition(".")[2] for layer in weights}
    alike = {key for key, _ in network.named_modules() if key.rpartition(".")[2] in names}
    config = {
        "peft_type": "LORA", "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(network.name_or_path),
        "r": rank, "lora_alpha": scale * rank, "lora_dropout": 0.0, "bias": "none",
        "target_modules": sorted(names if alike <= weights.keys() else weights),
        "inference_mode": True,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    _write_weights(folder, {key: tensor.cpu().contiguous() for key, tensor in tensors.items()})
    write_atomic(folder / _CONFIG, json.dumps(config, indent=1) + "\n")


def write_copy(source: Path, folder: Path, base: str) -> None:
    """Write a copy of one adapter with its weights in bfloat16.

    Only the fields of plain LoRA, and those that choose layers, are copied from the configuration.

    Args:
        source: folder of the adapter.
        folder: an empty folder.
        base: name of the model that it belongs to; it replaces the path in the configuration.

    Raises:
        ConfigError: ``source`` holds no plain LoRA adapter.
    """
    adapter = read_adapter(source)
    given = _decoded(source / _CONFIG, dict[str, Any])
    fields = [*_Config.__struct_fields__, *sorted(_CHOOSING), "task_type"]
    config = {field: given[field] for field in fields if given.get(field) is not None}
    config |= {"base_model_name_or_path": base, "inference_mode": True}
    _write_weights(folder, {k: each.to(torch.bfloat16) for k, each in adapter.weights.items()})
    write_atomic(folder / _CONFIG, json.dumps(config, indent=1) + "\n")


def _write_weights(folder: Path, weights: dict[str, Tensor]) -> None:
    with disk_errors():
        save_file(weights, folder / _WEIGHTS, metadata={"format": "pt"})


@contextmanager
def disk_errors() -> Iterator[None]:
    """A block in which a full disk raises ``OSError``; safetensors has an error of its own."""
    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else errno.EIO, brief(error)) from error


def _plain(layer: LoraLayer, name: str) -> bool:
    """Whether :class:`LoraWeights` can describe what an adapter adds to a layer, if anything."""
    if name in layer.lora_embedding_A or name in layer.lora_variant:
        return False
    if name not in layer.lora_A:
        return True
    if isinstance(layer, ParamWrapper):  # the weights of experts
        return False
    down, up = layer.lora_A[name], layer.lora_B[name]
    return isinstance(down, nn.Linear) and isinstance(up, nn.Linear) and up.bias is None
