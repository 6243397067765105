"""Applies a separate LoRA adapter to each row of a batch, at little more than the base's cost.

peft's own mixed forward (``adapter_names``) sets a hook on every module before each new token, and
makes one sub-batch per adapter in every layer. Here the weights stay in peft's layers, but the
forwards are replaced once per batch, and the rows are sorted by adapter:

- a prompt (many tokens per row) is computed in slices, one per adapter, which are views. If the
  base is in bfloat16, the term of an adapter is too, as under autocast in training;
- a new token (one per row) is computed in one product with the concatenated matrices of all
  adapters, and each row keeps only the columns of its own adapter. That is more arithmetic and far
  fewer calls.

For a small model, each adapter can be merged into a copy of the layers' weights instead, so that an
adapter costs nothing per token.

It supports plain LoRA on linear layers only;
:class:`~swarm_ui.nodes.models.transformers.adapters.lora_network.LoraNetwork` refuses all other
kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, Self

import torch
from peft.tuners.lora import LoraLayer, ParamWrapper
from torch import Tensor, nn
from torch.nn.functional import linear

from swarm_ui.errors import ModelError

_FEW_TOKENS = 2
"""Up to this many tokens per row, one product for all adapters is cheaper than one for each."""
_MANY_TOKENS = 64
"""From this many tokens of one adapter on, products in bfloat16 take less time than in float32.

On a CPU with bfloat16 instructions, 16 rows of 90 tokens take a third of the time. One token takes
twice the time, because each product has a fixed cost."""


class LoraWeights(NamedTuple):
    """The term that an adapter adds to one layer: ``scale * up @ down @ x``."""

    down: Tensor
    """``[rank, in]``."""
    up: Tensor
    """``[out, rank]``."""
    scale: float


AdapterWeights = Mapping[str, LoraWeights]
"""The weights of one adapter, by the layer's name."""


MergedWeights = Mapping[str, Tensor]
"""The weights of layers with what one adapter adds, ``[out, in]``, by the layer's name."""


@torch.no_grad()
def merged(layers: Mapping[str, nn.Module], weights: AdapterWeights) -> MergedWeights:
    """New weights of the layers that an adapter adds to; the layers are not changed."""
    return {
        name: _linear(layers[name]).weight.addmm(up, down, alpha=scale)
        for name, (down, up, scale) in weights.items()
    }


@torch.no_grad()
def copied(weights: AdapterWeights) -> AdapterWeights:
    """A copy that does not change when the weights are trained."""
    return {key: LoraWeights(w.down.clone(), w.up.clone(), w.scale) for key, w in weights.items()}


def equal(one: AdapterWeights, other: AdapterWeights) -> bool:
    """Whether two adapters add the same to the same layers."""
    return next(_different(one, other), None) is None


def _different(one: AdapterWeights, other: AdapterWeights) -> Iterator[str]:
    """The layers to which two adapters do not add the same."""
    for key in one.keys() | other.keys():
        if key not in one or key not in other or not _same(one[key], other[key]):
            yield key


def _same(one: LoraWeights, other: LoraWeights) -> bool:
    return one.scale == other.scale and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(one[:2], other[:2], strict=True)
    )


class LoraRouting:
    """Which adapter each row of a batch uses, while the forwards of the layers are replaced.

    A context manager. Inside it, a forward adds each row's own adapter and ignores the adapter
    that is active in peft.
    """

    def __init__(
        self,
        layers: Mapping[str, nn.Module],
        rows: Sequence[AdapterWeights | None],
        merge: Callable[[AdapterWeights], MergedWeights] | None = None,
    ) -> None:
        """
        Args:
            layers: every layer that some adapter may add to, by name; of peft's layers, only the
                ``base_layer`` is used.
            rows: one per row; ``None``: nothing is added. Rows of one adapter should be adjacent.
            merge: see :func:`merged`, which it may cache; the forwards are then without gradients.
                ``None``: the terms of the adapters are added.
        """
        self._layers = layers
        adapters = list({id(row): row for row in rows if row is not None}.values())
        number = {id(weights): k for k, weights in enumerate(adapters)}
        self._adapter_of_row = [-1 if row is None else number[id(row)] for row in rows]
        self.select_rows(range(len(rows)))
        for name, layer in layers.items():
            base = getattr(layer, "base_layer", layer.forward)
            added = {k: w[name] for k, w in enumerate(adapters) if name in w}
            forward = base
            if added and merge is not None:
                own = {k: merge(adapters[k])[name] for k in added}
                forward = _MergedForward(_linear(layer), own, self)
            elif added:
                forward = _RoutedForward(base, added, self)
            # An attribute of the instance replaces the method, without the cost of a hook.
            layer.__dict__["forward"] = forward

    def select_rows(self, rows: Sequence[int]) -> None:
        """Set the rows of the batch that the next forwards contain."""
        self._selected = [self._adapter_of_row[k] for k in rows]
        self.groups = _groups(self._selected)
        self.parts = _parts(self._selected)
        self._masks: dict[object, Tensor] = {}

    def scaled_mask(self, adapters: Mapping[int, LoraWeights]) -> Tensor:
        """For each row, the scale in the columns of its own adapter and 0 in the others,
        ``[rows, 1, ranks]``."""
        ranks = tuple(weights.down.shape[0] for weights in adapters.values())
        scales = tuple(weights.scale for weights in adapters.values())
        key = (ranks, scales, tuple(adapters))  # usually the same for all layers
        mask = self._masks.get(key)
        if mask is None:
            repeats = torch.tensor(ranks)
            owner = torch.tensor(list(adapters)).repeat_interleave(repeats)
            own = torch.tensor(self._selected)[:, None, None] == owner
            scale = torch.tensor(scales).repeat_interleave(repeats)
            mask = (own * scale).to(next(iter(adapters.values())).down)
            self._masks[key] = mask
        return mask

    def by_row(self, x: Tensor) -> Tensor:
        """The input of a layer for all tokens of all rows, ``[rows, tokens, width]``.

        Raises:
            ModelError: these are not equally many tokens of each row, so their adapters are not
                known.
        """
        rows, tokens = len(self._selected), x.shape[:-1].numel()
        if tokens % rows:
            raise ModelError(
                f"a layer with an adapter received {tokens} tokens of {rows} rows; expected equal "
                "numbers of each. Adapters cannot change layers that read a part of the tokens, "
                "such as those of an expert"
            )
        return x.reshape(rows, -1, x.shape[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        for layer in self._layers.values():
            layer.__dict__.pop("forward", None)


class _RoutedForward:
    """The forward method of a layer: the base layer's output plus the outputs of the adapters."""

    __slots__ = ("_adapters", "_base", "_concatenated", "_routing", "_small")

    def __init__(
        self,
        base: Callable[[Tensor], Tensor],
        adapters: Mapping[int, LoraWeights],
        routing: LoraRouting,
    ) -> None:
        self._base, self._adapters, self._routing = base, adapters, routing
        self._concatenated: tuple[Tensor, Tensor] | None = None
        self._small: dict[int, tuple[Tensor, Tensor]] = {}
        """The matrices of each adapter in bfloat16."""

    def __call__(self, x: Tensor) -> Tensor:
        if x.dim() != 3:  # OPT flattens rows and tokens, DeepSeek adds a dimension for heads
            return self(self._routing.by_row(x)).view(*x.shape[:-1], -1)
        result = self._base(x)
        groups = self._routing.groups
        if x.shape[1] <= _FEW_TOKENS and not (len(groups) == 1 and groups[0][1] == len(x)):
            return self._add_at_once(x, result)
        for first, end, number in groups:
            weights = self._adapters.get(number)
            if weights is None:
                continue
            own, out = x[first:end], result[first:end]
            down, up, scale = weights
            if result.dtype == torch.bfloat16 and own.shape[:-1].numel() >= _MANY_TOKENS:
                down, up = self._in_bfloat16(number, weights)
                narrow = linear(own.to(down.dtype), down).flatten(0, -2)
                out.view(-1, out.shape[-1]).addmm_(narrow, up.T, alpha=scale)
            else:
                added = linear(linear(own.to(down.dtype), down), up)
                out.add_(added.to(out.dtype), alpha=scale)
        return result

    def _in_bfloat16(self, number: int, weights: LoraWeights) -> tuple[Tensor, Tensor]:
        found = self._small.get(number)
        if found is None:
            found = weights.down.to(torch.bfloat16), weights.up.to(torch.bfloat16)
            self._small[number] = found
        return found

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

    __slots__ = ("_base", "_merged", "_routing")

    def __init__(self, base: nn.Linear, merged: Mapping[int, Tensor], routing: LoraRouting) -> None:
        self._base, self._merged, self._routing = base, merged, routing

    def __call__(self, x: Tensor) -> Tensor:
        base, parts = self._base, self._routing.parts
        weights = [self._merged.get(number, base.weight) for *_, number in parts]
        if len(parts) == 1 or base.bias is not None:
            done = [
                linear(x[first:end], weight, base.bias)
                for (first, end, _), weight in zip(parts, weights, strict=True)
            ]
            return done[0] if len(done) == 1 else torch.cat(done)
        out = x.new_empty((*x.shape[:-1], base.out_features))
        for (first, end, _), weight in zip(parts, weights, strict=True):
            torch.mm(x[first:end].flatten(0, -2), weight.T, out=out[first:end].flatten(0, -2))
        return out


def _linear(layer: nn.Module) -> nn.Linear:
    """The layer of the base model."""
    base = getattr(layer, "base_layer", layer)
    assert isinstance(base, nn.Linear)  # see `plain`
    return base


def plain(layer: LoraLayer, name: str) -> bool:
    """Whether :class:`LoraWeights` can describe what an adapter adds to a layer, if anything."""
    if name in layer.lora_embedding_A or name in layer.lora_variant:
        return False
    if name not in layer.lora_A:
        return True
    if isinstance(layer, ParamWrapper):  # the weights of experts
        return False
    down, up = layer.lora_A[name], layer.lora_B[name]
    return isinstance(down, nn.Linear) and isinstance(up, nn.Linear) and up.bias is None


def _groups(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Adjacent rows that share an adapter: the first row, the end, and the adapter's number."""
    return [part for part in _parts(numbers) if part[2] >= 0]


def _parts(numbers: Sequence[int]) -> list[tuple[int, int, int]]:
    """Like :func:`_groups`, with the rows that have no adapter, whose number is -1."""
    parts, first = [], 0
    for number, rows in groupby(numbers):
        end = first + len(list(rows))
        parts.append((first, end, number))
        first = end
    return parts
