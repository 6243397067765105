"""The layers of a network that adapters change."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.transformers.adapters.multi_lora import (
    AdapterWeights,
    LoraWeights,
)


def check_numbers(network: PreTrainedModel, layers: Sequence[int]) -> None:
    """Raise ``ConfigError`` unless these are numbers of transformer layers of a network."""
    count = network.config.get_text_config().num_hidden_layers
    if not layers or any(not 0 <= layer < count for layer in layers):
        raise ConfigError(
            f"an adapter's layers must be numbers from 0 to {count - 1} of this network, got "
            f"{list(layers)}"
        )


def check_name(network: PreTrainedModel, adapter: str) -> None:
    """Raise ``ConfigError`` if an adapter cannot have this name, because a part of the network has
    it."""
    parts = {part for key, _ in network.named_modules() for part in key.split(".")}
    # peft keeps the weights of a layer's adapters in dictionaries, which have names themselves.
    if adapter in parts | {"lora_A", "lora_B"} or hasattr(nn.ModuleDict(), adapter):
        raise ConfigError(
            f"an adapter cannot be named '{adapter}': a layer of the network, or a part of a "
            "layer, has that name"
        )


def names_in_layers(network: PreTrainedModel, targets: Sequence[str] | str) -> Sequence[str]:
    """The names of the linear modules in a layer, for peft's selection of layers by number.

    ``targets`` is returned if it is a list of names already.
    """
    if not isinstance(targets, str):
        return targets
    found = {
        key.rpartition(".")[2]
        for key, part in network.named_modules()
        if isinstance(part, nn.Linear | Conv1D | LoraLayer) and re.search(r"\.\d+\.", key)
    }
    return sorted(name for name in found if name != "base_layer")


def plain_config(
    network: PreTrainedModel,
    targets: Sequence[str] | str,
    rank: int,
    alpha: float,
    layers: Sequence[int] | None,
) -> LoraConfig:
    """peft's configuration of a new adapter on some modules, in the transformer layers with these
    numbers; ``None``: in all. Raises ``ConfigError`` if the network has no such layers."""
    if layers is not None:
        check_numbers(network, layers)
        targets = names_in_layers(network, targets)
    return LoraConfig(
        r=rank,
        lora_alpha=alpha,  # type: ignore[arg-type]
        target_modules=targets if isinstance(targets, str) else list(targets),
        layers_to_transform=None if layers is None else list(layers),
    )


def with_adapter(
    network: PreTrainedModel | PeftModel, adapter: str, config: LoraConfig
) -> PeftModel:
    """The network with a new adapter of peft."""
    if isinstance(network, PeftModel):
        network.add_adapter(adapter, config)
        return network
    with warnings.catch_warnings():
        # peft reads a property of the network by the name that transformers deprecates.
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        return get_peft_model(network, config, adapter_name=adapter)


def adapted_layers(
    network: PreTrainedModel, copies: Iterable[AdapterWeights]
) -> dict[str, nn.Module]:
    """The modules that an adapter adds to, by name.

    They are peft's layers, or plain ones if the adapter was removed from peft and a leased version
    of it remains in ``copies``.
    """
    copied = {key for weights in copies for key in weights}
    return {
        key: part
        for key, part in network.named_modules()
        if isinstance(part, LoraLayer) or key in copied
    }


def held_weights(network: PreTrainedModel, adapter: str) -> dict[str, LoraWeights]:
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


def described(weights: AdapterWeights) -> str:
    """The shape of an adapter in words: rank, alpha, the layers by number, and their parts."""
    ranks = sorted({part.down.shape[0] for part in weights.values()})
    alphas = sorted({round(part.scale * part.down.shape[0], 6) for part in weights.values()})
    numbers = sorted({int(n) for key in weights for n in re.findall(r"\.(\d+)\.", key)})
    parts = sorted({key.rpartition(".")[2] for key in weights})
    rank, alpha, layers = (
        ", ".join(f"{value:g}" for value in values) for values in (ranks, alphas, numbers)
    )
    return f"rank {rank}, alpha {alpha}, layers {layers or 'without a number'} ({', '.join(parts)})"
