"""Keys and values of prompts: while rows are continued, and of recent prompts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import DynamicCache, DynamicLayer

_SPARE = 32
"""Tokens that fit before the buffers are copied. transformers' own layer copies for every token."""
_HEAD = 16
"""Tokens with which prompts must begin alike to reuse each other's keys and values."""


class Prefix(NamedTuple):
    """A prompt that was read, or its beginning."""

    ids: list[int]
    keys: Tensor
    """``[layers, heads, tokens, width]``."""
    values: Tensor

    def cut(self, length: int) -> Prefix:
        """The first tokens, as views."""
        return Prefix(self.ids[:length], self.keys[:, :, :length], self.values[:, :, :length])

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self.keys.nbytes + self.values.nbytes


class KVLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, as views of longer buffers."""

    keys: Tensor
    values: Tensor

    def hold(self, keys: Tensor, values: Tensor, length: int) -> None:
        """Use these buffers, ``[batch, heads, tokens, width]``, which hold ``length`` tokens."""
        self._buffers = keys, values
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Append the new states; return all states, ``[batch, heads, tokens, width]``."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.hold(key_states, value_states, key_states.shape[2])
            return key_states, value_states
        length = self.keys.shape[2]
        end = length + key_states.shape[2]
        keys, values = self._buffers
        if keys.shape[2] < end:
            keys, values = (
                torch.cat(
                    [old, new.new_empty((*new.shape[:2], end - length + _SPARE, new.shape[3]))], 2
                )
                for old, new in ((self.keys, key_states), (self.values, value_states))
            )
        keys[:, :, length:end], values[:, :, length:end] = key_states, value_states
        self.hold(keys, values, end)
        return self.keys, self.values

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep only these rows."""
        super().reorder_cache(beam_idx)  # type: ignore[arg-type]
        self._buffers = self.keys, self.values


class KVCache(DynamicCache):
    """transformers' cache for a model, with :class:`KVLayer` in place of its plain layers."""

    def __init__(self, config: PreTrainedConfig) -> None:
        super().__init__(config=config)
        own: Callable[[], DynamicLayer] = KVLayer
        self.layers = [own() if type(layer) is DynamicLayer else layer for layer in self.layers]
        self.last_ids: Tensor | None = None
        """The last token of each row, ``[rows, 1]``, for networks that need it to go on."""

    @property
    def whole(self) -> bool:
        """Whether every layer holds all tokens."""
        return all(type(layer) is KVLayer for layer in self.layers)

    def begin(self, rows: Sequence[Prefix | None], room: int, pad_id: int) -> Tensor:
        """Start with the states of some rows, aligned at their ends; ``None``: none, and the token
        before is ``pad_id``. ``room``: tokens that come next. Returns the rows' mask: 1 for tokens,
        0 for padding, ``[rows, tokens]``."""
        some = next(row for row in rows if row is not None)
        lengths = [0 if row is None else len(row.ids) for row in rows]
        end, device = max(lengths), some.keys.device
        ends = [[pad_id] if row is None else row.ids[-1:] for row in rows]
        self.last_ids = torch.tensor(ends, device=device)
        both: list[Tensor] = []
        for part in (some.keys, some.values):
            # One buffer for all layers: far fewer operations than one for each.
            layers, heads, _, width = part.shape
            both.append(part.new_empty((layers, len(rows), heads, end + room + _SPARE, width)))
        for at, (row, length) in enumerate(zip(rows, lengths, strict=True)):
            for out in both:  # masked values are multiplied by 0: they must be finite
                out[:, at, :, : end - length] = 0
            if row is not None:
                both[0][:, at, :, end - length : end] = row.keys
                both[1][:, at, :, end - length : end] = row.values
        for layer, keys, values in zip(self.layers, *both, strict=True):
            assert isinstance(layer, KVLayer)
            layer.lazy_initialization(keys, values)
            layer.hold(keys, values, end)
        places = torch.arange(end, device=device)
        return (places >= end - torch.tensor(lengths, device=device)[:, None]).long()

    def prefixes(self, prompts: Sequence[list[int]], attention: Tensor) -> list[Prefix]:
        """The states of each row without padding, where ``attention`` is 0."""
        layers = cast(list[KVLayer], self.layers)
        both = [torch.stack([getattr(each, k) for each in layers]) for k in ("keys", "values")]
        here = [row.nonzero()[:, 0] for row in attention]
        return [
            Prefix(ids, *(part[:, at].index_select(2, here[at]) for part in both))
            for at, ids in enumerate(prompts)
        ]

    def select_rows(self, rows: Tensor) -> None:
        """Keep only the given rows, in this order."""
        for layer in self.layers:
            # Not `batch_select_indices`, which layers with a recurrent state do not have.
            layer.reorder_cache(rows)  # type: ignore[arg-type]
        if self.last_ids is not None:
            self.last_ids = self.last_ids[rows]


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
        if prompt.size > self.max_bytes or len(prompt.ids) < _HEAD:
            return
        key = (adapter, *prompt.ids[:_HEAD])
        self._groups.setdefault(key, []).append(prompt)
        self._groups.move_to_end(key)
        self.size += prompt.size
        while self.size > self.max_bytes:
            oldest, group = next(iter(self._groups.items()))
            self.size -= group.pop(0).size
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
