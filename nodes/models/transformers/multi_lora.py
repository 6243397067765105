"""Sends every row of a batch through its own LoRA adapter, at little more than the base's cost.

peft's own mixed forward (``adapter_names``) sets a hook on every module before each new token and
gathers one sub-batch an adapter in every layer. Here the weights stay where peft keeps them, but
the way through a layer is laid once a batch, and rows stand sorted by adapter:

- a prompt (many tokens a row) goes through in slices, one an adapter, which are views;
- a new token (one a row) goes through one product with the adapters' matrices side by side, and
  each row keeps only the columns of its own. That is more arithmetic and far fewer calls.

Plain LoRA on linear layers only;
:class:`~swarm_ui.nodes.models.transformers.lora_adapters.LoraAdapters` lets no other kind in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_FEW_TOKENS = 2
"""Up to so many tokens a row, one product for all adapters is cheaper than one for each."""


class Low(NamedTuple):
    """What an adapter adds to one layer: ``scale * up @ down @ x``."""

    down: Tensor
    """``[rank, in]``."""
    up: Tensor
    """``[out, rank]``."""
    scale: float


Weights = Mapping[str, Low]
"""An adapter: what it adds, by the layer's name."""


class Route:
    """The way of a batch's rows through the layers, until it is given up."""

    def __init__(self, layers: Mapping[str, nn.Module], rows: Sequence[Weights | None]) -> None:
        self._layers = layers
        adapters = list({id(row): row for row in rows if row is not None}.values())
        number = {id(weights): k for k, weights in enumerate(adapters)}
        self._rows = [-1 if row is None else number[id(row)] for row in rows]
        self.only(range(len(rows)))
        for name, layer in layers.items():
            base = getattr(layer, "base_layer", layer.forward)
            lows = [weights.get(name) for weights in adapters]
            # Found before the class's method, without the cost of a hook.
            layer.__dict__["forward"] = _Through(base, lows, self) if any(lows) else base

    def only(self, rows: Sequence[int]) -> None:
        """The next forwards hold these of the batch's rows."""
        self._here = [self._rows[k] for k in rows]
        self.groups = _groups(self._here)
        self._keeps: dict[object, Tensor] = {}

    def keep(self, lows: Sequence[Low], numbers: Sequence[int]) -> Tensor:
        """What each row keeps of the product with all adapters' ``down``, ``[rows, 1, ranks]``."""
        ranks = tuple(low.down.shape[0] for low in lows)
        scales = tuple(low.scale for low in lows)
        key = (ranks, scales, tuple(numbers))  # mostly the same for all layers
        keep = self._keeps.get(key)
        if keep is None:
            times = torch.tensor(ranks)
            owner = torch.tensor(numbers).repeat_interleave(times)
            mine = torch.tensor(self._here)[:, None, None] == owner
            keep = (mine * torch.tensor(scales).repeat_interleave(times)).to(lows[0].down)
            self._keeps[key] = keep
        return keep

    def give_up(self) -> None:
        """Let the layers be peft's again."""
        for layer in self._layers.values():
            layer.__dict__.pop("forward", None)


class _Through:
    """A layer's forward: the base layer's, and what the adapters add to it."""

    __slots__ = ("_base", "_lows", "_pair", "_route")

    def __init__(
        self, base: Callable[[Tensor], Tensor], lows: Sequence[Low | None], route: Route
    ) -> None:
        self._base, self._route = base, route
        self._lows = dict(enumerate(lows))
        self._pair: tuple[Tensor, Tensor] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        result = self._base(x)
        groups = self._route.groups
        if x.shape[1] <= _FEW_TOKENS and not (len(groups) == 1 and groups[0].end == len(x)):
            return self._at_once(x, result)
        for first, end, number in groups:
            low = self._lows[number]
            if low is not None:
                added = linear(linear(x[first:end].to(low.down.dtype), low.down), low.up)
                result[first:end].add_(added.to(result.dtype), alpha=low.scale)
        return result

    def _at_once(self, x: Tensor, result: Tensor) -> Tensor:
        lows = {number: low for number, low in self._lows.items() if low is not None}
        if self._pair is None:
            self._pair = (
                torch.cat([low.down for low in lows.values()]),
                torch.cat([low.up for low in lows.values()], dim=1).T.contiguous(),
            )
        down, up = self._pair
        keep = self._route.keep(list(lows.values()), list(lows))
        added = (linear(x.to(down.dtype), down) * keep) @ up
        return result.add_(added.to(result.dtype))


@contextmanager
def routed(layers: Mapping[str, nn.Module], rows: Sequence[Weights | None]) -> Iterator[Route]:
    """Inside, forwards of a batch of ``rows`` add each row's own adapter, whichever peft has on.

    Args:
        layers: every layer that some adapter may add to, by name; of peft's, only their
            ``base_layer`` is used.
        rows: one a row; ``None``: nothing is added. Rows of one adapter should stand together.
    """
    route = Route(layers, rows)
    try:
        yield route
    finally:
        route.give_up()


class _Group(NamedTuple):
    """Rows that stand together and share an adapter."""

    first: int
    end: int
    number: int


def _groups(numbers: Sequence[int]) -> list[_Group]:
    groups: list[_Group] = []
    first = 0
    for at in range(1, len(numbers) + 1):
        if at < len(numbers) and numbers[at] == numbers[first]:
            continue
        if numbers[first] >= 0:
            groups.append(_Group(first, at, numbers[first]))
        first = at
    return groups
