"""The layers of a network that adapters of peft change."""

from __future__ import annotations

import re
from collections.abc import Sequence

from peft import LoraConfig
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.transformers.adapters.files import last_name
from swarm_ui.nodes.models.transformers.adapters.routing import AdapterWeights, LoraWeights

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def check_name(network: PreTrainedModel, name: str) -> None:
    """Raise ``ConfigError`` if an adapter cannot have this name."""
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


def new_config(
    network: PreTrainedModel,
    targets: Sequence[str] | str,
    rank: int,
    alpha: float | None,
    layers: Sequence[int] | None,
) -> LoraConfig:
    """peft's configuration of a new adapter on the modules ``targets``, in the transformer layers
    with these numbers; ``None``: in all. Raises ``ConfigError`` if there are no such layers."""
    if layers is not None:
        count = network.config.get_text_config().num_hidden_layers
        if not layers or any(not 0 <= layer < count for layer in layers):
            raise ConfigError(
                f"an adapter's layers must be numbers from 0 to {count - 1} of this network, "
                f"got {list(layers)}"
            )
        if isinstance(targets, str):  # peft selects layers by number among names only
            found = {
                last_name(key)
                for key, part in network.named_modules()
                if isinstance(part, nn.Linear | Conv1D | LoraLayer) and re.search(r"\.\d+\.", key)
            }
            targets = sorted(found - {"base_layer"})
    return LoraConfig(
        r=rank,
        lora_alpha=2 * rank if alpha is None else alpha,  # type: ignore[arg-type]
        target_modules=targets if isinstance(targets, str) else list(targets),
        layers_to_transform=None if layers is None else list(layers),
    )


def held_weights(network: PreTrainedModel, adapter: str) -> AdapterWeights:
    """The weights of an adapter as peft holds them, by the layer's name."""
    return {
        key: LoraWeights(
            layer.lora_A[adapter].weight,  # type: ignore[arg-type]
            layer.lora_B[adapter].weight,  # type: ignore[arg-type]
            layer.scaling[adapter],
        )
        for key, layer in network.named_modules()
        if isinstance(layer, LoraLayer) and adapter in layer.lora_A
    }
