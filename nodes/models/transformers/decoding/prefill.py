"""Runs the network on the prompts of a batch: in groups of similar length, prefixes only once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import signature
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.decoding.kv_cache import KVCache
from swarm_ui.nodes.models.transformers.decoding.prefix_store import (
    Layout,
    Prefix,
    PrefixStore,
    StoredBatch,
    loaded,
)
from swarm_ui.nodes.models.transformers.routing import LoraRouting

_MOST_PADDING, _LEAST_PADDING = 400, 16
_OVERHEAD = 3.6e9
_OVERHEAD_GPU = 2000


class Batch(NamedTuple):
    """Prompts whose keys and values have been computed."""

    order: list[int]
    """The rows, in the order of the batch."""
    logits: Tensor
    """Logits of the first new token, ``[rows, 1, words]``."""
    cache: KVCache
    attention: Tensor
    """1 for tokens, 0 for padding, ``[rows, tokens]``."""


class Sharing(NamedTuple):
    """Settings with which a prefix is computed only once for all prompts that begin with it and
    have the same adapter version."""

    store: PrefixStore
    versions: Sequence[str | None]
    """Adapter version of each row; ``None``: the base model."""


class _Reader(NamedTuple):
    network: PreTrainedModel
    prompts: Sequence[list[int]]
    pad_id: int
    routing: LoraRouting | None
    cost: int

    def read(self, rows: Sequence[int], sharing: Sharing | None = None) -> Batch:
        """Read the prompts of these rows."""
        prompts = [self.prompts[row] for row in rows]
        prefixes: list[Prefix | None] = [None] * len(rows)
        if sharing is not None:
            found = zip(rows, prompts, strict=True)
            prefixes = [sharing.store.find(sharing.versions[row], ids) for row, ids in found]
        known = [0 if prefix is None else prefix.length for prefix in prefixes]
        lengths = [len(ids) - count for ids, count in zip(prompts, known, strict=True)]
        joinable = KVCache(self.network.config).joinable
        pieces = _pieces(lengths, self.cost) if joinable else [list(range(len(rows)))]
        done = []
        for piece in pieces:
            order = [rows[at] for at in piece]
            if self.routing is not None and (len(pieces) > 1 or sharing is not None):
                self.routing.select_rows(order)
            texts, heads = [prompts[at] for at in piece], [prefixes[at] for at in piece]
            batch, layout = self._forward(texts, heads)
            if sharing is not None:
                versions = [sharing.versions[row] for row in order]
                sharing.store.add(versions, StoredBatch(texts, batch.cache, layout))
            done.append(batch._replace(order=order))
        return done[0] if len(done) == 1 else self._joined(done)

    def _forward(
        self,
        prompts: Sequence[list[int]],
        prefixes: Sequence[Prefix | None],
    ) -> tuple[Batch, Layout]:
        """Read the parts of prompts that are not cached."""
        network = self.network
        known = [0 if prefix is None else prefix.length for prefix in prefixes]
        rest = [ids[count:] for ids, count in zip(prompts, known, strict=True)]
        ids, attention = _left_padded(rest, self.pad_id)
        cache, before = KVCache(network.config), max(known)
        if before:
            mask = loaded(cache, prefixes, before, ids.shape[1])
            attention = torch.cat([mask, attention], dim=1)
        ends = [
            prompt[count - 1] if count else self.pad_id
            for prompt, count in zip(prompts, known, strict=True)
        ]
        # Also without a prefix: caches are joined, and all of them or none must have this value.
        cache.last_ids = torch.tensor(ends, device=network.device)[:, None]
        ids, attention = ids.to(network.device), attention.to(network.device)
        positions = (attention.cumsum(1) - 1).clamp_(min=0)[:, before:]
        logits = forward(network, ids, attention, positions, cache)
        return Batch([], logits, cache, attention), Layout(known, before)

    def _joined(self, parts: Sequence[Batch]) -> Batch:
        order = [row for part in parts for row in part.order]
        if self.routing is not None:
            self.routing.select_rows(order)
        longest = max(part.attention.shape[1] for part in parts)
        masks = [pad(p.attention, (longest - p.attention.shape[1], 0)) for p in parts]
        cache = KVCache.joined(self.network.config, [part.cache for part in parts])
        return Batch(order, torch.cat([part.logits for part in parts]), cache, torch.cat(masks))


def prefill(
    network: PreTrainedModel,
    prompts: Sequence[list[int]],
    pad_id: int,
    routing: LoraRouting | None = None,
    sharing: Sharing | None = None,
) -> Batch:
    """Run the network on all prompts. They may have any lengths, and are padded on the left with
    ``pad_id``.
    """
    reader = _Reader(network, prompts, pad_id, routing, forward_cost(network))
    if sharing is None or not gaps_allowed(network, KVCache(network.config)):
        return reader.read(range(len(prompts)))
    equal: dict[tuple[str | None, tuple[int, ...]], list[int]] = {}
    for row, ids in enumerate(prompts):
        equal.setdefault((sharing.versions[row], tuple(ids)), []).append(row)
    first = {rows[0]: rows for rows in equal.values()}
    batch = reader.read(list(first), sharing)
    if len(first) == len(prompts):
        if routing is not None:
            routing.select_rows(batch.order)
        return batch
    order = [row for one in batch.order for row in first[one]]
    at = [k for k, one in enumerate(batch.order) for _ in first[one]]
    again = torch.tensor(at, device=network.device)
    batch.cache.select_rows(again)
    if routing is not None:
        routing.select_rows(order)
    return Batch(order, batch.logits[again], batch.cache, batch.attention[again])


def _pieces(lengths: Sequence[int], cost: int) -> list[list[int]]:
    """Split the rows into groups, one forward pass each, where that saves enough padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    pieces: list[list[int]] = []
    while order:
        longest = lengths[order[-1]]
        saved, cut = max(
            (k * (longest - lengths[order[k - 1]]), k) for k in range(1, len(order) + 1)
        )
        if saved < cost:
            cut = 0
        pieces.append(sorted(order[cut:]))
        order = order[:cut]
    return pieces


def gaps_allowed(network: PreTrainedModel, cache: KVCache) -> bool:
    """Whether padding may stand between the tokens of a row; ``cache``: any one of the network.

    A layer with a window or a recurrent state would count it as tokens, and a network that is not
    told positions would count it as distance.
    """
    windows = "local" in getattr(network.config, "attention_layers", ())  # GPT-Neo, in its masks
    return "position_ids" in accepts(network) and cache.joinable and not windows


def forward_cost(network: PreTrainedModel) -> int:
    """Number of padding tokens that cost as much time as one more forward pass.

    Measured on a CPU: 400 for 0.2 M parameters, and 27 for 135 M in bfloat16 on one thread.
    """
    if network.device.type != "cpu":
        return _OVERHEAD_GPU
    parameters = sum(weight.numel() for weight in network.parameters())
    return int(max(_LEAST_PADDING, min(_MOST_PADDING, _OVERHEAD / max(1, parameters))))


def forward(
    network: PreTrainedModel,
    ids: Tensor,
    attention: Tensor,
    positions: Tensor,
    cache: KVCache,
    last: int = 1,
) -> Tensor:
    """Logits after each of the ``last`` tokens, ``[rows, last, words]``, in float32."""
    placed = {"position_ids": positions} if "position_ids" in accepts(network) else {}
    output = network(
        input_ids=ids,
        attention_mask=attention,
        past_key_values=cache,
        use_cache=True,
        **placed,
        **keeping_logits(network, ids.shape[1] - last, ids),
    )
    logits: Tensor = output.logits[:, -last:].float()
    return logits


def keeping_logits(network: nn.Module, first: int, ids: Tensor) -> dict[str, Tensor]:
    """The input of a network that limits its logits to the tokens from ``first`` on, if there is
    one; ``ids``: the tokens, ``[rows, tokens]``.

    It is a list of places, not a number: transformers would take a slice, whose rows are not
    adjacent in memory, and PyTorch then copies the output layer's weights for each row.
    """
    if "logits_to_keep" not in accepts(network):
        return {}
    return {"logits_to_keep": torch.arange(first, ids.shape[1], device=ids.device)}


def _left_padded(prompts: Sequence[list[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids = [[pad_id] * (longest - len(prompt)) + prompt for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids), torch.tensor(mask)


def accepts(network: nn.Module) -> frozenset[str]:
    """The names of the inputs of a network; they differ between architectures."""
    return _parameters(type(network).forward)


@lru_cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(signature(function).parameters)
