"""A key-value cache with preallocated space, from which finished rows can be removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedConfig
from transformers.cache_utils import DynamicCache, DynamicLayer

_SPARE = 32
"""Tokens that fit before the buffers are copied. transformers' own layer copies for every token."""

_OF_ROWS = ("last_ids", "shifts")
"""Attributes of a cache that hold one value for each row."""


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

    spare = _SPARE

    def begin(self, keys: Tensor, values: Tensor, length: int) -> None:
        """Start with the first ``length`` tokens of these buffers."""
        self.lazy_initialization(keys, values)
        self._buffers = keys, values
        self.keys, self.values = keys[:, :, :length], values[:, :, :length]

    @property
    def size(self) -> int:
        """Bytes, with the space for more tokens."""
        return sum(part.nbytes for part in self._buffers or (self.keys, self.values))

    def join(self, parts: Sequence[KVLayer]) -> None:
        """Copy the rows of other layers, aligned at their ends."""
        end = max(part.get_seq_length() for part in parts)
        self.lazy_initialization(parts[0].keys, parts[0].values)
        keys = _aligned([part.keys for part in parts], end, end)
        values = _aligned([part.values for part in parts], end, end)
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
        """The last token of each row, for :mod:`swarm_ui.nodes.models.tiny_agent.architecture`."""
        self.shifts: Tensor | None = None
        """Offset between the positions and the token count of each row, ``[rows, 1]``, for
        :mod:`swarm_ui.nodes.models.transformers.picture_tokens`."""

    @property
    def joinable(self) -> bool:
        """Whether every layer holds all tokens, so that caches can be joined."""
        return all(type(layer) is KVLayer for layer in self.layers)

    @classmethod
    def joined(cls, config: PreTrainedConfig, parts: Sequence[KVCache]) -> KVCache:
        """One cache for the rows of several joinable ones, padded on the left to the longest."""
        whole = cls(config)
        layers = [part.kv_layers for part in (whole, *parts)]
        for layer, *others in zip(*layers, strict=True):
            layer.join(others)
        for name in _OF_ROWS:
            values = [getattr(part, name) for part in parts]
            setattr(whole, name, None if values[0] is None else torch.cat(values))
        return whole

    @property
    def kv_layers(self) -> list[KVLayer]:
        """The layers of a joinable cache."""
        return cast(list[KVLayer], self.layers)

    @property
    def size(self) -> int:
        """Bytes of a joinable cache."""
        return sum(layer.size for layer in self.kv_layers)

    def states(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of each layer of a joinable cache, ``[rows, heads, tokens, width]``."""
        return [(layer.keys, layer.values) for layer in self.kv_layers]

    def select_rows(self, rows: Tensor, below: int | None = None) -> None:
        """Keep only the given rows, in this order, in the layers with a number less than ``below``;
        ``None``: in all. A row may be repeated."""
        for layer in self.layers[:below]:
            # Not `batch_select_indices`, which layers with a recurrent state do not have.
            layer.reorder_cache(rows)  # type: ignore[arg-type]
        for name in _OF_ROWS:
            value = getattr(self, name)
            setattr(self, name, None if value is None else value[rows])


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
