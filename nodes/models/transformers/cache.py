"""The key-value cache of a batch, and keys and values of recent prompts, which others reuse."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
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

    def begin(self, keys: Sequence[Tensor], values: Sequence[Tensor], room: int) -> None:
        """Start with the states of some rows, each list with one tensor ``[rows, heads, tokens,
        width]`` for each length, aligned at their ends; ``room``: tokens that come next."""
        end = max(states.shape[2] for states in keys)
        self.lazy_initialization(keys[0], values[0])
        self._buffers = _aligned(keys, end, end + room), _aligned(values, end, end + room)
        self.keys, self.values = (buffer[:, :, :end] for buffer in self._buffers)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep only these rows."""
        super().reorder_cache(beam_idx)  # type: ignore[arg-type]
        self._buffers = None


class KVCache(DynamicCache):
    """transformers' cache for a model, with :class:`KVLayer` in place of its plain layers."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config=config)
        self.layers = [KVLayer() if type(layer) is DynamicLayer else layer for layer in self.layers]
        self.of_rows: dict[str, Tensor] = {}
        """Values that a network keeps for each row, by name, ``[rows, ...]``."""

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
            layer.begin([other.keys for other in others], [other.values for other in others], 0)
        for name in parts[0].of_rows:
            whole.of_rows[name] = torch.cat([part.of_rows[name] for part in parts])
        return whole

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the given rows, in this order. A row may be repeated."""
        for layer in self.layers:
            # Not `batch_select_indices`, which layers with a recurrent state do not have.
            layer.reorder_cache(rows)  # type: ignore[arg-type]
        self.of_rows = {name: value[rows] for name, value in self.of_rows.items()}


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
    states: list[tuple[Tensor, Tensor]]
    """Keys and values of each layer, ``[1, heads, tokens, width]``."""

    def cut(self, length: int) -> Prefix:
        """The first tokens, as views."""
        return Prefix(
            self.ids[:length], [(k[:, :, :length], v[:, :, :length]) for k, v in self.states]
        )


class PrefixStore:
    """The most recent prompts, up to a memory limit.

    Keys and values depend on the adapter, so only prompts of one adapter share them.
    """

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes``: limit for the keys and values; 0: nothing is kept."""
        self.max_bytes, self.size = max_bytes, 0
        self._prompts: OrderedDict[int, tuple[object, Prefix]] = OrderedDict()
        """Prompts by number, the one that was used last at the end, with the key of its group."""
        self._groups: dict[object, dict[int, Prefix]] = {}
        """Prompts of one adapter that begin alike."""
        self._numbers = count()

    def clear(self) -> None:
        """Remove all prompts."""
        self._prompts.clear()
        self._groups.clear()
        self.size = 0

    def find(self, adapter: str, ids: list[int]) -> Prefix | None:
        """The longest known beginning of a prompt, without its last token."""
        group = self._groups.get((adapter, *ids[:_HEAD]), {})
        length, number = max(((common(p.ids, ids), n) for n, p in group.items()), default=(0, 0))
        if length < _HEAD:
            return None
        self._prompts.move_to_end(number)
        return group[number].cut(min(length, len(ids) - 1))

    def add(self, adapter: str, prompt: Prefix) -> None:
        """Add a prompt, and remove the oldest ones if the limit is exceeded."""
        key = (adapter, *prompt.ids[:_HEAD])
        number, size = next(self._numbers), _bytes(prompt)
        if size > self.max_bytes or len(prompt.ids) < _HEAD:
            return
        self._prompts[number] = key, prompt
        self._groups.setdefault(key, {})[number] = prompt
        self.size += size
        while self.size > self.max_bytes:
            oldest, (group, removed) = self._prompts.popitem(last=False)
            self.size -= _bytes(removed)
            del self._groups[group][oldest]
            if not self._groups[group]:
                del self._groups[group]


def _bytes(prompt: Prefix) -> int:
    return sum(keys.nbytes + values.nbytes for keys, values in prompt.states)


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
