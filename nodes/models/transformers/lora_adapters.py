"""Named LoRA adapters on one transformers model, each with a version, through peft."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.transformers.adapter_leases import AdapterLeases
from swarm_ui.nodes.models.transformers.multi_lora import Low, Route, Weights, routed
from swarm_ui.nodes.models.transformers.peft_files import check_files

_PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_VERSIONS = "versions.json"
_TRIAL = "on-trial"


class LoraAdapters:
    """The adapters of one model; rows of a batch can be routed to one each.

    **Versions.** ``"agent_2@7"`` stands for one set of weights for ever. Weights change in place,
    and only inside :meth:`active`, which sets a copy aside when it is entered; that copy goes on
    answering as version 7, also under the plain name, as long as the training lasts. If the
    weights are others when it is left, they are version 8 from then on, and the copy is dropped
    unless somebody leases it. Loading and unloading keep a leased version in the same way.
    """

    def __init__(
        self, network: PreTrainedModel, *, targets: Sequence[str] | str = _PROJECTIONS
    ) -> None:
        """
        Args:
            targets: the layers that get an adapter, as peft's ``target_modules``.
        """
        network.train(False)
        self._network: PreTrainedModel | PeftModel = network
        self._targets = targets if isinstance(targets, str) else list(targets)
        self._versions = AdapterLeases()
        self._layers: dict[str, nn.Module] = {}
        self._live: dict[str, Weights] = {}
        """Adapters as peft holds them."""
        self._kept: dict[str, Weights] = {}
        """By version: older ones that are leased, and copies of those in training."""
        self._training: set[str] = set()
        self._numbered: set[str] = set()
        """Names whose weights got their number when training ended, before :meth:`bump`."""

    @property
    def names(self) -> tuple[str, ...]:
        return self._versions.names

    @property
    def network(self) -> nn.Module:
        """The network with its adapters: peft's, or the plain one while there are none."""
        return self._network

    @property
    def base(self) -> PreTrainedModel:
        """The transformers model, with whatever adapter layers peft put into it."""
        network = self._network
        return network.get_base_model() if isinstance(network, PeftModel) else network  # type: ignore[return-value]

    def base_weights(self) -> dict[str, Tensor]:
        """The model's own weights under their own names, without what peft put into it."""
        return {
            key.replace(".base_layer.", "."): weight
            for key, weight in self.base.state_dict().items()
            if ".lora_" not in key
        }

    # -- coming and going ---------------------------------------------------------------------

    def add(self, name: str, *, rank: int, alpha: float, copy_from: str | None) -> None:
        """A new adapter; zero at first, or a copy of another one.

        Raises:
            ConfigError: the name is taken or unfit, or ``copy_from`` does not exist.
        """
        self._check_idle()
        self._check_new(name)
        if copy_from is not None:
            self._check_known(copy_from)
        config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=self._targets)  # type: ignore[arg-type]
        if isinstance(self._network, PeftModel):
            self._network.add_adapter(name, config)
        else:
            self._network = get_peft_model(self._network, config, adapter_name=name)
        self._enter(name, self._versions.next(name))
        if copy_from is not None:
            with torch.no_grad():
                pairs = zip(self.parameters(copy_from), self.parameters(name), strict=True)
                for have, want in pairs:
                    want.copy_(have)

    def load(self, folder: Path) -> None:
        """Load what :meth:`save` wrote, numbers too; adapters of the same name are replaced.

        Raises:
            ConfigError: the folder holds no saved adapters, or one does not fit, or other weights
                are leased under a saved version.
        """
        if not (folder / _VERSIONS).is_file():
            raise ConfigError(f"no adapters in '{folder}': expected {_VERSIONS} there")
        numbers: dict[str, int] = json.loads((folder / _VERSIONS).read_text(encoding="utf-8"))
        for name, number in numbers.items():
            if self._versions.leased(f"{name}@{number}"):
                raise ConfigError(
                    f"'{folder}' holds {name}@{number}, and runs still use other weights of that "
                    "version; load it when they have ended, or with load_adapter"
                )
        for name, number in numbers.items():
            self._replace(folder / name, name, number)

    def load_one(self, folder: Path, name: str) -> str:
        """One adapter in peft's format; if the name exists, its next version. Returns that.

        Raises:
            ConfigError: the folder holds no plain LoRA adapter that fits this model.
        """
        return self._replace(folder, name, self._versions.next(name))

    def unload(self, name: str) -> None:
        """Forget an adapter. A leased version goes on answering until its last lease ends.

        Raises:
            ConfigError: unknown, or an adapter is in training.
        """
        self._check_known(name)
        self._check_idle()
        self._leave(name)

    def save(self, folder: Path) -> None:
        """One sub-folder an adapter, in peft's own format, and their versions."""
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self._network, PeftModel):
            self._network.save_pretrained(str(folder), selected_adapters=list(self.names))
        text = json.dumps(self._versions.numbers)
        (folder / _VERSIONS).write_text(text, encoding="utf-8")

    def _replace(self, folder: Path, name: str, number: int) -> str:
        check_files(folder)
        self._check_idle()
        if name not in self._versions:
            self._check_new(name)
        # Tried beside the others first: a folder that does not fit must not cost the old weights.
        with torch.random.fork_rng(devices=[]):
            try:
                self._take_up(folder, _TRIAL)
                if name in self._versions:
                    self._leave(name)
                self._take_up(folder, name)
            finally:
                self._delete(_TRIAL)
        return self._enter(name, number)

    def _take_up(self, folder: Path, name: str) -> None:
        """Let peft load a folder, and see that it brought plain LoRA that fits."""
        try:
            if not isinstance(self._network, PeftModel):
                config = LoraConfig.from_pretrained(str(folder))
                self._network = get_peft_model(self._network, config, adapter_name=name)
            device = str(self.base.device)
            found = self._network.load_adapter(str(folder), name, torch_device=device)
            # peft finds the adapter's own among the missing by any occurrence of its name.
            lost = [key for key in found.missing_keys if f".{name}." in key]
            lost += found.unexpected_keys
        except (RuntimeError, ValueError, KeyError) as error:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model: {error}"
            ) from error
        layers = self.base.named_modules()
        odd = [k for k, part in layers if isinstance(part, LoraLayer) and not _plain(part, name)]
        if lost or odd:
            raise ConfigError(
                f"the adapter in '{folder}' does not fit this model, which takes plain LoRA on "
                f"linear layers: {', '.join([*lost, *odd][:3])} is missing, too much, or no such "
                "layer"
            )

    def _enter(self, name: str, number: int) -> str:
        self._network.train(False)
        self._layers = self._parts()
        self._live[name] = {
            key: Low(layer.lora_A[name].weight, layer.lora_B[name].weight, layer.scaling[name])  # type: ignore[arg-type]
            for key, layer in self._layers.items()
            if isinstance(layer, LoraLayer) and name in layer.lora_A
        }
        self._numbered.discard(name)
        return self._versions.set(name, number)

    def _leave(self, name: str) -> None:
        version, weights = self._versions.current(name), self._live.pop(name)
        if self._versions.leased(version):
            self._kept[version] = weights
        self._versions.remove(name)
        self._delete(name)

    def _delete(self, name: str) -> None:
        network = self._network
        if not isinstance(network, PeftModel) or name not in network.peft_config:
            return
        others = [other for other in network.peft_config if other != name]
        if others:
            network.set_adapter(others[0])  # or peft warns that the active one went
            network.delete_adapter(name)
        else:
            self._network = network.unload()  # peft cannot be left without any adapter
        self._layers = self._parts()

    def _check_new(self, name: str) -> None:
        self._versions.check_new(name)
        if any(name in key.split(".") for key, _ in self.base.named_modules()):
            raise ConfigError(f"an adapter cannot be named '{name}': a part of the network is")

    def _check_known(self, name: str) -> None:
        if name not in self._versions:
            raise ConfigError(f"no adapter '{name}'; there are: {self._versions.listing()}")

    def _check_idle(self) -> None:
        if self._training:
            raise ConfigError(
                f"'{', '.join(sorted(self._training))}' is in training; add, load or unload "
                "adapters before or after it"
            )

    def _parts(self) -> dict[str, nn.Module]:
        """The layers that some adapter adds to; peft's, or plain ones when peft's adapter went
        and a leased version remains."""
        kept = {key for weights in self._kept.values() for key in weights}
        return {
            key: part
            for key, part in self.base.named_modules()
            if isinstance(part, LoraLayer) or key in kept
        }

    # -- versions -----------------------------------------------------------------------------

    def parameters(self, name: str) -> list[nn.Parameter]:
        """The weights of one adapter, in an order that is the same for all of one rank.

        Change them only inside :meth:`active`, or runs that lease the old ones see the new.
        """
        self._check_known(name)
        return [p for low in self._live[name].values() for p in (low.down, low.up)]  # type: ignore[misc]

    def lease(self, adapter: str) -> str:
        """Keep what answers under a name (or is a leased version) until :meth:`release`.

        Raises:
            ModelError: there is no such adapter or version.
        """
        version = self._versions.resolve(adapter)
        self._versions.lease(version)
        return version

    def release(self, version: str) -> None:
        """Give up one lease; with the last one, weights that are no longer current are freed."""
        if self._versions.release(version):
            self._drop(version)

    def bump(self, name: str) -> str:
        """Give the weights as they are now a version of their own; returns it.

        After a training this is the one they already got when it ended.
        """
        self._check_known(name)
        old = self._versions.current(name)
        if name in self._numbered:
            self._numbered.discard(name)
            return old
        if name not in self._training and self._versions.leased(old):
            self._kept[old] = _copied(self._live[name])
        new = self._versions.set(name, self._versions.next(name))
        if name in self._training:
            self._kept[new] = _copied(self._live[name])
            self._drop(old)
        return new

    def _drop(self, version: str) -> None:
        """Free a copy, unless it is leased or stands in for weights in training."""
        in_training = map(self._versions.current, self._training)
        if not self._versions.leased(version) and version not in in_training:
            self._kept.pop(version, None)

    # -- in use -------------------------------------------------------------------------------

    @contextmanager
    def active(self, name: str) -> Iterator[nn.Module]:
        """Training mode with one adapter in use and only its weights trainable."""
        network = self._peft()
        parameters = self.parameters(name)
        network.set_adapter(name)
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        outermost = name not in self._training
        if outermost:
            self._training.add(name)
            self._kept[self._versions.current(name)] = _copied(self._live[name])
        network.train()
        try:
            yield network
        finally:
            network.train(False)
            if outermost:
                self._trained(name)

    def _trained(self, name: str) -> None:
        self._training.discard(name)
        version = self._versions.current(name)
        live = self._live[name]
        if not _same(live, self._kept[version]):
            self._versions.set(name, self._versions.next(name))
            self._numbered.add(name)
            self._drop(version)
        else:
            del self._kept[version]

    @contextmanager
    def off(self) -> Iterator[nn.Module]:
        """The base model: no adapter in use, no gradients."""
        if not isinstance(self._network, PeftModel):
            with torch.no_grad():
                yield self._network
            return
        with self._network.disable_adapter(), torch.no_grad():
            yield self._network

    @contextmanager
    def routed(self, versions: Sequence[str | None]) -> Iterator[Route]:
        """Inside, forwards of :attr:`base` send each row through its own adapter.

        Args:
            versions: one a row, from :meth:`lease`; ``None``: the base model. Equal ones should
                stand together.
        """
        weights = {v: self._weights(v) for v in set(versions) if v is not None}
        base = self.base
        training = base.training
        if training:
            base.train(False)
        try:
            with routed(self._layers, [None if v is None else weights[v] for v in versions]) as way:
                yield way
        finally:
            if training:
                base.train(True)

    def _weights(self, version: str) -> Weights:
        kept = self._kept.get(version)
        return self._live[version.rpartition("@")[0]] if kept is None else kept

    def _peft(self) -> PeftModel:
        if not isinstance(self._network, PeftModel):
            raise ModelError("this model has no adapters yet; call add_adapter first")
        return self._network


def _plain(layer: LoraLayer, name: str) -> bool:
    """Whether what an adapter adds to a layer, if anything, is what :class:`Low` describes."""
    if name in layer.lora_embedding_A or name in layer.lora_variant:
        return False
    if name not in layer.lora_A:
        return True
    down, up = layer.lora_A[name], layer.lora_B[name]
    return isinstance(down, nn.Linear) and isinstance(up, nn.Linear) and up.bias is None


@torch.no_grad()
def _copied(weights: Weights) -> Weights:
    return {key: Low(w.down.clone(), w.up.clone(), w.scale) for key, w in weights.items()}


def _same(one: Weights, other: Weights) -> bool:
    return all(
        torch.equal(low.down, other[key].down) and torch.equal(low.up, other[key].up)
        for key, low in one.items()
    )
