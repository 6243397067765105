"""Loads a network and its tokenizer or processor: by folder or by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.pretrained.catalogue import model_folder
from swarm_ui.nodes.models.transformers.placement import placement

_UNLOADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError,
    SafetensorError,
)  # fmt: skip


class Named(NamedTuple):
    """A model that a user named."""

    folder: Path
    name: str
    """Its name in traces."""
    prompt_format: str


def find_named(name: str, prompt_format: str) -> Named:
    """The folder of a model by the name that ``--model`` takes, and its prompt format: the given
    one, else the one that the folder names, else ``"json"``.

    Raises:
        ConfigError: there is no such model, it was not pulled, or the hub does not answer; or the
            folder's model was trained with another format.
    """
    folder = model_folder(name)
    own = read_metadata(folder)
    own.expect_format(folder, prompt_format)
    shown = folder.name if folder == Path(name) else name
    return Named(folder, shown, prompt_format or own.prompt_format or "json")


def load_parts(
    auto_network: Any,
    auto_reader: Any,
    what: str,
    folder_or_name: Path | str,
    *,
    device: str,
    dtype: torch.dtype | str,
    quantize: str,
) -> tuple[Any, Any]:
    """A network, and its tokenizer or processor, as transformers saves them.

    Args:
        auto_network, auto_reader: the classes of transformers that load them.
        what: the kind of model, for errors.
        folder_or_name, device, dtype, quantize: see
            :meth:`~swarm_ui.nodes.models.transformers.language_model.LanguageModel.from_pretrained`.

    Raises:
        ConfigError: there is no such model, or not all of its parts.
        MissingExtra: ``quantize`` without bitsandbytes.
    """
    options = placement(device, quantize)
    if isinstance(folder_or_name, Path) and not folder_or_name.is_dir():
        raise ConfigError(f"no model in '{folder_or_name}': there is no such folder")
    try:
        reader = auto_reader.from_pretrained(str(folder_or_name))
        network, found = auto_network.from_pretrained(
            str(folder_or_name),
            dtype=torch.bfloat16 if quantize else dtype,
            use_safetensors=True,
            output_loading_info=True,
            **options,
        )
    except _UNLOADABLE as error:
        raise ConfigError(
            f"no {what} in '{folder_or_name}': expected config.json, safetensors weights and a "
            "tokenizer, as save_pretrained writes them "
            f"({type(error).__name__}: {' '.join(str(error).split())})"
        ) from error
    _expect_all_weights(folder_or_name, sorted(found["missing_keys"]))
    # Placed by accelerate, the layers are where they belong.
    return network if options else network.to(device), reader


def _expect_all_weights(place: Path | str, missing: Sequence[str]) -> None:
    """Raise ``ConfigError`` for missing weights, which transformers initialises at random."""
    if missing:
        raise ConfigError(
            f"the weights in '{place}' lack {len(missing)} tensors of the network, such as "
            f"{missing[0]}; save the model again, with all of its files"
        )
