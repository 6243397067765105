"""Adapters as they were when they were published, and whether the live ones have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

import torch
from peft.tuners.lora import LoraLayer
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

from swarm_ui.adapter_metadata import AdapterMetadata
from swarm_ui.nodes.models.transformers.adapters.routing import (
    AdapterWeights,
    LoraWeights,
    MergedWeights,
    merge,
)


class FrozenAdapter:
    """Weights that never change. Equal weights of one model are one object."""

    __slots__ = ("__weakref__", "digest", "merged", "weights")

    def __init__(self, digest: str, weights: AdapterWeights) -> None:
        self.digest, self.weights = digest, weights
        self.merged: MergedWeights | None = None
        """The layers' weights with this adapter, once they were needed."""

    def merged_with(self, layers: Mapping[str, nn.Module]) -> MergedWeights:
        """The weights of these layers with this adapter."""
        if self.merged is None:
            self.merged = merge(layers, self.weights)
        return self.merged


class Published(NamedTuple):
    """What a version holds."""

    adapter: FrozenAdapter
    metadata: AdapterMetadata


class Freezer:
    """Makes frozen adapters, one for all equal weights."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[str, FrozenAdapter] = WeakValueDictionary()

    @torch.no_grad()
    def freeze(self, live: AdapterWeights, dtype: torch.dtype) -> FrozenAdapter:
        """A copy of an adapter in a type, or an equal one that was made before."""
        weights = {
            key: LoraWeights(w.down.to(dtype, copy=True), w.up.to(dtype, copy=True), w.scale)
            for key, w in live.items()
        }
        digest = _digest(weights)
        return self._known.setdefault(digest, FrozenAdapter(digest, weights))


def _digest(weights: AdapterWeights) -> str:
    """SHA-256 of an adapter: layers, scales, and bytes of the weights."""
    found = hashlib.sha256()
    for key in sorted(weights):
        down, up, scale = weights[key]
        found.update(f"{key} {scale!r} {tuple(down.shape)} {tuple(up.shape)} {down.dtype}".encode())
        for part in (down, up):
            found.update(part.cpu().contiguous().view(torch.uint8).numpy().data)
    return found.hexdigest()


def held_weights(network: nn.Module, adapter: str) -> AdapterWeights:
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


def parameters_of(weights: AdapterWeights) -> list[nn.Parameter]:
    """The parameters of an adapter as peft holds it, in the same order for all of one shape."""
    return [part for each in weights.values() for part in each[:2]]  # type: ignore[misc]


_steps = 0
"""Number of steps of all optimisers of this process."""


def _count_step(*_: object) -> None:
    global _steps
    _steps += 1


register_optimizer_step_post_hook(_count_step)


def state_of(parameters: Sequence[nn.Parameter]) -> tuple[int, int]:
    """A value that differs after any change of the parameters in place.

    torch counts changes of a tensor, except those of fused optimisers; so their steps count too.
    """
    return _steps, sum(parameter._version for parameter in parameters)
