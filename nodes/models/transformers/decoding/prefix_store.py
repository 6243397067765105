"""Keys and values of recent prompts, which prompts with the same prefix reuse.

Keys and values depend on the adapter, so only prompts of the same adapter version (or of the base
model) share them. Prompts are found by hashes of their first 16, 32, … tokens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from swarm_ui.nodes.models.transformers.decoding.kv_cache import KVCache

_BLOCK = 16


class Layout(NamedTuple):
    """Positions of tokens in a batch: known prefixes, then new tokens, both left-padded."""

    known: list[int]
    """Number of tokens of each row whose keys and values are known."""
    before: int
    """Number of columns for the known tokens; the columns after them are for the new tokens."""


class StoredBatch:
    """Keys and values of prompts that were computed in one forward pass."""

    __slots__ = ("_layout", "layers", "prompts", "size", "width")

    def __init__(self, prompts: Sequence[list[int]], cache: KVCache, layout: Layout) -> None:
        self.prompts, self._layout = list(prompts), layout
        # Views: what is decoded later is appended behind them.
        self.layers: list[tuple[Tensor, Tensor]] = cache.states()
        self.width = self.layers[0][0].shape[2]
        self.size = cache.size
        """Bytes."""

    def columns(self, row: int, count: int) -> list[int]:
        """The columns of the first ``count`` tokens of a prompt."""
        known, before = self._layout.known[row], self._layout.before
        new = len(self.prompts[row]) - known
        return [
            before - known + k if k < known else self.width - new + k - known for k in range(count)
        ]


class Prefix(NamedTuple):
    """The beginning of a prompt that was computed before."""

    batch: StoredBatch
    row: int
    length: int
    """Number of tokens; the prompt has more."""


class PrefixStore:
    """The most recent prompts, up to a memory limit."""

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes``: limit for the keys and values; 0: nothing is kept."""
        self.max_bytes = max_bytes
        self._batches: OrderedDict[int, StoredBatch] = OrderedDict()
        self._found: dict[int, tuple[StoredBatch, int]] = {}
        self._hashes: dict[int, list[int]] = {}
        """The hashes under which each batch was stored."""

    @property
    def size(self) -> int:
        """Bytes in use."""
        return sum(batch.size for batch in self._batches.values())

    def clear(self) -> None:
        """Remove all prompts."""
        self._batches.clear()
        self._found.clear()
        self._hashes.clear()

    def find(self, version: str | None, ids: list[int]) -> Prefix | None:
        """The longest known beginning of a prompt, without its last token."""
        hashes = list(_chain(version, ids))
        for count in range(len(hashes), 0, -1):
            batch, row = self._found.get(hashes[count - 1], (None, 0))
            if batch is None:
                continue
            length = common(batch.prompts[row], ids)
            if length < count * _BLOCK:  # equal hashes of unequal prompts
                continue
            self._batches.move_to_end(id(batch))
            return Prefix(batch, row, min(length, len(ids) - 1))
        return None

    def add(self, versions: Sequence[str | None], batch: StoredBatch) -> None:
        """Add a batch, and remove the oldest ones if the limit is exceeded."""
        if batch.size > self.max_bytes:
            return
        self._batches[id(batch)] = batch
        hashes = self._hashes[id(batch)] = []
        for row, (version, ids) in enumerate(zip(versions, batch.prompts, strict=True)):
            for key in _chain(version, ids):
                self._found[key] = batch, row
                hashes.append(key)
        while self.size > self.max_bytes:
            number, oldest = self._batches.popitem(last=False)
            for key in self._hashes.pop(number):
                if key in self._found and self._found[key][0] is oldest:
                    del self._found[key]


def loaded(cache: KVCache, prefixes: Sequence[Prefix | None], width: int, room: int) -> Tensor:
    """Put the stored prefixes of prompts into an empty cache, one in each row, padded on the left
    to ``width``.

    ``room`` is the number of tokens that are computed next.

    Returns:
        The attention mask of the prefixes, ``[rows, width]``.
    """
    mask = torch.zeros((len(prefixes), width), dtype=torch.long)
    sources: dict[int, list[int]] = {}
    for at, prefix in enumerate(prefixes):
        if prefix is not None:
            mask[at, width - prefix.length :] = 1
            sources.setdefault(id(prefix.batch), []).append(at)
    gathered: list[tuple[StoredBatch, Tensor, Tensor, Tensor]] = []
    for rows in sources.values():
        held = [prefix for at in rows if (prefix := prefixes[at]) is not None]
        places = [
            [0] * (width - p.length) + p.batch.columns(p.row, p.length) for p in held
        ]  # padding: any place, since it is masked
        batch = held[0].batch
        device = batch.layers[0][0].device
        found = torch.tensor([p.row for p in held], device=device)[:, None]
        where = torch.tensor(places, device=device)
        gathered.append((batch, torch.tensor(rows, device=device), found, where))
    like = gathered[0][0].layers
    for number, layer in enumerate(cache.kv_layers):
        pair = []
        for side in (0, 1):
            _, heads, _, size = like[number][side].shape
            buffer = like[number][side].new_zeros(
                (len(prefixes), heads, width + room + layer.spare, size)
            )
            for batch, rows_to, found, where in gathered:
                states = batch.layers[number][side][found, :, where]  # [rows, width, heads, size]
                buffer[rows_to, :, :width] = states.transpose(1, 2)
            pair.append(buffer)
        layer.begin(pair[0], pair[1], width)
    return mask


def _chain(version: str | None, ids: list[int]) -> Iterator[int]:
    """Hashes of the first 16, 32, … tokens."""
    key = hash(version)
    for begin in range(0, len(ids) - _BLOCK + 1, _BLOCK):
        key = hash((key, *ids[begin : begin + _BLOCK]))
        yield key


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix."""
    shorter = min(len(one), len(other))
    for k in range(shorter):
        if one[k] != other[k]:
            return k
    return shorter
