"""Merges an adapter into the weights of its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.adapter_metadata import AdapterMetadata, write_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.files import replacing_folder
from swarm_ui.nodes.models.transformers.adapters.peft_files import disk_errors


class Mergeable(Protocol):
    """A model of this process."""

    name: str

    @property
    def network(self) -> PreTrainedModel: ...

    def base_weights(self) -> dict[str, Tensor]: ...

    def metadata(self, adapter: str) -> AdapterMetadata: ...

    def save(self, folder: Path, weights: dict[str, Tensor] | None = None) -> None: ...


@torch.no_grad()
def merged_weights(model: Mergeable, adapter: str) -> dict[str, Tensor]:
    """The model's weights plus what an adapter adds, by name; summed in float32, then rounded to
    the type of the weights.

    Raises:
        ConfigError: the adapter changes the output layer of a model that shares it with the
            embeddings, which cannot be written as one set of weights.
    """
    weights = model.base_weights()
    embeddings: Any = model.network.get_input_embeddings()
    for key, layer in model.network.named_modules():
        if not isinstance(layer, LoraLayer) or adapter not in layer.lora_A:
            continue
        lora: Any = layer
        base = weights[f"{key}.weight"]
        if base.data_ptr() == embeddings.weight.data_ptr():
            raise ConfigError(
                f"'{adapter}' cannot be merged: it changes {key}, which '{model.name}' shares with "
                "its embeddings; use it as an adapter"
            )
        added = lora.get_delta_weight(adapter).float()
        weights[f"{key}.weight"] = (base.float() + added).to(base.dtype)
    return weights


def save_merged(model: Mergeable, adapter: str, out: Path) -> None:
    """Write a model with an adapter merged into it to a folder.

    The prompt format of the adapter becomes that of the model.

    Raises:
        ConfigError: see :func:`merged_weights`; or the folder cannot be written. Then it is not
            created.
    """
    weights, known = merged_weights(model, adapter), model.metadata(adapter)
    about = AdapterMetadata(
        prompt_format=known.prompt_format,
        base_model=model.name,
        made_by="swarm-ui adapters merge",
    )
    try:
        with replacing_folder(out) as made:
            with disk_errors():
                model.save(made, weights)
            write_metadata(made, about)
    except OSError as error:
        raise ConfigError(f"cannot write '{out}': {error}; nothing of it was kept") from error
