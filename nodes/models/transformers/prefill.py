"""Runs the network on the prompts of a batch: in groups of similar length, prefixes only once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from inspect import signature
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.adapters.routing import LoraRouting
from swarm_ui.nodes.models.transformers.cache import KVCache, Prefix, PrefixStore

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
    """Where the keys and values of prompts are kept, to be computed only once."""

    store: PrefixStore
    adapters: Sequence[str]
    """A name of the weights that each row uses."""


def prefill(
    network: PreTrainedModel,
    prompts: Sequence[list[int]],
    pad_id: int,
    cost: int,
    routing: LoraRouting | None = None,
    sharing: Sharing | None = None,
) -> Batch:
    """Run the network on all prompts. They may have any lengths, and are padded on the left with
    ``pad_id``. With ``sharing``, equal prompts and known beginnings are computed once. ``cost``:
    see :func:`forward_cost`."""
    rows = list(range(len(prompts)))
    empty = KVCache(network.config)
    if sharing is not None and not gaps_allowed(network, empty):
        sharing = None
    equal: dict[object, list[int]] = {}
    for row in rows:
        key = row if sharing is None else (sharing.adapters[row], *prompts[row])
        equal.setdefault(key, []).append(row)
    firsts = [alike[0] for alike in equal.values()]
    known: dict[int, Prefix | None] = dict.fromkeys(firsts)
    if sharing is not None:
        known = {k: sharing.store.find(sharing.adapters[k], prompts[k]) for k in firsts}
    rest = [len(prompts[k]) - _length(known[k]) for k in firsts]
    alone = [list(range(len(firsts)))]
    parts = pieces(rest, cost) if empty.joinable else alone
    done: list[Batch] = []
    for piece in parts:
        order = [firsts[at] for at in piece]
        if routing is not None:
            routing.select_rows(order)
        texts = [prompts[k] for k in order]
        done.append(_read(network, texts, pad_id, [known[k] for k in order])._replace(order=order))
        if sharing is not None:
            _keep(sharing, done[-1], prompts, known)
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
    network: PreTrainedModel,
    prompts: Sequence[list[int]],
    pad_id: int,
    prefixes: Sequence[Prefix | None],
) -> Batch:
    """Read the parts of prompts that are not known."""
    known = [_length(prefix) for prefix in prefixes]
    rest = [ids[count:] for ids, count in zip(prompts, known, strict=True)]
    longest, before = max(map(len, rest)), max(known)
    ids = torch.tensor([[pad_id] * (longest - len(each)) + each for each in rest])
    attention = torch.tensor([
        [0] * (before - count) + [1] * count + [0] * (longest - len(each)) + [1] * len(each)
        for each, count in zip(rest, known, strict=True)
    ])  # fmt: skip
    cache = KVCache(network.config)
    if before:
        cache.begin([None if prefix is None else prefix.states for prefix in prefixes], longest)
    ends = [
        text[count - 1] if count else pad_id for text, count in zip(prompts, known, strict=True)
    ]
    # Also without a prefix: caches are joined, and all of them or none must have this value.
    cache.of_rows["last_ids"] = torch.tensor(ends, device=network.device)[:, None]
    ids, attention = ids.to(network.device), attention.to(network.device)
    positions = (attention.cumsum(1) - 1).clamp_(min=0)[:, before:]
    return Batch([], forward(network, ids, attention, positions, cache), cache, attention)


def _keep(
    sharing: Sharing,
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
            sharing.store.add(sharing.adapters[row], Prefix(prompts[row], own))


def _joined(network: PreTrainedModel, parts: Sequence[Batch]) -> Batch:
    order = [row for part in parts for row in part.order]
    longest = max(part.attention.shape[1] for part in parts)
    masks = [pad(p.attention, (longest - p.attention.shape[1], 0)) for p in parts]
    cache = KVCache.joined(network.config, [part.cache for part in parts])
    return Batch(order, torch.cat([part.logits for part in parts]), cache, torch.cat(masks))


def _length(prefix: Prefix | None) -> int:
    return 0 if prefix is None else len(prefix.ids)


def pieces(lengths: Sequence[int], cost: int) -> list[list[int]]:
    """Split the rows into groups, one forward pass each, where that saves enough padding."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    done: list[list[int]] = []
    while order:
        longest = lengths[order[-1]]
        saved, cut = max(
            (k * (longest - lengths[order[k - 1]]), k) for k in range(1, len(order) + 1)
        )
        if saved < cost:
            cut = 0
        done.append(sorted(order[cut:]))
        order = order[:cut]
    return done


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


def accepts(network: nn.Module) -> frozenset[str]:
    """The names of the inputs of a network; they differ between architectures."""
    return _parameters(type(network).forward)


@lru_cache
def _parameters(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(signature(function).parameters)
