"""Runs a network on the rows of a batch, each of which goes through its own adapter.

Prompts are read in groups of similar length, and prefixes only once; replies are written together.
Logits stay on the device of the network. Of each step, only the chosen tokens and their
log-probabilities are copied to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.decoding import Continuation, Row, choose
from swarm_ui.nodes.models.transformers.forwards import (
    KVCache,
    Pictures,
    Prefix,
    PrefixStore,
    expect_known_head,
    forward,
    forward_cost,
    gaps_allowed,
    pieces,
)
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


class Decoder:
    """Continues rows, and compares first tokens. In each method, ``routing`` has the adapter of
    each row; it is updated when rows are moved or removed."""

    def __init__(
        self,
        network: PreTrainedModel,
        *,
        pad_id: int,
        stops: Collection[int],
        pictures: Pictures | None,
        prefix_bytes: int,
        same_in_any_batch: bool,
    ) -> None:
        """``pad_id`` fills a batch up, ``stops`` end a row. ``same_in_any_batch``: the tokens of a
        row do not depend on the other rows: if two tokens have nearly equal scores, a forward pass
        of this row alone decides."""
        self._network, self._pad_id, self._stops, self._pictures = network, pad_id, stops, pictures
        if pictures is None:
            expect_known_head(network)
        self._same_in_any_batch = same_in_any_batch
        self._cost = forward_cost(network)
        self._gaps = gaps_allowed(network, KVCache(network.config))
        self.prefixes = PrefixStore(prefix_bytes if self._gaps else 0)

    def probabilities(
        self, routing: LoraRouting, rows: Sequence[Row], options: Sequence[int]
    ) -> list[tuple[float, ...]]:
        """The probability of each option as the first new token, among the options only."""
        tokens = torch.tensor(options, device=self._network.device)
        batch = self.read(routing, {k: row.prompt for k, row in enumerate(rows)}, tokens)
        values = batch.logits[:, 0].double().softmax(1).tolist()
        found = dict(zip(batch.order, map(tuple, values), strict=True))
        return [found[k] for k in range(len(rows))]

    def generate(self, routing: LoraRouting, rows: Sequence[Row]) -> list[Continuation]:
        """Continue every row, of any length; usually one forward per new token for all."""
        network = self._network
        prompts = {k: row.prompt for k, row in enumerate(rows)}
        here, logits, cache, attention = self.read(routing, prompts)
        every = [Continuation(row, self._stops, network.device, logits.shape[2]) for row in rows]
        now, read = [every[k] for k in here], [1] * len(here)
        lengths = attention.sum(1).tolist()
        while True:
            alone = partial(self._logits_alone, routing, here, now)
            _advance(logits, now, read, alone if self._same_in_any_batch else None)
            unfinished = [at for at, row in enumerate(now) if row.readable]
            if not unfinished:
                return every
            if 2 * len(unfinished) <= len(here):  # removing fewer saves less than the copy costs
                kept = torch.tensor(unfinished, device=network.device)
                cache.select_rows(kept)
                attention = attention[kept]
                here, lengths = [here[at] for at in unfinished], [lengths[at] for at in unfinished]
                now = [every[k] for k in here]
                routing.select_rows(here)
            # Rows that read fewer tokens than others are padded between their tokens.
            span = _span([row.readable for row in now], self._cost) if self._gaps else 1
            read = [min(row.readable, span) for row in now]
            ids, added, positions = self._next(now, read, lengths, span)
            attention = torch.cat([attention, added], dim=1)
            lengths = [length + count for length, count in zip(lengths, read, strict=True)]
            logits = forward(network, ids, attention, positions, cache, span)

    # -- prompts ------------------------------------------------------------------------------

    def read(
        self, routing: LoraRouting, prompts: Mapping[int, list[int]], options: Tensor | None = None
    ) -> Batch:
        """Run the network on the prompts of some rows. With a store of prefixes, equal prompts and
        known beginnings are computed once. ``options``: the tokens whose logits are wanted."""
        names, store = routing.names, self.prefixes if self.prefixes.max_bytes else None
        equal: dict[object, list[int]] = {}
        for row, prompt in prompts.items():
            equal.setdefault((names[row], *prompt) if store else row, []).append(row)
        rows = {alike[0]: alike for alike in equal.values()}
        firsts = [*rows]
        known = {k: store.find(names[k], prompts[k]) if store else None for k in firsts}
        rest = [len(prompts[k]) - _length(known[k]) for k in firsts]
        groups = pieces(rest, self._cost) if self._gaps else [list(range(len(firsts)))]
        parts: list[Batch] = []
        states: dict[int, Prefix] = {}
        for group in groups:
            own = [firsts[at] for at in group]
            routing.select_rows(own)
            parts.append(self._read({k: prompts[k] for k in own}, known, options))
            if store or len(groups) > 1:
                *_, cache, attention = parts[-1]
                found = cache.prefixes([prompts[k] for k in own], attention)
                states |= zip(own, found, strict=True)
        for k, prefix in states.items():
            if store and _length(known[k]) < len(prefix.ids) - 1:
                store.add(names[k], prefix)
        whole = parts[0]
        if len(parts) > 1 or len(firsts) < len(prompts):
            whole = self._joined(parts, rows, states)
        routing.select_rows(whole.order)
        return whole

    def _read(
        self,
        prompts: Mapping[int, list[int]],
        prefixes: Mapping[int, Prefix | None],
        options: Tensor | None,
    ) -> Batch:
        """Read the parts of prompts that are not known."""
        network, pad = self._network, self._pad_id
        known = {k: _length(prefixes[k]) for k in prompts}
        rest = {k: ids[known[k] :] for k, ids in prompts.items()}
        longest, before = max(map(len, rest.values())), max(known.values())
        ids = torch.tensor([[pad] * (longest - len(each)) + each for each in rest.values()])
        attention = torch.tensor([
            [0] * (before - known[k]) + [1] * known[k] + [0] * (longest - len(new)) + [1] * len(new)
            for k, new in rest.items()
        ])  # fmt: skip
        cache = KVCache(network.config)
        if before:
            cache.begin([prefixes[k] for k in prompts], longest, pad)
        ids, attention = ids.to(network.device), attention.to(network.device)
        positions = (attention.cumsum(1) - 1).clamp_(min=0)[:, before:]
        logits = forward(
            network, ids, attention, positions, cache, pictures=self._pictures, options=options
        )
        return Batch([*prompts], logits, cache, attention)

    def _joined(
        self, parts: Sequence[Batch], rows: Mapping[int, list[int]], states: Mapping[int, Prefix]
    ) -> Batch:
        """One batch of several, with a row for each of equal prompts."""
        device, cache = self._network.device, KVCache(self._network.config)
        firsts = [first for part in parts for first in part.order]
        place = [at for at, first in enumerate(firsts) for _ in rows[first]]
        own = [states[firsts[at]] for at in place]
        cache.begin(own, 0)
        lengths = torch.tensor([[len(each.ids)] for each in own], device=device)
        most = int(lengths.max())
        attention = (torch.arange(most, device=device) >= most - lengths).long()
        logits = torch.cat([part.logits for part in parts])[place]
        return Batch([row for first in firsts for row in rows[first]], logits, cache, attention)

    # -- new tokens ---------------------------------------------------------------------------

    def _next(
        self, rows: Sequence[Continuation], counts: Sequence[int], lengths: Sequence[int], span: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, mask and positions of a forward, ``[rows, span]``, padded on the left."""
        ids, mask, positions = [], [], []
        for row, count, length in zip(rows, counts, lengths, strict=True):
            gap = span - count
            ids.append([self._pad_id] * gap + row.feed[:count])
            mask.append([0] * gap + [1] * count)
            positions.append([max(0, length + place - gap) for place in range(span)])
        whole = torch.tensor([ids, mask, positions], device=self._network.device)
        return whole[0], whole[1], whole[2]

    def _logits_alone(
        self, routing: LoraRouting, here: Sequence[int], rows: Sequence[Continuation], at: int
    ) -> Tensor:
        """The logits of the next token of one row, ``[words]``, from a forward of it alone."""
        network, state = self._network, rows[at]
        ids = torch.tensor([state.row.prompt + state.ids], device=network.device)
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        routing.select_rows([here[at]])
        try:
            cache = KVCache(network.config)
            return forward(network, ids, torch.ones_like(ids), positions, cache)[0, -1]
        finally:
            routing.select_rows(here)


def _advance(
    logits: Tensor,
    rows: Sequence[Continuation],
    read: Sequence[int],
    alone: Callable[[int], Tensor] | None,
) -> None:
    """Choose the next tokens, and add up log-probabilities. ``logits``: ``[rows, tokens, words]``,
    of the tokens that were read, aligned at the end; ``read``: how many tokens of each row."""
    span = logits.shape[1]
    known: list[tuple[int, int, int]] = []  # row, place, token
    choosing: list[int] = []
    for at, (row, count) in enumerate(zip(rows, read, strict=True)):
        following = row.read(count) if count else []
        known += [(at, span - count + k, token) for k, token in enumerate(following)]
        if len(following) < count:
            choosing.append(at)
    places = [(at, place) for at, place, _ in known] + [(at, span - 1) for at in choosing]
    if not places:
        return
    if span == 1 and len(places) == len(rows) and not known:
        used = logits[:, 0]
    else:
        index = torch.tensor(places, device=logits.device)
        used = logits[index[:, 0], index[:, 1]]
    tokens = torch.tensor([token for *_, token in known], dtype=torch.long, device=used.device)
    if choosing:
        own = None if alone is None else lambda k: alone(choosing[k])
        tokens = torch.cat([tokens, choose(used[len(known) :], [rows[k] for k in choosing], own)])
    gains = used.gather(1, tokens[:, None])[:, 0] - used.logsumexp(1)
    owners = [at for at, *_ in known] + choosing
    both = torch.stack([tokens.double(), gains.double()]).tolist()
    for k, (at, token, gain) in enumerate(zip(owners, *both, strict=True)):
        rows[at].logprob += gain
        if k >= len(known):
            rows[at].take(int(token))


def _span(readable: Sequence[int], cost: int) -> int:
    """Number of tokens per row to read next: the most useful tokens per unit of time."""
    return max(
        sorted(set(readable) - {0}),
        key=lambda span: (
            sum(min(span, count) for count in readable) / (cost + span * len(readable))
        ),
    )


def _length(prefix: Prefix | None) -> int:
    return 0 if prefix is None else len(prefix.ids)
