"""Applies a separate LoRA adapter to each row of a batch, at little more than the base's cost.

peft's own mixed forward (``adapter_names``) sets a hook on every module before each new token, and
makes one sub-batch per adapter in every layer. Here the forwards of the layers are replaced once
per batch, and the rows are sorted by adapter. A prompt (many tokens per row) is computed in slices,
one per adapter, which are views. A new token is computed in one product with the concatenated
matrices of all adapters, and each row keeps only the columns of its own: more arithmetic, and far
fewer calls.

For a tiny model, each adapter is merged into a copy of the layers' weights instead, so that an
adapter costs nothing per token. Plain LoRA on linear layers only; the reader of adapters refuses
all other kinds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from swarm_ui.adapter_metadata import AdapterMetadata

_FEW_TOKENS = 2
"""Up to this many tokens per row, one product for all adapters is cheaper than one for each."""


class LoraWeights(NamedTuple):
    """The term that an adapter adds to one layer: ``scale * up @ down @ x``."""

    down: Tensor
    """``[rank, in]``."""
    up: Tensor
    """``[out, rank]``."""
    scale: float


AdapterWeights = Mapping[str, LoraWeights]
"""The weights of one adapter, by the layer's name."""


class FrozenAdapter:
    """A copy of an adapter that never changes, in a type, with its metadata."""

    @torch.no_grad()
    def __init__(
        self,
        live: AdapterWeights,
        dtype: torch.dtype,
        metadata: AdapterMetadata = AdapterMetadata(),  # noqa: B008 (it is frozen)
    ) -> None:
        self.metadata = metadata
        self.weights: AdapterWeights = {
            key: LoraWeights(down.to(dtype, copy=True), up.to(dtype, copy=True), scale)
            for key, (down, up, scale) in live.items()
        }
        self.merged: Mapping[str, Tensor] | None = None
        """The layers' weights plus what the adapter adds, ``[out, in]``, once they were needed."""
        found = hashlib.sha256(repr(metadata).encode())
        for key, (down, up, scale) in sorted(self.weights.items()):
            found.update(f"{key} {scale!r} {tuple(down.shape)} {tuple(up.shape)}".encode())
            for part in (down, up):
                found.update(part.cpu().contiguous().view(torch.uint8).numpy().data)
        self.digest = found.hexdigest()
        """SHA-256 of metadata, layers, scales and weights."""

    @torch.no_grad()
    def merged_with(self, layers: Mapping[str, nn.Module]) -> Mapping[str, Tensor]:
        """New weights of the layers that it adds to."""
        if self.merged is None:
            self.merged = {
                name: _linear(layers[name]).weight.addmm(up, down, alpha=scale)
                for name, (down, up, scale) in self.weights.items()
            }
        return self.merged


class LoraRouting:
    """Which adapter each row of a batch uses, while the forwards of the layers are replaced.

    A context manager. Inside it, a forward adds each row's own adapter and ignores the adapter
    that is active in peft.
    """

    def __init__(
        self,
        layers: Mapping[str, nn.Module],
        rows: Sequence[FrozenAdapter | None],
        merged: bool = False,
    ) -> None:
        """``layers``: every layer that some adapter may add to; of peft's layers, only the
        ``base_layer`` is used. ``rows``: one per row; ``None``: nothing is added. ``merged``: each
        adapter is merged into a copy of the layers."""
        self.names = ["" if row is None else row.digest for row in rows]
        """A name of the weights that each row uses, for stores of prompts."""
        self._layers = layers
        adapters = list(dict.fromkeys(row for row in rows if row is not None))
        number: dict[FrozenAdapter | None, int] = {each: k for k, each in enumerate(adapters)}
        self._adapter_of_row = [number.get(row, -1) for row in rows]
        self.select_rows(range(len(rows)))
        whole = [each.merged_with(layers) for each in adapters] if merged else []
        for name, layer in layers.items():
            added = {k: a.weights[name] for k, a in enumerate(adapters) if name in a.weights}
            forward: Callable[[Tensor], Tensor] = getattr(layer, "base_layer", layer.forward)
            if added and merged:
                own = {k: whole[k][name] for k in added}
                forward = _MergedForward(_linear(layer), own, self)
            elif added:
                forward = _RoutedForward(forward, added, self)
            # An attribute of the instance replaces the method, without the cost of a hook.
            layer.__dict__["forward"] = forward

    def select_rows(self, rows: Sequence[int]) -> None:
        """Set the rows of the batch that the next forwards contain."""
        self.rows = rows
        self.selected = [self._adapter_of_row[k] for k in rows]
        self.parts: list[tuple[int, int, int]] = []
        """Adjacent rows that share an adapter: the first row, the end, the adapter's number (-1:
        none)."""
        for number, same in groupby(self.selected):
            first = self.parts[-1][1] if self.parts else 0
            self.parts.append((first, first + len(list(same)), number))
        self._masks: dict[object, Tensor] = {}

    def scaled_mask(self, adapters: Mapping[int, LoraWeights]) -> Tensor:
        """For each row, the scale in the columns of its own adapter and 0 in the others,
        ``[rows, 1, ranks]``."""
        ranks = [each.down.shape[0] for each in adapters.values()]
        scales = [each.scale for each in adapters.values()]
        key = (*adapters, *ranks, *scales)  # usually the same for all layers
        if key not in self._masks:
            columns = torch.tensor([[*adapters], scales]).repeat_interleave(torch.tensor(ranks), 1)
            own = torch.tensor(self.selected)[:, None, None] == columns[0]
            self._masks[key] = (own * columns[1]).to(next(iter(adapters.values())).down)
        return self._masks[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for layer in self._layers.values():
            layer.__dict__.pop("forward", None)


class _RoutedForward:
    """The forward method of a layer: the base layer's output plus the outputs of the adapters."""

    def __init__(
        self,
        base: Callable[[Tensor], Tensor],
        adapters: Mapping[int, LoraWeights],
        routing: LoraRouting,
    ) -> None:
        self._base, self._adapters, self._routing = base, adapters, routing
        self._concatenated: tuple[Tensor, Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        if x.dim() != 3:  # OPT flattens rows and tokens, DeepSeek adds a dimension for heads
            by_row = x.reshape(len(self._routing.selected), -1, x.shape[-1])
            return self(by_row).view(*x.shape[:-1], -1)
        result, parts = self._base(x), self._routing.parts
        if x.shape[1] <= _FEW_TOKENS and len(parts) > 1:
            return self._add_at_once(x, result)
        for first, end, number in parts:
            if number in self._adapters:
                down, up, scale = self._adapters[number]
                narrow = linear(x[first:end].to(down.dtype), down).flatten(0, -2)
                out = result[first:end].view(-1, result.shape[-1])
                if out.dtype == up.dtype:
                    out.addmm_(narrow, up.T, alpha=scale)
                else:
                    out.add_((narrow @ up.T).to(out.dtype), alpha=scale)
        return result

    def _add_at_once(self, x: Tensor, result: Tensor) -> Tensor:
        if self._concatenated is None:
            adapters = self._adapters.values()
            self._concatenated = (
                torch.cat([weights.down for weights in adapters]),
                torch.cat([weights.up for weights in adapters], dim=1).T.contiguous(),
            )
        down, up = self._concatenated
        mask = self._routing.scaled_mask(self._adapters)
        added = (linear(x.to(down.dtype), down) * mask) @ up
        return result.add_(added.to(result.dtype))


class _MergedForward:
    """The forward method of a layer: the product of each row with the weights of its adapter."""

    def __init__(self, base: nn.Linear, merged: Mapping[int, Tensor], routing: LoraRouting) -> None:
        self._base, self._merged, self._routing = base, merged, routing

    def __call__(self, x: Tensor) -> Tensor:
        base, parts = self._base, self._routing.parts
        done = [
            linear(x[first:end], self._merged.get(number, base.weight), base.bias)
            for first, end, number in parts
        ]
        return done[0] if len(done) == 1 else torch.cat(done)


def _linear(layer: nn.Module) -> nn.Linear:
    """The layer of the base model."""
    base = getattr(layer, "base_layer", layer)
    assert isinstance(base, nn.Linear)
    return base
