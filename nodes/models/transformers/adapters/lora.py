"""A transformers model with named LoRA adapters of peft, each with live weights and versions."""

from __future__ import annotations

import json
import threading
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.adapter_metadata import AdapterMetadata, fingerprint, read_metadata, write_metadata
from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.transformers.adapters.files import (
    VERSIONS_FILE,
    PlainAdapter,
    check_name,
    misplaced_weights,
    read_adapter,
    read_versions,
    write_adapter,
)
from swarm_ui.nodes.models.transformers.adapters.frozen import (
    Freezer,
    FrozenAdapter,
    Published,
    held_weights,
    parameters_of,
    state_of,
)
from swarm_ui.nodes.models.transformers.adapters.routing import (
    AdapterWeights,
    LoraRouting,
)
from swarm_ui.nodes.models.versions import VersionBook, parsed_version

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_TRIAL = "on-trial"


class LoraNetwork:
    """A network and its adapters; every row of a batch can use another adapter.

    **Live weights** are peft's, ordinary parameters (:meth:`adapter_parameters`). Any optimiser may
    change them, and so may assignments in place under ``torch.no_grad()`` (not through ``.data``).

    **Versions** answer requests. ``"agent_2@7"`` always means the same weights. A lease of
    ``"agent_2"`` publishes the live weights as the next version if they have changed, as a copy in
    the type of the base's weights. Between the beginning and the end of :meth:`activate`, it does
    not: requests get the weights from before.

    **Metadata.** Each adapter has an :class:`~swarm_ui.adapter_metadata.AdapterMetadata`, which is
    saved and loaded with it. An adapter that was trained on other base weights is not loaded.

    **Threads.** One thread at a time uses the network; the others wait.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        targets: Sequence[str] | str,
        *,
        name: str = "",
        prompt_format: str = "",
        part: str = "",
    ) -> None:
        """
        Args:
            network: the base model.
            targets: the layers that get an adapter, as peft's ``target_modules``.
            name: name of the model in traces, metadata and errors.
            prompt_format: that of requests without an adapter, and of adapters that are added.
            part: adapters may change layers whose names begin with this only.
        """
        network.train(False)
        self.name, self.prompt_format, self._part = name, prompt_format, part
        self._network: PreTrainedModel | PeftModel = network
        self._targets = targets if isinstance(targets, str) else list(targets)
        self._live: dict[str, AdapterWeights] = {}
        """Adapters as peft holds them."""
        self._parameters: dict[str, list[nn.Parameter]] = {}
        """The same, as lists: the state of an adapter is asked for with every request."""
        self._metadata: dict[str, AdapterMetadata] = {}
        self._book: VersionBook[Published] = VersionBook()
        self._freezer = Freezer()
        self._seen: dict[str, tuple[int, int]] = {}
        """The :func:`state_of` of the live weights when they were last compared with a version."""
        self._base: tuple[int, int] | None = None
        self._training: Counter[str] = Counter()
        self._layers: dict[str, nn.Module] = {}
        """The modules to which an adapter may add, by name."""
        self._base_parameters = list(network.parameters())
        self._lock, self._holder = threading.RLock(), 0

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._live)

    @property
    def versions(self) -> dict[str, int]:
        """The number of the newest published version of each adapter that was ever leased."""
        return self._book.numbers

    @property
    def module(self) -> nn.Module:
        """The network with its adapters: peft's model, or the plain one while there are none.

        It is in evaluation mode outside :meth:`activate`. Waits for the batch under way.
        """
        with self.exclusive():
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
        """The metadata of an adapter, by its name or a version (``"agent_2@7"``), which keeps its
        metadata when another one is loaded. Raises ``ConfigError`` if there is none."""
        if adapter not in self._metadata and adapter in self._book:
            return self._book[adapter].metadata
        name = adapter if adapter in self._metadata else adapter.partition("@")[0]
        self._check_known(name)
        return self._metadata[name]

    def format_of(self, adapter: str | None) -> str:
        """The prompt format of requests to an adapter: its own, or else the model's. Raises
        ``ConfigError`` as :meth:`metadata` does."""
        own = "" if adapter is None else self.metadata(adapter).prompt_format
        return own or self.prompt_format

    def base_fingerprint(self) -> str:
        """The hash of the base weights; see :func:`swarm_ui.adapter_metadata.fingerprint`."""
        return fingerprint(self.base_weights().values())

    # -- adding, loading, saving --------------------------------------------------------------

    def add_adapter(
        self, name: str, rank: int = 16, alpha: float | None = None, copy_from: str | None = None
    ) -> None:
        """A new LoRA adapter; it changes nothing at first, or is a copy of another one.

        Args:
            name: its name.
            rank, alpha: the settings of LoRA; ``alpha`` is twice the rank by default.
            copy_from: an adapter, whose settings and weights are taken instead.

        Raises:
            ConfigError: the name exists or cannot be used, ``copy_from`` does not exist, or the
                network cannot have adapters. Nothing was added.
        """
        with self._changing():
            self._check_new(name)
            if copy_from is None:
                alpha = 2 * rank if alpha is None else alpha
                config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=self._targets)  # type: ignore[arg-type]
                metadata = AdapterMetadata(prompt_format=self.prompt_format)
            else:
                self._check_known(copy_from)
                known: Any = self._network.peft_config
                config, metadata = deepcopy(known[copy_from]), self._metadata[copy_from]
            try:
                self._add(name, config)
            except ValueError as error:  # peft refuses some layers, such as those of Mamba
                raise ConfigError(
                    f"this network cannot have the adapter '{name}': {error}"
                ) from error
            self._register(name, metadata)
        if copy_from is not None:
            with torch.no_grad():
                for old, new in zip(*map(self.adapter_parameters, (copy_from, name)), strict=True):
                    new.copy_(old)

    def load_adapters(self, folder: Path | str) -> None:
        """Load what :meth:`save_adapters` wrote, with the versions; existing names are replaced.

        Raises:
            ConfigError: the folder holds no saved adapters, or one does not fit, or other weights
                are leased under a saved version.
        """
        folder = Path(folder)
        numbers = read_versions(folder)
        used = [v for v in (f"{n}@{k}" for n, k in numbers.items()) if self._book.leased(v)]
        if used:
            raise ConfigError(
                f"'{folder}' holds {used[0]}, and runs still use other weights of that version; "
                "load the folder when these runs have ended, or use load_adapter"
            )
        read = {name: read_adapter(folder / name) for name in numbers}
        for name in numbers:  # before the first is replaced
            self._fitting(folder / name)
        for name, number in numbers.items():
            self._replace(folder / name, read[name], name, number)

    def load_adapter(self, folder: Path | str, name: str) -> str:
        """Load one adapter in peft's own format, also while requests are in flight.

        Returns:
            Its version; the next one if the name exists. An older version that is leased is kept.

        Raises:
            ConfigError: the folder holds no plain LoRA adapter that fits this model.
        """
        folder = Path(folder)
        return self._replace(folder, read_adapter(folder), name, None)

    def load_version(self, version: str, folder: Path) -> None:
        """Like :meth:`load_adapter`, under the given version, such as ``"agent_2@7"``."""
        self._replace(folder, read_adapter(folder), *parsed_version(version))

    def save_adapters(self, folder: Path | str) -> None:
        """One sub-folder per adapter, in peft's own format with metadata, and their versions."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        base = self.base_fingerprint() if self._live else ""
        for name, weights in self._live.items():
            self._refresh(name)
            write_adapter(folder / name, weights, self.network)
            write_metadata(folder / name, self._metadata[name].saved_with(self.name, base))
        (folder / VERSIONS_FILE).write_text(json.dumps(self.versions), encoding="utf-8")

    def save_version(self, version: str, folder: Path) -> None:
        """Write the weights of one version, such as ``"agent_2@7"``, in peft's own format, as a
        server loads them. Raises ``ConfigError`` if the version is neither current nor leased."""
        if not self.has_version(version):
            raise ConfigError(f"no version '{version}'; this model has: {self._listing()}")
        write_adapter(folder, self._book[version].adapter.weights, self.network)

    def has_version(self, version: str) -> bool:
        """Whether a version can answer requests: it is current, or leased."""
        return version in self._book

    def _replace(self, folder: Path, adapter: PlainAdapter, name: str, number: int | None) -> str:
        with self._changing():
            if name not in self._live:
                self._check_new(name)
            metadata = self._fitting(folder)
            # Loaded under a temporary name first, so that a folder that does not fit changes
            # nothing.
            with torch.random.fork_rng(devices=[]):
                try:
                    self._load(folder, adapter, _TRIAL)
                    self._delete(name)
                    self._load(folder, adapter, name)
                finally:
                    self._delete(_TRIAL)
            self._register(name, metadata)
            return self._publish(name, number)

    def _fitting(self, folder: Path) -> AdapterMetadata:
        """The metadata of an adapter. Raises ``ConfigError`` if its base was another one."""
        metadata = read_metadata(folder)
        if metadata.base_fingerprint:
            metadata.expect_base(folder, self.name, self.base_fingerprint())
        return metadata

    def _load(self, folder: Path, adapter: PlainAdapter, name: str) -> None:
        """Add an adapter that was read from a folder, and check that it fits the network."""
        inside = f"base_model.model.{self._part}"
        wrong = [key for key in adapter.weights if not key.startswith(inside)]
        try:
            wrong = wrong or misplaced_weights(self._add(name, adapter.config()), adapter, name)
        except (RuntimeError, ValueError, KeyError) as error:
            raise ConfigError(f"'{folder}' does not fit this model: {error}") from error
        if wrong:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model, which accepts plain LoRA on "
                f"linear layers; missing, unexpected or of another kind: {', '.join(wrong[:3])}"
            )

    # -- peft ---------------------------------------------------------------------------------

    def _add(self, name: str, config: LoraConfig) -> PeftModel:
        network = self._network
        if isinstance(network, PeftModel):
            network.add_adapter(name, config)
        else:
            with warnings.catch_warnings():
                # peft reads a property of the network by the name that transformers deprecates.
                warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
                self._network = network = get_peft_model(network, config, adapter_name=name)
        return network

    def _delete(self, name: str) -> None:
        network = self._network
        if isinstance(network, PeftModel) and name in network.peft_config:
            others = [other for other in network.peft_config if other != name]
            if others:
                network.set_adapter(others[0])  # peft warns if the active adapter is deleted
                network.delete_adapter(name)
            else:
                self._network = network.unload()  # a peft model needs at least one adapter
        self._settle()

    def _register(self, name: str, metadata: AdapterMetadata) -> None:
        self._metadata[name] = metadata
        self._live[name] = held_weights(self.network, name)
        self._parameters[name] = parameters_of(self._live[name])
        self._settle()

    def _settle(self) -> None:
        """Bring the network into the state that it has between changes of adapters."""
        self._network.train(False)
        for parameters in self._parameters.values():
            for parameter in parameters:  # peft stops the gradients of adapters that are not active
                parameter.requires_grad_(True)
        self._base_parameters = [
            parameter for key, parameter in self.network.named_parameters() if ".lora_" not in key
        ]
        # Versions that are leased may change layers that peft does not change any more.
        adapted = {key for version in self._book for key in self._book[version].adapter.weights}
        self._layers = {
            key: part
            for key, part in self.network.named_modules()
            if isinstance(part, LoraLayer) or key in adapted
        }

    # -- checks -------------------------------------------------------------------------------

    def _check_new(self, name: str) -> None:
        if name in self._live:
            raise ConfigError(f"adapter '{name}' exists already; choose another name")
        check_name(self.network, name)

    def _check_known(self, name: str) -> None:
        if name not in self._live:
            raise ConfigError(f"no adapter '{name}'; there are: {self._listing()}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block that changes adapters. Raises ``ConfigError`` if one is in training."""
        with self.exclusive():
            if self._training:
                raise ConfigError(
                    f"'{', '.join(sorted(self._training))}' is in training; add or load adapters "
                    "before or after it"
                )
            yield

    def _listing(self) -> str:
        new = [name for name in self.adapters if name not in self.versions]
        return ", ".join([*self._book, *new]) or "none"

    # -- versions -----------------------------------------------------------------------------

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The live weights of an adapter, in the same order for all adapters of one shape. Raises
        ``ConfigError`` if there is no such adapter."""
        self._check_known(name)
        return list(self._parameters[name])

    def lease(self, adapter: str) -> str:
        """Return the version to which ``"agent_2"`` or ``"agent_2@7"`` refers now; it stays
        available until :meth:`release`. Live weights that have changed become a new version. Raises
        ``ModelError`` if there is no such adapter or version."""
        if adapter in self._live:
            self._refresh(adapter)
        elif adapter not in self._book:
            raise ModelError(f"no adapter '{adapter}'; this model has: {self._listing()}")
        return self._book.lease(adapter)

    def release(self, version: str) -> None:
        """Give up one lease; with the last, weights that are not current are deleted. Raises
        ``ModelError`` if it is not leased."""
        self._book.release(version)

    def _refresh(self, name: str) -> None:
        """Publish the live weights of an adapter if they differ from the current version."""
        state = state_of(self._parameters[name])
        if name not in self._training and self._seen.get(name) != state:
            self._publish(name, self._book.numbers.get(name), or_next=True)

    def _publish(self, name: str, number: int | None, *, or_next: bool = False) -> str:
        """Publish the live weights under a number; ``None``: the next one. With ``or_next``, the
        next one if other weights have this number."""
        self._seen[name] = state_of(self._parameters[name])
        adapter = self._freezer.freeze(self._live[name], self.network.dtype)
        held, version = Published(adapter, self._metadata[name]), f"{name}@{number}"
        if version in self._book:
            known = self._book[version]
            held = known if known == held else held
            number = None if or_next and known.adapter is not adapter else number
        return self._book.publish(name, held, number)

    # -- in use -------------------------------------------------------------------------------

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """A block in which no other thread uses the network."""
        with self._lock:
            before, self._holder = self._holder, threading.get_ident()
            try:
                yield
            finally:
                self._holder = before

    def in_use_here(self) -> bool:
        """Whether this thread is inside of such a block."""
        return self._holder == threading.get_ident()

    @contextmanager
    def activate(self, name: str) -> Iterator[nn.Module]:
        """Training mode: forwards of :attr:`module` use the live weights of one adapter.

        Until the context ends, requests are answered with the weights from before it.
        """
        self._check_known(name)
        with self.exclusive():
            network: Any = self._network
            self._refresh(name)
            network.set_adapter(name)
            self._settle()
            network.train()
            self._training[name] += 1
            try:
                yield network
            finally:
                network.train(False)
                self._training[name] -= 1
                self._training += Counter()  # without those whose training has ended

    @contextmanager
    def reference(self) -> Iterator[nn.Module]:
        """The base model: no adapter is active, and there are no gradients."""
        with self.exclusive(), torch.no_grad(), LoraRouting(self._layers, []):
            yield self._network

    @contextmanager
    def routed(self, versions: Sequence[str | None]) -> Iterator[PreTrainedModel]:
        """A context in which each row of a batch goes through its own adapter: ``versions`` from
        :meth:`lease`, one per row, equal ones adjacent; ``None``: the base model."""
        with self.exclusive(), self._routing([self._frozen_of(version) for version in versions]):
            yield self.network

    @contextmanager
    def routed_live(self, names: Sequence[str | None]) -> Iterator[PreTrainedModel]:
        """Like :meth:`routed`, with the live weights of adapters, which get gradients. Dropout of
        adapters is not applied."""
        for name in dict.fromkeys(names):
            if name is not None:
                self._check_known(name)
        rows = [None if name is None else self._live[name] for name in names]
        with self.exclusive(), LoraRouting(self._layers, rows):
            yield self.network

    def _frozen_of(self, version: str | None) -> FrozenAdapter | None:
        return None if version is None else self._book[version].adapter

    @contextmanager
    def _routing(
        self, adapters: Sequence[FrozenAdapter | None], *, merged: bool = False
    ) -> Iterator[LoraRouting]:
        """See :meth:`routed`; ``merged``: each adapter is merged into a copy of the layers."""
        training = self.network.training
        if training:
            self.network.train(False)
        try:
            rows = [None if adapter is None else adapter.weights for adapter in adapters]
            whole = (
                {id(a.weights): a.merged_with(self._layers) for a in adapters if a}
                if merged
                else None
            )
            with LoraRouting(self._layers, rows, whole or None) as routing:
                yield routing
        finally:
            if training:
                self.network.train(True)

    def _base_changed(self) -> bool:
        """Whether a weight of the base model changed since the last call. What was computed with
        it is forgotten."""
        before, self._base = self._base, state_of(self._base_parameters)
        if self._base == before:
            return False
        for version in self._book:
            self._book[version].adapter.merged = None
        return True
