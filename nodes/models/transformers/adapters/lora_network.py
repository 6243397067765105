"""A transformers model with named LoRA adapters, each with a version, through peft."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from peft import PeftModel
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.adapter_metadata import (
    AdapterMetadata,
    fingerprint,
    read_metadata,
    write_metadata,
)
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.transformers.adapters.adapter_leases import AdapterLeases, parsed_version
from swarm_ui.nodes.models.transformers.adapters.layers import (
    adapted_layers,
    check_name,
    described,
    held_weights,
    plain_config,
    with_adapter,
)
from swarm_ui.nodes.models.transformers.adapters.multi_lora import (
    AdapterWeights,
    LoraRouting,
    MergedWeights,
    copied,
    equal,
)
from swarm_ui.nodes.models.transformers.adapters.peft_files import (
    VERSIONS_FILE,
    PlainAdapter,
    disk_errors,
    last_name,
    misplaced_weights,
    read_adapter,
    read_versions,
    write_adapter,
)

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_TRIAL = "on-trial"


class LoraNetwork:
    """A network and its adapters; every row of a batch can use another adapter.

    **Versions.** ``"agent_2@7"`` always refers to the same weights. Weights change in place, and
    only inside :meth:`activate`, which first copies them. Until the training ends, the copy answers
    requests to ``"agent_2@7"`` and to ``"agent_2"``. If the training changed the weights, they then
    become version 8, and the copy is deleted unless it is leased. Loading keeps leased versions.

    **Metadata.** Each adapter has an :class:`~swarm_ui.adapter_metadata.AdapterMetadata`, which is
    saved and loaded with it. An adapter that was trained on other base weights is not loaded.
    """

    name: str = ""
    """Name of the model, in metadata and errors."""
    prompt_format: str = ""
    """The prompt format of requests without an adapter, and of adapters that are added."""

    def __init__(self, network: PreTrainedModel, targets: Sequence[str] | str) -> None:
        """``targets``: the layers that get an adapter, as peft's ``target_modules``."""
        network.train(False)
        self._network: PreTrainedModel | PeftModel = network
        self._targets = targets if isinstance(targets, str) else list(targets)
        self._pinned: str | None = None
        self._versions = AdapterLeases()
        self._layers: dict[str, nn.Module] = {}
        self._weights: dict[str, AdapterWeights] = {}
        """Adapters as peft holds them."""
        self._metadata: dict[str, AdapterMetadata] = {}
        """Metadata by the adapter's name, or by version where a leased version was replaced."""
        self._copies: dict[str, AdapterWeights] = {}
        """Older versions that are leased, and copies of adapters in training, by version."""
        self._training: set[str] = set()
        self._numbered: set[str] = set()
        """Adapters that got a new version when training ended, and were not bumped since."""

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._versions.numbers)

    @property
    def module(self) -> nn.Module:
        """The network with its adapters: peft's model, or the plain one while there are none.

        It is in evaluation mode outside :meth:`activate`.
        """
        return self._network

    @property
    def network(self) -> PreTrainedModel:
        """The transformers model, with the adapter layers that peft put into it."""
        network = self._network
        return network.get_base_model() if isinstance(network, PeftModel) else network  # type: ignore[return-value]

    def base_weights(self) -> dict[str, Tensor]:
        """The model's own weights under their own names, without those of adapters."""
        return {
            key.replace(".base_layer.", "."): weight
            for key, weight in self.network.state_dict().items()
            if ".lora_" not in key
        }

    def metadata(self, adapter: str) -> AdapterMetadata:
        """The metadata of an adapter, by its name or a version (``"agent_2@7"``). A leased version
        keeps its metadata when another one is loaded. Raises ``ConfigError`` if there is none."""
        if adapter in self._metadata:
            return self._metadata[adapter]
        name = adapter.partition("@")[0]
        self._check_known(name)
        return self._metadata[name]

    def format_of(self, adapter: str | None) -> str:
        """The prompt format of requests to an adapter: its own, or else the model's. Raises
        ``ConfigError`` as :meth:`metadata` does."""
        own = "" if adapter is None else self.metadata(adapter).prompt_format
        return own or self.prompt_format

    def base_fingerprint(self) -> str:
        """The hash of the base weights; see :func:`swarm_ui.adapter_metadata.fingerprint`."""
        if self._pinned is not None:
            return self._pinned
        return fingerprint(self.base_weights().values())

    def pin_base(self) -> None:
        """Keep the fingerprint of the base model. Call this before its weights are divided among
        processes, because no process can compute the fingerprint alone afterwards."""
        self._pinned = self.base_fingerprint()

    # -- adding, loading, saving --------------------------------------------------------------

    def add_adapter(
        self,
        name: str,
        rank: int = 16,
        alpha: float = 32,
        copy_from: str | None = None,
        layers: Sequence[int] | None = None,
    ) -> None:
        """A new LoRA adapter; it changes nothing at first, or is a copy of another one.

        Args:
            name: its name.
            rank, alpha: the settings of LoRA.
            copy_from: an adapter of the same rank, alpha and layers.
            layers: the numbers of the transformer layers that it changes, from 0; ``None``: all.
                The backward pass ends at the lowest one.

        Raises:
            ConfigError: the name exists or cannot be used, ``copy_from`` does not exist or is of
                another rank, alpha or layers, or the network has no such layers. Nothing was added.
        """
        self._check_not_training()
        self._check_new(name)
        config = plain_config(self.network, self._targets, rank, alpha, layers)
        if copy_from is not None:
            self._check_known(copy_from)
        try:
            self._network = with_adapter(self._network, name, config)
        except ValueError as error:  # peft refuses some layers, such as those of Mamba
            raise ConfigError(f"this network cannot have the adapter '{name}': {error}") from error
        if copy_from is not None:
            self._copy(copy_from, name)
        self._register(name, self._versions.next(name))
        metadata = AdapterMetadata(prompt_format=self.prompt_format)
        self._metadata[name] = metadata if copy_from is None else self._metadata[copy_from]

    def _copy(self, source: str, name: str) -> None:
        """Fill an adapter that was just added; delete it if it is not of the source's shape."""
        old, new = self._weights[source], held_weights(self.network, name)
        expected, got = described(old), described(new)
        if old.keys() != new.keys() or expected != got:
            self._delete(name)
            raise ConfigError(
                f"adapter '{name}' cannot be a copy of '{source}', which has {expected}; got "
                f"{got}. Give the rank, alpha and layers of '{source}', or leave copy_from out"
            )
        with torch.no_grad():
            for key, weights in old.items():
                new[key].down.copy_(weights.down)
                new[key].up.copy_(weights.up)

    def load_adapters(self, folder: Path) -> None:
        """Load what :meth:`save_adapters` wrote, with the versions; existing names are replaced.

        Raises:
            ConfigError: the folder holds no saved adapters, or one does not fit, or other weights
                are leased under a saved version.
        """
        numbers = read_versions(folder)
        for name, number in numbers.items():
            if self._versions.leased(f"{name}@{number}"):
                raise ConfigError(
                    f"'{folder}' holds {name}@{number}, and runs still use other weights of that "
                    "version; load the folder when these runs have ended, or use load_adapter"
                )
        read = {name: read_adapter(folder / name) for name in numbers}
        for name in numbers:  # before the first is replaced
            self._fitting(folder / name)
        for name, number in numbers.items():
            self._replace(folder / name, read[name], name, number)

    def load_adapter(self, folder: Path, name: str) -> str:
        """Load one adapter in peft's own format, also while requests are in flight.

        Returns:
            Its version; the next one if the name exists. An older version that is leased is kept.

        Raises:
            ConfigError: the folder holds no plain LoRA adapter that fits this model.
        """
        return self._replace(folder, read_adapter(folder), name, self._versions.next(name))

    def unload_adapter(self, name: str) -> None:
        """Remove an adapter; leased versions, and requests in flight, are not affected. Raises
        ``ConfigError`` if there is no such adapter, or one is in training."""
        self._check_known(name)
        self._check_not_training()
        self._remove(name)

    def save_adapters(self, folder: Path) -> None:
        """One sub-folder per adapter, in peft's own format with metadata, and their versions."""
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self._network, PeftModel):
            base = self.base_fingerprint()
            for name in self.adapters:
                # peft writes an adapter of this name into the folder itself.
                place = folder / name if name == "default" else folder
                with disk_errors():
                    self._network.save_pretrained(
                        str(place), selected_adapters=[name], save_embedding_layers=False
                    )
                write_metadata(folder / name, self._metadata[name].saved_with(self.name, base))
        (folder / VERSIONS_FILE).write_text(json.dumps(self._versions.numbers), encoding="utf-8")

    def save_version(self, version: str, folder: Path) -> None:
        """Write the weights of one version, such as ``"agent_2@7"``, in peft's own format, as a
        server loads them. Raises ``ConfigError`` if the version is neither current nor leased."""
        if not self.has_version(version):
            raise ConfigError(f"no version '{version}'; this model has: {self._versions.listing()}")
        name = version.rpartition("@")[0]
        weights = self._copies.get(version) or self._weights[name]
        names = {last_name(layer) for layer in weights}
        alike = {key for key, _ in self.network.named_modules() if last_name(key) in names}
        write_adapter(
            folder, weights, str(self.network.name_or_path), all_layers=alike <= weights.keys()
        )

    def load_version(self, version: str, folder: Path) -> None:
        """Load an adapter folder under the given version, such as ``"agent_2@7"``.

        The folder is one that :meth:`save_version` wrote, or any folder that :meth:`load_adapter`
        accepts. Raises ``ConfigError`` in the same cases as :meth:`load_adapter`.
        """
        self._replace(folder, read_adapter(folder), *parsed_version(version))

    def has_version(self, version: str) -> bool:
        """Whether a version can answer requests: it is current, or leased."""
        return self._versions.answers(version)

    def _replace(self, folder: Path, adapter: PlainAdapter, name: str, number: int) -> str:
        self._check_not_training()
        if name not in self._versions:
            self._check_new(name)
        metadata = self._fitting(folder)
        # Loaded under a temporary name first, so that a folder that does not fit changes nothing.
        with torch.random.fork_rng(devices=[]):
            try:
                self._load(folder, adapter, _TRIAL)
                if name in self._versions:
                    self._remove(name)
                self._load(folder, adapter, name)
            finally:
                self._delete(_TRIAL)
        self._metadata[name] = metadata
        return self._register(name, number)

    def _fitting(self, folder: Path) -> AdapterMetadata:
        """The metadata of an adapter. Raises ``ConfigError`` if its base was another one."""
        metadata = read_metadata(folder)
        if metadata.base_fingerprint:
            metadata.expect_base(folder, self.name, self.base_fingerprint())
        return metadata

    def _load(self, folder: Path, adapter: PlainAdapter, name: str) -> None:
        """Add an adapter that was read from a folder, and check that it fits the network."""
        try:
            self._network = network = with_adapter(self._network, name, adapter.config())
            wrong = misplaced_weights(network, adapter, name)
        except (RuntimeError, ValueError, KeyError) as error:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model: {error}"
            ) from error
        if wrong:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model, which accepts plain LoRA on "
                "linear layers. These weights or layers are missing, unexpected or of another "
                f"kind: {', '.join(wrong[:3])}"
            )

    def _register(self, name: str, number: int) -> str:
        self._network.train(False)
        self._layers = adapted_layers(self.network, self._copies.values())
        self._weights[name] = held_weights(self.network, name)
        self._numbered.discard(name)
        return self._versions.set(name, number)

    def _remove(self, name: str) -> None:
        version, weights = self._versions.current(name), self._weights.pop(name)
        if self._versions.leased(version):
            self._copies[version], self._metadata[version] = weights, self._metadata[name]
        del self._versions.numbers[name], self._metadata[name]
        self._delete(name)

    def _delete(self, name: str) -> None:
        network = self._network
        if not isinstance(network, PeftModel) or name not in network.peft_config:
            return
        others = [other for other in network.peft_config if other != name]
        if others:
            network.set_adapter(others[0])  # peft warns if the active adapter is deleted
            network.delete_adapter(name)
        else:
            self._network = network.unload()  # a peft model needs at least one adapter
        self._layers = adapted_layers(self.network, self._copies.values())

    def _check_new(self, name: str) -> None:
        self._versions.check_new(name)
        check_name(self.network, name)

    def _check_known(self, name: str) -> None:
        if name not in self._versions:
            raise ConfigError(f"no adapter '{name}'; there are: {self._versions.listing()}")

    def _check_not_training(self) -> None:
        if self._training:
            raise ConfigError(
                f"'{', '.join(sorted(self._training))}' is in training; add, load or unload "
                "adapters before or after it"
            )

    # -- versions -----------------------------------------------------------------------------

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The weights of one adapter, in the same order for all adapters of one shape.

        Change them only inside :meth:`activate`. Otherwise the change also affects runs that lease
        the old version. Raises ``ConfigError`` if there is no such adapter.
        """
        self._check_known(name)
        return [
            parameter  # type: ignore[misc]
            for weights in self._weights[name].values()
            for parameter in weights[:2]
        ]

    def lease(self, adapter: str) -> str:
        """Return the current version of an adapter, which stays available until :meth:`release`.
        Leases are counted; a request may name the version (``"agent_2@7"``) as its adapter. Raises
        ``ModelError`` if there is no such adapter or version."""
        return self._versions.lease(adapter)

    def release(self, version: str) -> None:
        """Give up one lease; with the last, weights that are not current are deleted. Raises
        ``ModelError`` if it is not leased."""
        if self._versions.release(version):
            self._drop(version)

    def bump(self, name: str) -> str:
        """Give the current weights a new version; return it.

        After a training, it returns the version that the weights got when the training ended.
        """
        self._check_known(name)
        old = self._versions.current(name)
        if name in self._numbered:
            self._numbered.discard(name)
            return old
        if name not in self._training and self._versions.leased(old):
            self._copies[old] = copied(self._weights[name])
        new = self._versions.set(name, self._versions.next(name))
        if name in self._training:
            self._copies[new] = copied(self._weights[name])
            self._drop(old)
        return new

    def _drop(self, version: str) -> None:
        """Delete a copy, unless it is leased or answers for an adapter in training."""
        in_training = map(self._versions.current, self._training)
        if not self._versions.leased(version) and version not in in_training:
            self._copies.pop(version, None)
            self._metadata.pop(version, None)

    # -- in use -------------------------------------------------------------------------------

    @contextmanager
    def activate(self, name: str) -> Iterator[nn.Module]:
        """Training mode: one adapter is active, and only its weights are trainable.

        Until the context ends, requests are answered with the weights from before it.
        """
        if not isinstance(self._network, PeftModel):
            raise ModelError("this model has no adapters yet; call add_adapter first")
        network = self._network
        parameters = self.adapter_parameters(name)
        network.set_adapter(name)
        network.requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        outermost = name not in self._training
        if outermost:
            self._training.add(name)
            self._copies[self._versions.current(name)] = copied(self._weights[name])
        network.train()
        try:
            yield network
        finally:
            network.train(False)
            if outermost:
                self._end_training(name)

    def _end_training(self, name: str) -> None:
        self._training.discard(name)
        version = self._versions.current(name)
        if equal(self._weights[name], self._copies[version]):
            del self._copies[version]
        else:
            self._versions.set(name, self._versions.next(name))
            self._numbered.add(name)
            self._drop(version)

    @contextmanager
    def reference(self) -> Iterator[nn.Module]:
        """The base model: no adapter is active, and there are no gradients."""
        network = self._network
        off = network.disable_adapter() if isinstance(network, PeftModel) else nullcontext()
        with off, torch.no_grad():
            yield network

    @contextmanager
    def routed(self, versions: Sequence[str | None]) -> Iterator[PreTrainedModel]:
        """A context in which the network's forwards send each row of a batch through its own
        adapter.

        Args:
            versions: one per row, from :meth:`lease`; ``None``: the base model. Equal ones should
                be adjacent.
        """
        with self._routing(versions):
            yield self.network

    @contextmanager
    def _routing(
        self,
        versions: Sequence[str | None],
        merge: Callable[[AdapterWeights], MergedWeights] | None = None,
    ) -> Iterator[LoraRouting]:
        weights = self._in_memory()
        training = self.network.training
        if training:
            self.network.train(False)
        try:
            rows = [None if v is None else weights[v] for v in versions]
            with LoraRouting(self._layers, rows, merge) as routing:
                yield routing
        finally:
            if training:
                self.network.train(True)

    def _in_memory(self) -> dict[str, AdapterWeights]:
        """The weights of every version that can answer requests."""
        current = {self._versions.current(name): w for name, w in self._weights.items()}
        return {**current, **self._copies}
