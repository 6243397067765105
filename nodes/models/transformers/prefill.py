"""Runs the network on the prompts of a batch: in groups of similar length, prefixes only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.cache import KVCache, Prefix, PrefixStore
from swarm_ui.nodes.models.transformers.forwards import Pictures, forward, gaps_allowed, pieces
from swarm_ui.nodes.models.transformers.routing import LoraRouting


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
    routing: LoraRouting
    """The adapters of the rows; it is updated when rows are moved or removed."""
    store: PrefixStore
    """Where the keys and values of prompts are kept, to be computed only once."""
    weights: Sequence[str]
    """A name of the weights that each row uses, for the store."""
    pictures: Pictures | None = None
    """Makes the inputs of a network with pictures."""


def prefill(setting: Setting, prompts: Sequence[list[int]], options: Tensor | None = None) -> Batch:
    """Run the network on all prompts, of any lengths. With a store, equal prompts and known
    beginnings are computed once. ``options``: the tokens whose logits are wanted, if not all."""
    network, weights = setting.network, setting.weights
    apart = gaps_allowed(network, KVCache(network.config))
    store = setting.store if apart and setting.store.max_bytes else None
    equal: dict[object, list[int]] = {}
    for row, prompt in enumerate(prompts):
        equal.setdefault((weights[row], *prompt) if store else row, []).append(row)
    rows = {alike[0]: alike for alike in equal.values()}
    firsts = [*rows]
    known = [store.find(weights[k], prompts[k]) if store else None for k in firsts]
    rest = [len(prompts[k]) - _length(p) for k, p in zip(firsts, known, strict=True)]
    done: list[Batch] = []
    read: dict[int, Prefix] = {}
    groups = pieces(rest, setting.cost) if apart else [list(range(len(firsts)))]
    for group in groups:
        own, begun = [firsts[at] for at in group], [known[at] for at in group]
        setting.routing.select_rows(own)
        done.append(_read(setting, [prompts[k] for k in own], begun, options)._replace(order=own))
        if store or len(groups) > 1:
            *_, cache, attention = done[-1]
            states = cache.prefixes([prompts[k] for k in own], attention)
            read |= zip(own, states, strict=True)
            for k, before, now in zip(own, begun, states, strict=True):
                if store and _length(before) < len(now.ids) - 1:
                    store.add(weights[k], now)
    whole = done[0]
    if len(done) > 1 or len(firsts) < len(prompts):
        whole = _joined(network, done, rows, read)
    setting.routing.select_rows(whole.order)
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
        cache.begin(prefixes, longest)
        ends = [p[n - 1] if n else pad_id for p, n in zip(prompts, known, strict=True)]
        cache.last_ids = torch.tensor(ends, device=device)[:, None]
    ids, attention = ids.to(device), attention.to(device)
    positions = (attention.cumsum(1) - 1).clamp_(min=0)[:, before:]
    logits = forward(
        setting.network, ids, attention, positions, cache,
        pictures=setting.pictures, options=options,
    )  # fmt: skip
    return Batch([], logits, cache, attention)


def _joined(
    network: PreTrainedModel,
    parts: Sequence[Batch],
    rows: dict[int, list[int]],
    read: dict[int, Prefix],
) -> Batch:
    """One batch of several, with a row for each of equal prompts."""
    firsts = [first for part in parts for first in part.order for _ in rows[first]]
    order = [row for part in parts for first in part.order for row in rows[first]]
    place = {first: at for at, first in enumerate(k for part in parts for k in part.order)}
    cache, device = KVCache(network.config), network.device
    cache.begin([read[first] for first in firsts], 0)
    cache.last_ids = torch.tensor([read[first].ids[-1:] for first in firsts], device=device)
    lengths = torch.tensor([[len(read[first].ids)] for first in firsts], device=device)
    most = int(lengths.max())
    attention = (torch.arange(most, device=device) >= most - lengths).long()
    logits = torch.cat([part.logits for part in parts])
    return Batch(order, logits[[place[first] for first in firsts]], cache, attention)


def _length(prefix: Prefix | None) -> int:
    return 0 if prefix is None else len(prefix.ids)
