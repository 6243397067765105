"""Runs the network on the prompts of a batch: in groups of similar length, prefixes only once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.adapters.routing import LoraRouting
from swarm_ui.nodes.models.transformers.cache import KVCache, Prefix, PrefixStore
from swarm_ui.nodes.models.transformers.forwards import Pictures, forward, gaps_allowed, pieces


class Batch(NamedTuple):
    """Prompts whose keys and values have been computed."""

    order: list[int]
    """The rows, in the order of the batch."""
    logits: Tensor
    """Logits of the first new token, ``[rows, 1, words]``."""
    cache: KVCache
    attention: Tensor
    """1 for tokens, 0 for padding, ``[rows, tokens]``."""


class Setting(NamedTuple):
    """How the rows of a batch are computed."""

    network: PreTrainedModel
    """In eval mode."""
    pad_id: int
    """Fills prompts up on the left."""
    cost: int
    """See :func:`~swarm_ui.nodes.models.transformers.forwards.forward_cost`."""
    routing: LoraRouting | None = None
    """The adapters of the rows; it is updated when rows are moved or removed."""
    store: PrefixStore | None = None
    """Where the keys and values of prompts are kept, to be computed only once."""
    weights: Sequence[str] = ()
    """A name of the weights that each row uses, for the store."""
    pictures: Pictures | None = None
    """Makes the inputs of a network with pictures."""


def prefill(setting: Setting, prompts: Sequence[list[int]], options: Tensor | None = None) -> Batch:
    """Run the network on all prompts, of any lengths. With a store, equal prompts and known
    beginnings are computed once. ``options``: the tokens whose logits are wanted, if not all."""
    network, store, routing = setting.network, setting.store, setting.routing
    empty = KVCache(network.config)
    if store is not None and not gaps_allowed(network, empty):
        store = None
    equal: dict[object, list[int]] = {}
    for row, prompt in enumerate(prompts):
        key = row if store is None else (setting.weights[row], *prompt)
        equal.setdefault(key, []).append(row)
    firsts = [alike[0] for alike in equal.values()]
    known: dict[int, Prefix | None] = dict.fromkeys(firsts)
    if store is not None:
        known = {k: store.find(setting.weights[k], prompts[k]) for k in firsts}
    rest = [len(prompts[k]) - _length(known[k]) for k in firsts]
    parts = pieces(rest, setting.cost) if empty.joinable else [list(range(len(firsts)))]
    done: list[Batch] = []
    for piece in parts:
        order = [firsts[at] for at in piece]
        if routing is not None:
            routing.select_rows(order)
        read = _read(setting, [prompts[k] for k in order], [known[k] for k in order], options)
        done.append(read._replace(order=order))
        if store is not None:
            _keep(store, setting.weights, done[-1], prompts, known)
    whole = done[0] if len(done) == 1 else _joined(network, done)
    repeated = {alike[0]: alike for alike in equal.values()}
    order = [row for first in whole.order for row in repeated[first]]
    if len(order) > len(firsts):
        at = [k for k, first in enumerate(whole.order) for _ in repeated[first]]
        again = torch.tensor(at, device=network.device)
        whole.cache.select_rows(again)
        whole = Batch(order, whole.logits[again], whole.cache, whole.attention[again])
    if routing is not None:
        routing.select_rows(order)
    return whole


def _read(
    setting: Setting,
    prompts: Sequence[list[int]],
    prefixes: Sequence[Prefix | None],
    options: Tensor | None,
) -> Batch:
    """Read the parts of prompts that are not known."""
    pad_id, device = setting.pad_id, setting.network.device
    known = [_length(prefix) for prefix in prefixes]
    rest = [ids[count:] for ids, count in zip(prompts, known, strict=True)]
    longest, before = max(map(len, rest)), max(known)
    ids = torch.tensor([[pad_id] * (longest - len(each)) + each for each in rest])
    attention = torch.tensor([
        [0] * (before - count) + [1] * count + [0] * (longest - len(each)) + [1] * len(each)
        for each, count in zip(rest, known, strict=True)
    ])  # fmt: skip
    cache = KVCache(setting.network.config)
    if before:
        cache.begin([None if prefix is None else prefix.states for prefix in prefixes], longest)
    ends = [
        text[count - 1] if count else pad_id for text, count in zip(prompts, known, strict=True)
    ]
    # Also without a prefix: caches are joined, and all of them or none must have this value.
    cache.last_ids = torch.tensor(ends, device=device)[:, None]
    ids, attention = ids.to(device), attention.to(device)
    positions = (attention.cumsum(1) - 1).clamp_(min=0)[:, before:]
    logits = forward(
        setting.network, ids, attention, positions, cache,
        pictures=setting.pictures, options=options,
    )  # fmt: skip
    return Batch([], logits, cache, attention)


def _keep(
    store: PrefixStore,
    weights: Sequence[str],
    batch: Batch,
    prompts: Sequence[list[int]],
    known: Mapping[int, Prefix | None],
) -> None:
    """Store the keys and values of new prompts, without padding."""
    states = batch.cache.states()
    if states is None:
        return
    for at, row in enumerate(batch.order):
        if _length(known[row]) < len(prompts[row]) - 1:
            here = batch.attention[at].nonzero()[:, 0]
            own = states[:, at].index_select(2, here)
            store.add(weights[row], Prefix(prompts[row], own))


def _joined(network: PreTrainedModel, parts: Sequence[Batch]) -> Batch:
    order = [row for part in parts for row in part.order]
    longest = max(part.attention.shape[1] for part in parts)
    masks = [pad(p.attention, (longest - p.attention.shape[1], 0)) for p in parts]
    cache = KVCache.joined(network.config, [part.cache for part in parts])
    return Batch(order, torch.cat([part.logits for part in parts]), cache, torch.cat(masks))


def _length(prefix: Prefix | None) -> int:
    return 0 if prefix is None else len(prefix.ids)
