"""Named LoRA adapters on one transformers model, each with a version, through peft."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.errors import ConfigError, ModelError

_PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
_VERSIONS = "versions.json"


class Adapters:
    """The adapters of one model; rows of a batch can be routed to one each."""

    def __init__(self, network: PreTrainedModel) -> None:
        network.train(False)
        self._network: PreTrainedModel | PeftModel = network
        self._versions: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._versions)

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

    def add(self, name: str, *, rank: int, alpha: float, copy_from: str | None) -> None:
        """A new adapter on every linear layer; zero at first, or a copy of another one.

        Raises:
            ConfigError: the name is taken, or ``copy_from`` does not exist.
        """
        if name in self._versions:
            raise ConfigError(f"adapter '{name}' exists already; choose another name")
        if copy_from is not None and copy_from not in self._versions:
            raise ConfigError(f"no adapter '{copy_from}' to copy; there are: {self._list()}")
        config = LoraConfig(r=rank, lora_alpha=alpha, target_modules=_PROJECTIONS)  # type: ignore[arg-type]
        if isinstance(self._network, PeftModel):
            self._network.add_adapter(name, config)
        else:
            self._network = get_peft_model(self._network, config, adapter_name=name)
        self._versions[name] = 0
        self._network.train(False)
        if copy_from is not None:
            with torch.no_grad():
                pairs = zip(self.parameters(copy_from), self.parameters(name), strict=True)
                for have, want in pairs:
                    want.copy_(have)

    def parameters(self, name: str) -> list[nn.Parameter]:
        """The weights of one adapter, in an order that is the same for all of one rank."""
        if name not in self._versions:
            raise ConfigError(f"no adapter '{name}'; there are: {self._list()}")
        return [p for key, p in self._network.named_parameters() if f".{name}." in key]

    def version(self, name: str) -> str:
        """``"agent_2@7"``: a name alone never stands for two sets of weights."""
        return f"{name}@{self._versions.get(name, 0)}"

    def bump(self, name: str) -> str:
        """Say that an adapter's weights have changed; returns its new version."""
        self._versions[name] += 1
        return self.version(name)

    def save(self, folder: Path) -> None:
        """One sub-folder an adapter, in peft's own format, and their versions."""
        folder.mkdir(parents=True, exist_ok=True)
        if isinstance(self._network, PeftModel):
            self._network.save_pretrained(str(folder), selected_adapters=list(self._versions))
        (folder / _VERSIONS).write_text(json.dumps(self._versions), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Load what :meth:`save` wrote; adapters of the same name are replaced.

        Raises:
            ConfigError: the folder holds no saved adapters.
        """
        if not (folder / _VERSIONS).is_file():
            raise ConfigError(f"no adapters in '{folder}': expected {_VERSIONS} there")
        versions: dict[str, int] = json.loads((folder / _VERSIONS).read_text(encoding="utf-8"))
        for name, version in versions.items():
            place = str(folder / name)
            if not isinstance(self._network, PeftModel):
                self._network = PeftModel.from_pretrained(self._network, place, adapter_name=name)
            else:
                if name in self._versions:
                    self._network.delete_adapter(name)
                self._network.load_adapter(place, adapter_name=name)
            self._versions[name] = version
        self._network.train(False)

    @contextmanager
    def active(self, name: str) -> Iterator[nn.Module]:
        """Training mode with one adapter in use and only its weights trainable."""
        network = self._peft()
        network.set_adapter(name)
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        for parameter in self.parameters(name):
            parameter.requires_grad_(True)
        network.train()
        try:
            yield network
        finally:
            network.train(False)

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
    def routed(self, names: Sequence[str | None]) -> Iterator[nn.Module]:
        """A network whose next forwards send each row through its own adapter.

        Args:
            names: one a row; ``None``: the base model.

        Raises:
            ModelError: a name is unknown.
        """
        unknown = next((n for n in names if n is not None and n not in self._versions), None)
        if unknown is not None:
            raise ModelError(f"no adapter '{unknown}'; this model has: {self._list()}")
        used = set(names)
        if used == {None}:
            with self.off():
                yield self.base
            return
        network = self._peft()
        alone = used.pop() if len(used) == 1 else None
        if alone is not None:
            network.set_adapter(alone)
            yield self.base
        else:
            yield _Mixed(network, [name or "__base__" for name in names])

    def _peft(self) -> PeftModel:
        if not isinstance(self._network, PeftModel):
            raise ModelError("this model has no adapters yet; call add_adapter first")
        return self._network

    def _list(self) -> str:
        return ", ".join(self._versions) or "none"


class _Mixed(nn.Module):
    """A forward in which every row goes through the adapter of its own name."""

    def __init__(self, network: PeftModel, names: list[str]) -> None:
        super().__init__()
        object.__setattr__(self, "_network", network)  # not a sub-module: nothing to register
        self._names = names

    def forward(self, **inputs: Tensor) -> object:
        return self._network(adapter_names=self._names, **inputs)  # type: ignore[operator]
