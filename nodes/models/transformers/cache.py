"""The key-value cache of a batch, and keys and values of recent prompts, which others reuse."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import DynamicCache, DynamicLayer

_SPARE = 32
"""Tokens that fit before the buffers are copied. transformers' own layer copies for every token."""
_HEAD = 16
"""Tokens with which prompts must begin alike to reuse each other's keys and values."""


class KVLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, as views of longer buffers."""

    keys: Tensor
    values: Tensor

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._buffers: tuple[Tensor, Tensor] | None = None

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append the new states; return all states, ``[batch, heads, tokens, width]``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        length = self.keys.shape[2]
        end = length + key_states.shape[2]
        buffers = self._buffers
        if buffers is None or buffers[0].shape[2] < end:
            buffers = _aligned([self.keys], length, end), _aligned([self.values], length, end)
            self._buffers = buffers
        keys, values = buffers
        keys[:, :, length:end] = key_states
        values[:, :, length:end] = value_states
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]
        return self.keys, self.values

    def begin(self, keys: Tensor, values: Tensor, end: int) -> None:
        """Start with the first ``end`` tokens of these buffers, ``[rows, heads, tokens, width]``,
        and append to them."""
        self.lazy_initialization(keys, values)
        self._buffers = keys, values
        self.keys, self.values = keys[:, :, :end], values[:, :, :end]

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep only these rows."""
        super().reorder_cache(beam_idx)  # type: ignore[arg-type]
        self._buffers = None


class KVCache(DynamicCache):
    """transformers' cache for a model, with :class:`KVLayer` in place of its plain layers."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config=config)
        self.layers = [KVLayer() if type(layer) is DynamicLayer else layer for layer in self.layers]
        self.last_ids: Tensor | None = None
        """The last token of each row, ``[rows, 1]``, for networks that need it to go on."""

    @property
    def joinable(self) -> bool:
        """Whether every layer holds all tokens, so that caches can be joined."""
        return all(type(layer) is KVLayer for layer in self.layers)

    @property
    def kv_layers(self) -> list[KVLayer]:
        """The layers of a joinable cache."""
        return cast(list[KVLayer], self.layers)

    @classmethod
    def joined(cls, config: PreTrainedConfig, parts: Sequence[KVCache]) -> KVCache:
        """One cache for the rows of several joinable ones, padded on the left to the longest."""
        whole = cls(config)
        for layer, *others in zip(*(part.kv_layers for part in (whole, *parts)), strict=True):
            end = max(other.keys.shape[2] for other in others)
            keys = _aligned([other.keys for other in others], end, end)
            layer.begin(keys, _aligned([other.values for other in others], end, end), end)
        last = [part.last_ids for part in parts if part.last_ids is not None]
        whole.last_ids = torch.cat(last) if last else None
        return whole

    def begin(self, states: Sequence[Tensor | None], room: int) -> None:
        """Start with the states of some rows, aligned at their ends, each as :meth:`states` has
        them; ``None``: none. ``room``: tokens that come next."""
        some = next(each for each in states if each is not None)
        end = max(each.shape[2] for each in states if each is not None)
        both, heads, _, width = some.shape
        # One buffer for all layers: far fewer operations than one for each.
        out = some.new_empty((both, len(states), heads, end + room + _SPARE, width))
        for at, each in enumerate(states):
            begin = end if each is None else end - each.shape[2]
            out[:, at, :, :begin] = 0  # masked values are multiplied by 0, so they must be finite
            if each is not None:
                out[:, at, :, begin:end] = each
        for number, layer in enumerate(self.kv_layers):
            layer.begin(out[2 * number], out[2 * number + 1], end)

    def states(self) -> Tensor | None:
        """Keys and values of all layers in turn, ``[2 x layers, rows, heads, tokens, width]``;
        ``None`` if layers differ in shape or device."""
        parts = [part for layer in self.kv_layers for part in (layer.keys, layer.values)]
        alike = len({(part.shape, part.dtype, part.device) for part in parts}) == 1
        return torch.stack(parts) if alike else None

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the given rows, in this order. A row may be repeated."""
        for layer in self.layers:
            # Not `batch_select_indices`, which layers with a recurrent state do not have.
            layer.reorder_cache(rows)  # type: ignore[arg-type]
        if self.last_ids is not None:
            self.last_ids = self.last_ids[rows]


def _aligned(parts: Sequence[Tensor], end: int, room: int) -> Tensor:
    """A buffer for ``room`` tokens and some more, whose rows end at ``end``."""
    _, heads, _, width = parts[0].shape
    out = parts[0].new_empty((sum(map(len, parts)), heads, room + _SPARE, width))
    first = 0
    for states in parts:
        begin, rows = end - states.shape[2], slice(first, first + len(states))
        out[rows, :, :begin] = 0  # masked values are multiplied by 0, so they must be finite
        out[rows, :, begin:end] = states
        first += len(states)
    return out


class Prefix(NamedTuple):
    """A prompt that was read, or its beginning."""

    ids: list[int]
    states: Tensor
    """Keys and values of all layers in turn, ``[2 x layers, heads, tokens, width]``."""

    def cut(self, length: int) -> Prefix:
        """The first tokens, as a view."""
        return Prefix(self.ids[:length], self.states[:, :, :length])


class PrefixStore:
    """The most recent prompts, up to a memory limit.

    Keys and values depend on the adapter, so only prompts of one adapter share them.
    """

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes``: limit for the keys and values; 0: nothing is kept."""
        self.max_bytes, self.size = max_bytes, 0
        self._groups: OrderedDict[object, list[Prefix]] = OrderedDict()
        """Prompts of one adapter that begin alike; the group that was used last is at the end."""

    def clear(self) -> None:
        """Remove all prompts."""
        self._groups.clear()
        self.size = 0

    def find(self, adapter: str, ids: list[int]) -> Prefix | None:
        """The longest known beginning of a prompt, without its last token."""
        key = (adapter, *ids[:_HEAD])
        group = self._groups.get(key, [])
        length, number = max(((common(p.ids, ids), n) for n, p in enumerate(group)), default=(0, 0))
        if length < _HEAD:
            return None
        self._groups.move_to_end(key)
        return group[number].cut(min(length, len(ids) - 1))

    def add(self, adapter: str, prompt: Prefix) -> None:
        """Add a prompt, and remove the oldest ones of the group that was not used for longest if
        the limit is exceeded."""
        size = prompt.states.nbytes
        if size > self.max_bytes or len(prompt.ids) < _HEAD:
            return
        key = (adapter, *prompt.ids[:_HEAD])
        self._groups.setdefault(key, []).append(prompt)
        self._groups.move_to_end(key)
        self.size += size
        while self.size > self.max_bytes:
            oldest, group = next(iter(self._groups.items()))
            self.size -= group.pop(0).states.nbytes
            if not group:
                del self._groups[oldest]


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
