"""Loads a network and its tokenizer or processor: by folder or by name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError

from swarm_ui.adapter_metadata import read_metadata
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.nodes.models.pretrained.catalogue import model_folder

SPREAD = ("auto", "balanced", "sequential")
"""Ways in which accelerate distributes layers over devices."""
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
            :meth:`~swarm_ui.nodes.models.transformers.causal_model.LanguageModel.from_pretrained`.

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
    if missing := sorted(found["missing_keys"]):  # transformers initialises them at random
        raise ConfigError(
            f"the weights in '{folder_or_name}' lack {len(missing)} tensors of the network, such "
            f"as {missing[0]}; save the model again, with all of its files"
        )
    # Placed by accelerate, the layers are where they belong.
    return network if options else network.to(device), reader


def placement(device: str, quantize: str) -> dict[str, Any]:
    """Options of ``from_pretrained`` for a device and a quantisation; empty: load on the CPU, and
    move the network afterwards.

    Raises:
        ConfigError: the quantisation does not exist.
        MissingExtra: it needs bitsandbytes, which is not installed.
    """
    if quantize not in ("", "4bit"):
        raise ConfigError(f"quantize must be '4bit' or empty, got {quantize!r}")
    options: dict[str, Any] = {"device_map": device} if device in SPREAD else {}
    if not quantize:
        return options
    if find_spec("bitsandbytes") is None:
        raise MissingExtra("qlora", "a base model in 4 bits", "bitsandbytes")
    from transformers import BitsAndBytesConfig

    options["quantization_config"] = BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    options.setdefault("device_map", {"": device})
    return options
