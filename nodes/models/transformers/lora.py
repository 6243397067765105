"""A transformers model with named LoRA adapters of peft, each with live weights and versions."""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from swarm_ui.adapter_metadata import AdapterMetadata, fingerprint, read_metadata, write_metadata
from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.transformers.adapter_files import (
    VERSIONS_FILE,
    read_adapter,
    read_versions,
    write_adapter,
)
from swarm_ui.nodes.models.transformers.routing import (
    AdapterWeights,
    FrozenAdapter,
    LoraRouting,
    LoraWeights,
)
from swarm_ui.nodes.models.versions import VersionBook, parsed_version

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class _Live:
    """An adapter."""

    def __init__(self, weights: AdapterWeights, metadata: AdapterMetadata) -> None:
        self.weights, self.metadata = weights, metadata
        self.parameters: list[Any] = [part for each in weights.values() for part in each[:2]]
        self.seen: object = None
        """The :func:`_state` of the weights when they were last compared with a version."""


class LoraNetwork:
    """A network and its adapters; every row of a batch can use another adapter.

    **Live weights** are peft's, ordinary parameters (:meth:`adapter_parameters`). Any optimiser may
    change them, and so may assignments in place under ``torch.no_grad()`` (not through ``.data``).

    **Versions** answer requests. ``"agent_2@7"`` always means the same weights. A lease of
    ``"agent_2"`` publishes the live weights as the next version if they have changed, as a copy in
    the type of the base's weights.

    **Metadata.** Each adapter has an :class:`~swarm_ui.adapter_metadata.AdapterMetadata`, which is
    saved and loaded with it. An adapter that was trained on other base weights is not loaded.

    **Threads.** One thread at a time uses the network; the others wait.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        targets: Sequence[str] | str,
        *,
        name: str,
        prompt_format: str = "",
        part: str = "",
    ) -> None:
        """``targets``: the layers that get an adapter, as peft's ``target_modules``.
        ``prompt_format``: that of requests without an adapter, and of adapters that are added.
        ``part``: adapters may change layers whose names begin with this only."""
        network.train(False)
        self.name, self.prompt_format, self._part = name, prompt_format, part
        self._network: PreTrainedModel | PeftModel = network
        self._targets = targets if isinstance(targets, str) else list(targets)
        self._live: dict[str, _Live] = {}
        self.book: VersionBook[FrozenAdapter] = VersionBook()
        self._frozen: WeakValueDictionary[str, FrozenAdapter] = WeakValueDictionary()
        """By digest, so that equal adapters are one object."""
        self._base: object = None
        self._layers: dict[str, nn.Module] = {}
        """The modules to which an adapter may add, by name."""
        self._base_parameters = list(network.parameters())
        self._lock, self._holder = threading.RLock(), 0

    @property
    def adapters(self) -> tuple[str, ...]:
        """The names of the adapters."""
        return tuple(self._live)

    @property
    def module(self) -> nn.Module:
        """The network with its adapters: peft's model, or the plain one while there are none; in
        evaluation mode outside :meth:`activate`. Waits for the batch under way."""
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
        if adapter not in self._live and adapter in self.book:
            return self.book[adapter].metadata
        return self._known(adapter if adapter in self._live else adapter.partition("@")[0]).metadata

    def format_of(self, adapter: str | None) -> str:
        """The prompt format of requests to an adapter: its own, or else the model's. Raises
        ``ConfigError`` as :meth:`metadata` does."""
        own = "" if adapter is None else self.metadata(adapter).prompt_format
        return own or self.prompt_format

    def base_fingerprint(self) -> str:
        """The hash of the base weights; see :func:`swarm_ui.adapter_metadata.fingerprint`."""
        return fingerprint(self.base_weights().values())

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """The live weights of an adapter, in the same order for all adapters of one shape. Raises
        ``ConfigError`` if there is no such adapter."""
        return list(self._known(name).parameters)

    # -- adding, loading, saving --------------------------------------------------------------

    def add_adapter(self, name: str, rank: int = 16, alpha: float | None = None) -> None:
        """A new LoRA adapter, which changes nothing at first. ``alpha`` is twice the rank by
        default. Raises ``ConfigError`` if the name exists or cannot be used, or the network cannot
        have adapters; then nothing was added."""
        with self._changing():
            self._check_new(name)
            alpha = 2 * rank if alpha is None else alpha
            config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=self._targets)  # type: ignore[arg-type]
            self._add(name, config, AdapterMetadata(prompt_format=self.prompt_format))

    def load_adapters(self, folder: Path | str) -> None:
        """Load what :meth:`save_adapters` wrote, with the versions; existing names are replaced.
        Raises ``ConfigError`` if the folder holds no saved adapters, one does not fit, or other
        weights are leased under a saved version."""
        folder = Path(folder)
        numbers = read_versions(folder)
        if used := [v for v in (f"{n}@{k}" for n, k in numbers.items()) if self.book.leased(v)]:
            raise ConfigError(
                f"'{folder}' holds {used[0]}, and runs still use other weights of that version; "
                "load the folder when these runs have ended, or use load_adapter"
            )
        read = {name: self._read(folder / name, name) for name in numbers}
        for name, number in numbers.items():
            self._replace(*read[name], name, number)

    def load_adapter(self, folder: Path | str, name: str) -> str:
        """Load one adapter in peft's own format, also while requests are in flight. Returns its
        version: the next one if the name has other weights, of which a leased version is kept.
        Raises ``ConfigError`` if the folder holds no plain LoRA adapter that fits this model."""
        return self._replace(*self._read(Path(folder), name), name, None)

    def load_version(self, version: str, folder: Path) -> None:
        """Like :meth:`load_adapter`, under the given version, such as ``"agent_2@7"``."""
        name, number = parsed_version(version)
        self._replace(*self._read(folder, name), name, number)

    def save_adapters(self, folder: Path | str) -> None:
        """One sub-folder per adapter, in peft's own format with metadata, and their versions."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        base = self.base_fingerprint() if self._live else ""
        for name, live in self._live.items():
            self._refresh(name)
            write_adapter(folder / name, live.weights, self.network)
            write_metadata(folder / name, live.metadata.saved_with(self.name, base))
        (folder / VERSIONS_FILE).write_text(json.dumps(self.book.numbers), encoding="utf-8")

    def save_version(self, version: str, folder: Path) -> None:
        """Write one version, such as ``"agent_2@7"``, in peft's own format with metadata, as a
        server loads it. Raises ``ModelError`` if the version is neither current nor leased."""
        adapter = self.book[version]
        write_adapter(folder, adapter.weights, self.network)
        write_metadata(folder, adapter.metadata.saved_with(self.name, self.base_fingerprint()))

    def _read(self, folder: Path, name: str) -> tuple[LoraConfig, AdapterWeights, AdapterMetadata]:
        """An adapter in a folder, after checking that it fits this model."""
        (config, weights), metadata = read_adapter(folder), read_metadata(folder)
        if name not in self._live:
            self._check_new(name)
        if metadata.base_fingerprint:
            metadata.expect_base(folder, self.name, self.base_fingerprint())
        layers = dict(self.network.named_modules())
        head = self.network.get_output_embeddings()  # type: ignore[no-untyped-call]
        wrong = [
            layer
            for layer, (down, up, _) in weights.items()
            if not layer.startswith(self._part)
            or layers.get(layer) is head
            or _sizes(layers.get(layer)) != (down.shape[1], up.shape[0])
        ]
        if wrong:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model, which accepts plain LoRA on "
                f"linear layers before the output layer; not there, or of another kind or size: "
                f"{', '.join(wrong[:3])}"
            )
        return config, weights, metadata

    def _replace(
        self,
        config: LoraConfig,
        weights: AdapterWeights,
        metadata: AdapterMetadata,
        name: str,
        number: int | None,
    ) -> str:
        with self._changing(), torch.random.fork_rng(devices=[]), torch.no_grad():
            self._delete(name)
            self._add(name, config, metadata)
            for layer, (down, up, _) in weights.items():
                self._live[name].weights[layer].down.copy_(down)
                self._live[name].weights[layer].up.copy_(up)
            return self._publish(name, number)

    # -- peft ---------------------------------------------------------------------------------

    def _add(self, name: str, config: LoraConfig, metadata: AdapterMetadata) -> None:
        network = self._network
        try:
            if isinstance(network, PeftModel):
                network.add_adapter(name, config)
            else:
                with warnings.catch_warnings():
                    # peft reads a property of the network by the name that transformers deprecates.
                    warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
                    self._network = get_peft_model(network, config, adapter_name=name)
        except ValueError as error:  # peft refuses some layers, such as those of Mamba
            raise ConfigError(f"this network cannot have the adapter '{name}': {error}") from error
        weights = {
            key: LoraWeights(
                layer.lora_A[name].weight,  # type: ignore[arg-type]
                layer.lora_B[name].weight,  # type: ignore[arg-type]
                layer.scaling[name],
            )
            for key, layer in self.network.named_modules()
            if isinstance(layer, LoraLayer) and name in layer.lora_A
        }
        self._live[name] = _Live(weights, metadata)
        self._settle()

    def _delete(self, name: str) -> None:
        network = self._network
        if isinstance(network, PeftModel) and name in network.peft_config:
            others = [other for other in network.peft_config if other != name]
            if others:
                network.set_adapter(others[0])  # peft warns if the active adapter is deleted
                network.delete_adapter(name)
            else:
                self._network = network.unload()  # a peft model needs at least one adapter

    def _settle(self) -> None:
        """Bring the network into the state that it has between changes of adapters."""
        self._network.train(False)
        for live in self._live.values():
            for parameter in live.parameters:  # peft stops the gradients of inactive adapters
                parameter.requires_grad_(True)
        # Versions that are leased may change layers that peft does not change any more.
        adapted = {key for version in self.book for key in self.book[version].weights}
        self._layers = {
            key: part
            for key, part in self.network.named_modules()
            if isinstance(part, LoraLayer) or key in adapted
        }

    # -- checks -------------------------------------------------------------------------------

    def _check_new(self, name: str) -> None:
        if name in self._live:
            raise ConfigError(f"adapter '{name}' exists already; choose another name")
        parts = {part for key, _ in self.network.named_modules() for part in key.split(".")}
        # It becomes part of versions, file and module names; peft keeps the weights of a layer's
        # adapters in dictionaries, which have names themselves.
        taken = name in parts | {"lora_A", "lora_B"} or hasattr(nn.ModuleDict(), name)
        if taken or not _NAME.fullmatch(name):
            raise ConfigError(
                f"an adapter cannot be named {name!r}; use letters, digits, '_' and '-', begin "
                "with a letter, and do not use the name of a part of a layer"
            )

    def _known(self, name: str) -> _Live:
        if name not in self._live:
            raise ConfigError(f"no adapter '{name}'; there are: {', '.join(self._live) or 'none'}")
        return self._live[name]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A block that changes adapters. Raises ``ConfigError`` if this thread uses the network."""
        if self.in_use_here():
            raise ConfigError(
                f"'{self.name}' is in training or in use in this thread; add or load adapters "
                "before or after it"
            )
        with self.exclusive():
            yield

    # -- versions -----------------------------------------------------------------------------

    def lease(self, adapter: str) -> str:
        """Return the version to which ``"agent_2"`` or ``"agent_2@7"`` refers now; it stays
        available until it is released. Live weights that have changed become a new version. Raises
        ``ModelError`` if there is no such adapter or version."""
        if adapter in self._live:
            self._refresh(adapter)
        return self.book.lease(adapter)

    def frozen(self, version: str | None) -> FrozenAdapter | None:
        """The weights of a version. Raises ``ModelError`` if there is no such version."""
        return None if version is None else self.book[version]

    def _refresh(self, name: str) -> None:
        """Publish the live weights of an adapter if they have changed and are not in training."""
        live = self._live[name]
        if not self.in_use_here() and live.seen != _state(live.parameters):
            self._publish(name, None)

    def _publish(self, name: str, number: int | None) -> str:
        """Publish the live weights under a number; ``None``: see ``VersionBook.publish``."""
        live = self._live[name]
        live.seen = _state(live.parameters)
        made = FrozenAdapter(live.weights, self.network.dtype, live.metadata)
        return self.book.publish(name, self._frozen.setdefault(made.digest, made), number)

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
        """Training mode: forwards of :attr:`module` use the live weights of one adapter. Until the
        context ends, requests of other threads wait, and those of this one are an error."""
        self._known(name)
        self._refresh(name)
        with self.exclusive():
            network: Any = self._network
            network.set_adapter(name)
            self._settle()
            network.train()
            try:
                yield network
            finally:
                network.train(False)

    @contextmanager
    def routed(
        self, adapters: Sequence[FrozenAdapter | None], *, merged: bool = False
    ) -> Iterator[LoraRouting]:
        """A context in which each row of a batch goes through its own frozen adapter (equal ones
        adjacent). ``merged``: each is merged into a copy of the layers."""
        with self.exclusive(), LoraRouting(self._layers, adapters, merged) as routing:
            yield routing

    def base_changed(self) -> bool:
        """Whether a weight of the base model changed since the last call. What was computed with
        it is forgotten."""
        before, self._base = self._base, _state(self._base_parameters)
        for version in self.book if self._base != before else ():
            self.book[version].merged = None
        return self._base != before


def _sizes(layer: nn.Module | None) -> tuple[int, int] | None:
    """Inputs and outputs of a linear layer; ``None`` for another kind."""
    base = getattr(layer, "base_layer", layer)
    if isinstance(base, nn.Linear):
        return base.in_features, base.out_features
    return (base.nx, base.nf) if isinstance(base, Conv1D) else None


_steps = 0
"""Number of steps of all optimisers of this process."""


def _count_step(*_: object) -> None:
    global _steps
    _steps += 1


register_optimizer_step_post_hook(_count_step)


def _state(parameters: Sequence[nn.Parameter]) -> tuple[int, int]:
    """A value that differs after any change of the parameters in place.

    torch counts changes of a tensor, except those of fused optimisers; so their steps count too.
    """
    return _steps, sum(parameter._version for parameter in parameters)
