"""Lists, copies, shares and merges adapters in folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from peft.tuners.lora import LoraLayer
from safetensors import SafetensorError, safe_open
from torch import Tensor

from swarm_ui.adapter_metadata import (
    AdapterMetadata,
    fingerprint,
    read_metadata,
    write_metadata,
)
from swarm_ui.errors import ConfigError
from swarm_ui.files import replacing_folder
from swarm_ui.nodes.models.transformers.adapters.files import (
    ADAPTER_FILES,
    VERSIONS_FILE,
    disk_errors,
    read_adapter,
    read_versions,
    write_copy,
)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """The facts about an adapter in a folder."""

    name: str
    folder: Path
    version: int | None
    """``None``: the folder holds this adapter alone, without a version."""
    rank: int
    alpha: float
    parameters: int
    size: int
    """Bytes of its weights on disk."""
    metadata: AdapterMetadata


def adapters_in(folder: Path) -> list[AdapterFacts]:
    """The adapters of a run, of a folder of several, or of one adapter's folder.

    Raises:
        ConfigError: there is none, or one is damaged or not plain LoRA.
    """
    if (folder / ADAPTER_FILES[0]).is_file():
        return [_facts(folder, folder.absolute().name, None)]
    inner = folder / "adapters"
    if not (folder / VERSIONS_FILE).is_file() and (inner / VERSIONS_FILE).is_file():
        folder = inner
    if not (folder / VERSIONS_FILE).is_file():
        raise ConfigError(
            f"no adapters in '{folder}': expected a run of swarm-ui train, its folder 'adapters', "
            f"or the folder of one adapter ({', '.join(ADAPTER_FILES)})"
        )
    numbers = read_versions(folder)
    return [_facts(folder / name, name, number) for name, number in sorted(numbers.items())]


def one_adapter(folder: Path) -> AdapterFacts:
    """The adapter in a folder. Raises ``ConfigError`` if there is none, or there are several."""
    found = adapters_in(folder)
    if len(found) > 1:
        names = ", ".join(str(facts.folder) for facts in found)
        raise ConfigError(f"'{folder}' holds {len(found)} adapters; name one of them: {names}")
    return found[0]


def import_adapter(folder: Path, out: Path, names: Sequence[str], about: AdapterMetadata) -> None:
    """Write a folder as training does, in which each agent has a copy of one adapter.

    Args:
        folder: the adapter, in peft's format.
        out: the folder to write, as a whole or not at all; an existing one is replaced.
        names: the agents.
        about: the metadata of the copies.

    Raises:
        ConfigError: the folder holds no plain LoRA adapter, or ``out`` cannot be written.
    """
    source = one_adapter(folder).folder
    with _written(out) as made:
        for name in names:
            (made / name).mkdir()
            for file in ADAPTER_FILES:
                shutil.copyfile(source / file, made / name / file)
            write_metadata(made / name, about)
        text = json.dumps(dict.fromkeys(names, 0))
        (made / VERSIONS_FILE).write_text(text, encoding="utf-8")


def export_adapter(folder: Path, out: Path, about: AdapterMetadata) -> None:
    """Write a copy of an adapter to share: weights in bfloat16, and no paths of this machine.

    Args:
        folder: the adapter, in peft's format.
        out: the folder to write, as a whole or not at all; an existing one is replaced.
        about: the metadata of the copy.

    Raises:
        ConfigError: the folder holds no plain LoRA adapter, or ``out`` cannot be written.
    """
    source = one_adapter(folder).folder
    with _written(out) as made:
        write_copy(source, made, about.base_model)
        write_metadata(made, about)


def described(
    facts: AdapterFacts, *, prompt_format: str = "", base: tuple[str, Path] | None = None
) -> AdapterMetadata:
    """The metadata of an adapter, with what the user adds.

    Args:
        facts: the adapter.
        prompt_format: the format it was trained with, if its folder does not name one.
        base: name and folder of the model it was trained on.

    Raises:
        ConfigError: the folder has other metadata.
    """
    known = facts.metadata
    known.expect_format(facts.folder, prompt_format)
    if base is not None:
        name, place = base
        weights = folder_fingerprint(place)
        known.expect_base(facts.folder, name, weights)
        known = msgspec.structs.replace(known, base_model=name, base_fingerprint=weights)
    return msgspec.structs.replace(
        known,
        prompt_format=known.prompt_format or prompt_format,
        made_by=known.made_by or "swarm-ui models import",
    )


def folder_fingerprint(folder: Path) -> str:
    """The :func:`~swarm_ui.adapter_metadata.fingerprint` of a model's saved weights.

    Raises:
        ConfigError: there are no weights, or they cannot be read.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ConfigError(f"no weights in '{folder}': expected safetensors files")
    tensors = []
    try:
        for path in files:
            with safe_open(path, framework="pt") as file:
                tensors += [file.get_tensor(key) for key in file.keys()]  # noqa: SIM118
    except (OSError, ValueError, SafetensorError) as error:
        raise ConfigError(f"the weights in '{folder}' cannot be read: {error}") from error
    return fingerprint(tensors)


@torch.no_grad()
def merged_weights(model: Any, adapter: str) -> dict[str, Tensor]:
    """The weights of a model in this process plus what an adapter adds, by name; summed in float32,
    then rounded to the type of the weights.

    Raises:
        ConfigError: the adapter changes the output layer of a model that shares it with the
            embeddings, which cannot be written as one set of weights.
    """
    weights: dict[str, Tensor] = model.base_weights()
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


def save_merged(model: Any, adapter: str, out: Path) -> None:
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
        made_by="swarm-ui models merge",
    )
    with _written(out) as made:
        with disk_errors():
            model.save(made, weights)
        write_metadata(made, about)


@contextmanager
def _written(out: Path) -> Iterator[Path]:
    """Write a folder as a whole. Raises ``ConfigError`` if it cannot be written."""
    try:
        with replacing_folder(out) as made:
            yield made
    except OSError as error:
        raise ConfigError(f"cannot write '{out}': {error}; nothing of it was kept") from error


def _facts(folder: Path, name: str, version: int | None) -> AdapterFacts:
    adapter = read_adapter(folder)
    return AdapterFacts(
        name=name,
        folder=folder,
        version=version,
        rank=adapter.fields["r"],
        alpha=adapter.fields["lora_alpha"],
        parameters=sum(weight.numel() for weight in adapter.weights.values()),
        size=(folder / ADAPTER_FILES[1]).stat().st_size,
        metadata=read_metadata(folder),
    )
