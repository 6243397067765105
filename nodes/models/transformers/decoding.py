"""Continues the rows of a batch, each of which goes through its own adapter.

transformers' ``generate`` is not used: each row has its own temperature, seed and grammar; a row's
sample must not depend on the others; and with a tiny model most of its time is overhead.

Prompts are read in groups of similar length, and prefixes only once; replies are written together.

**Tokens without an alternative.** If a grammar allows only one token, the network has no choice.
Such tokens (the rest of a label, an index, the end) are processed together with the token before
them in one forward pass, which also gives their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from swarm_ui.nodes.models.transformers.cache import KVCache, Prefix, PrefixStore
from swarm_ui.nodes.models.transformers.forwards import (
    Pictures,
    accepts,
    expect_known_head,
    forward_cost,
    last_logits,
)
from swarm_ui.nodes.models.transformers.routing import LoraRouting

CLOSE = 1e-3
"""Difference of two logits below which the choice between them is close. Other rows in the batch,
and padding, change float32 logits of small models by some 1e-6."""

Allowed = Sequence[int] | Tensor
"""The tokens that may come next: a few ids, or a boolean tensor ``[vocabulary]`` on the device of
the logits."""


class Grammar(Protocol):
    """Restricts one reply: what may come next, after the tokens so far."""

    def allowed(self) -> Allowed:
        """The tokens that may come next, at least one."""
        ...

    def take(self, token: int) -> None:
        """Append an allowed token that does not end the reply."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to continue."""

    prompt: list[int]
    temperature: float = 0.0
    """Sampling temperature; with 0, the most probable token is chosen."""
    seed: int = 0
    max_tokens: int = 1
    grammar: Grammar | None = None
    """The grammar that restricts the tokens; ``None``: any token is allowed."""
    sparse: bool = True
    """Whether noise is drawn for the allowed tokens only, if they are listed: suitable for large
    vocabularies; the samples differ."""
    said: Sequence[int] = ()
    """A whole reply, which is scored; empty: the reply is written."""


class Continuation:
    """A row while it is continued, and its new tokens afterwards.

    ``feed`` are tokens that are known and not yet read by the network. All but the first were
    allowed without an alternative, and their log-probabilities come when the one before is read.
    """

    def __init__(
        self, number: int, row: Row, stops: Collection[int], device: torch.device, words: int
    ) -> None:
        """``number``: place of the row; ``words``: number of tokens of the vocabulary."""
        self.number, self.row, self._stops, self._words = number, row, stops, words
        sampled = row.temperature > 0
        self.random = torch.Generator(device).manual_seed(row.seed) if sampled else None
        """Generator for sampling; ``None``: greedy."""
        self.allowed: Allowed | None = None
        """The tokens to choose from; ``None``: any token."""
        self.ids: list[int] = []
        """The new tokens, without the end token."""
        self.logprob = 0.0
        """Sum over the new tokens (end token included) under the unconstrained model at
        temperature 1, nats."""
        self.end: int | None = None
        """The end token; ``None``: the reply was cut off."""
        self._final = False  # whether nothing is to be chosen any more
        self.feed = [row.prompt[-1]]  # the network reads it with the prompt
        for token in row.said:
            self._append(token)
        self._look_ahead()

    @property
    def tokens(self) -> list[int]:
        """The new tokens, with the end token."""
        return self.ids if self.end is None else [*self.ids, self.end]

    @property
    def readable(self) -> int:
        """Number of tokens of ``feed`` to read: 0 if all tokens are known, with their
        log-probabilities. The last token of a reply need not be read."""
        return len(self.feed) - self._final

    def take(self, token: int) -> None:
        """Append a chosen token, and those that must follow."""
        self._append(token)
        self._look_ahead()

    @property
    def listed(self) -> list[int] | None:
        """The only tokens for which noise is drawn, in order; ``None``: for all."""
        if not self.row.sparse or self.allowed is None or isinstance(self.allowed, Tensor):
            return None
        return sorted(self.allowed)

    def drawn(self, count: int) -> Tensor:
        """Numbers between 0 and 1 of a sampled row."""
        assert self.random is not None
        return torch.rand(count, generator=self.random, device=self.random.device)

    def _append(self, token: int) -> None:
        self.feed.append(token)
        if token in self._stops:
            self.end = token
        else:
            self.ids.append(token)
        self._final = self.end is not None or len(self.ids) >= self.row.max_tokens
        if self.row.grammar is not None and not self._final:
            self.row.grammar.take(token)

    def _look_ahead(self) -> None:
        while self.row.grammar is not None and not self._final:
            self.allowed = self.row.grammar.allowed()
            if isinstance(self.allowed, Tensor) or len(self.allowed) != 1:
                return
            if self.random is not None and not self.row.sparse:
                # What a row draws for a token does not depend on which tokens before it were free.
                self.drawn(self._words)
            self._append(self.allowed[0])


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
        self._positions = "position_ids" in accepts(network)
        # Whether padding may stand between the tokens of a row. A layer with a window or a
        # recurrent state would count it as tokens, and a network that is not told positions would
        # count it as distance. GPT-Neo has windows in its masks.
        windows = "local" in getattr(network.config, "attention_layers", ())
        self._gaps = self._positions and KVCache(network.config).whole and not windows
        self.prefixes = PrefixStore(prefix_bytes)

    def probabilities(
        self, routing: LoraRouting, rows: Sequence[Row], options: Sequence[int]
    ) -> list[tuple[float, ...]]:
        """The probability of each option as the first new token, among the options only."""
        tokens = torch.tensor(options, device=self._network.device)
        logits, _, _ = self._read(routing, [row.prompt for row in rows], tokens)
        return list(map(tuple, logits[:, 0].double().softmax(1).tolist()))

    def generate(self, routing: LoraRouting, rows: Sequence[Row]) -> list[Continuation]:
        """Continue every row, of any length; usually one forward per new token for all."""
        logits, cache, attention = self._read(routing, [row.prompt for row in rows])
        device, words = logits.device, logits.shape[2]
        every = [Continuation(k, row, self._stops, device, words) for k, row in enumerate(rows)]
        alone = partial(self._logits_alone, routing) if self._same_in_any_batch else None
        now, read = every, [1] * len(every)
        while True:
            _advance(logits, now, read, alone)
            unfinished = [at for at, row in enumerate(now) if row.readable]
            if not unfinished:
                return every
            if 2 * len(unfinished) <= len(now):  # removing fewer saves less than the copy costs
                kept = torch.tensor(unfinished, device=self._network.device)
                cache.select_rows(kept)
                attention, now = attention[kept], [now[at] for at in unfinished]
                routing.select_rows([row.number for row in now])
            # Rows that read fewer tokens than others are padded between their tokens.
            span = _span([row.readable for row in now], self._cost) if self._gaps else 1
            new = [row.feed[: min(row.readable, span)] for row in now]
            read = [len(each) for each in new]
            logits, attention = self._forward(cache, attention, new, span)

    def _read(
        self, routing: LoraRouting, prompts: Sequence[list[int]], options: Tensor | None = None
    ) -> tuple[Tensor, KVCache, Tensor]:
        """Read the prompts: logits of the next token, ``[rows, 1, words]``, the cache and its mask.
        Equal prompts and known beginnings are computed once. ``options``: the tokens whose logits
        are wanted."""
        network, names, store = self._network, routing.names, self.prefixes
        if not self._gaps:
            cache = KVCache(network.config)
            logits, attention = self._forward(cache, None, prompts, 1, options)
            return logits, cache, attention
        first: dict[object, int] = {}
        same = [first.setdefault((names[k], *ids), k) for k, ids in enumerate(prompts)]
        known = {k: store.find(names[k], prompts[k]) for k in first.values()}
        lengths = {k: 0 if found is None else len(found.ids) for k, found in known.items()}
        done: dict[int, tuple[Tensor, Prefix]] = {}
        for group in _groups({k: len(prompts[k]) - lengths[k] for k in known}, self._cost):
            routing.select_rows(group)
            new = [prompts[k][lengths[k] :] for k in group]
            cache, mask = KVCache(network.config), None
            if any(lengths[k] for k in group):
                mask = cache.begin([known[k] for k in group], max(map(len, new)), self._pad_id)
            logits, mask = self._forward(cache, mask, new, 1, options)
            states = cache.prefixes([prompts[k] for k in group], mask)
            done |= zip(group, zip(logits, states, strict=True), strict=True)
        for k, (_, prefix) in done.items():
            if lengths[k] < len(prefix.ids) - 1:
                store.add(names[k], prefix)
        routing.select_rows(range(len(prompts)))
        cache = KVCache(network.config)
        attention = cache.begin([done[k][1] for k in same], 0, self._pad_id)
        return torch.stack([done[k][0] for k in same]), cache, attention

    def _forward(
        self,
        cache: KVCache,
        attention: Tensor | None,
        new: Sequence[list[int]],
        last: int,
        options: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Read new tokens of each row, padded on the left. Returns the logits after the ``last``
        ones, and the mask of all tokens: 1 for tokens, 0 for padding, ``[rows, tokens]``."""
        network, pad, longest = self._network, self._pad_id, max(map(len, new))
        ids = [[pad] * (longest - len(each)) + each for each in new]
        mask = [[0] * (longest - len(each)) + [1] * len(each) for each in new]
        given = torch.tensor([ids, mask], device=network.device)
        attention = given[1] if attention is None else torch.cat([attention, given[1]], 1)
        inputs = {"attention_mask": attention}
        if self._positions:
            inputs["position_ids"] = (attention.cumsum(1) - 1).clamp_(min=0)[:, -longest:]
        logits = last_logits(
            network, given[0], cache, self._pictures, last=last, options=options, **inputs
        )
        return logits, attention

    def _logits_alone(self, routing: LoraRouting, row: Continuation) -> Tensor:
        """The logits of the next token of one row, ``[words]``, from a forward of it alone."""
        before = routing.rows
        routing.select_rows([row.number])
        whole = [row.row.prompt + row.ids]
        logits, _ = self._forward(KVCache(self._network.config), None, whole, 1)
        routing.select_rows(before)
        return logits[0, -1]


def _advance(
    logits: Tensor,
    rows: Sequence[Continuation],
    read: Sequence[int],
    alone: Callable[[Continuation], Tensor] | None,
) -> None:
    """Choose the next tokens, and add up log-probabilities. ``logits``: ``[rows, tokens, words]``,
    of the tokens of ``feed`` that were read, aligned at the end; ``read``: how many of each row."""
    choosing = [at for at, row in enumerate(rows) if 0 < read[at] == len(row.feed)]
    if choosing:
        open_ = [rows[at] for at in choosing]
        for row, token in zip(open_, choose(logits[choosing, -1], open_, alone), strict=True):
            row.take(token)
    first = logits.shape[1]
    followed = [
        (at, first - count + k, token)
        for at, (row, count) in enumerate(zip(rows, read, strict=True))
        for k, token in enumerate(row.feed[1 : count + 1])
    ]
    at, place, token = torch.tensor(followed, device=logits.device).T
    scores = logits[at, place]
    gains = scores.gather(1, token[:, None])[:, 0] - scores.logsumexp(1)
    for (at, *_), gain in zip(followed, gains.tolist(), strict=True):
        rows[at].logprob += gain
    for row, count in zip(rows, read, strict=True):
        row.feed = row.feed[count:]


def choose(
    logits: Tensor,
    rows: Sequence[Continuation],
    alone: Callable[[Continuation], Tensor] | None = None,
) -> list[int]:
    """The best allowed token of each row, by ``logits``, ``[rows, vocabulary]``. Sampled rows get
    Gumbel noise first. ``alone`` gives the logits of one row without the others, for rows in which
    the best two tokens are close, so that no choice depends on the batch."""
    device, scores = logits.device, logits
    heat = torch.tensor([row.row.temperature or 1.0 for row in rows], device=device)[:, None]
    noise, whole = torch.zeros_like(logits), dict[int, Tensor]()
    sampled = {k: row.listed for k, row in enumerate(rows) if row.random is not None}
    for k, listed in sampled.items():
        if listed is None:
            whole[k] = rows[k].drawn(logits.shape[1])
        else:
            noise[k, listed] = _gumbel_(rows[k].drawn(len(listed)))
    if whole:
        noise[[*whole]] = _gumbel_(torch.stack([*whole.values()]))
    if sampled:
        scores = logits / heat - noise
    barred = torch.zeros_like(logits, dtype=torch.bool)
    bound = {k: row.allowed for k, row in enumerate(rows) if row.allowed is not None}
    if bound:
        barred[[*bound]] = True
        few = [(k, i) for k, ids in bound.items() if not isinstance(ids, Tensor) for i in ids]
        at, to = torch.tensor(few, dtype=torch.long, device=device).view(-1, 2).T
        barred[at, to] = False
        for k, allowed in bound.items():
            if isinstance(allowed, Tensor):
                barred[k] = ~allowed
        scores = scores.masked_fill(barred, -torch.inf)
    best = scores.argmax(-1)
    if alone is not None:
        first, second = scores.topk(2).values.unbind(1)
        for k in ((first - second) * heat[:, 0] < CLOSE).nonzero()[:, 0].tolist():
            own = alone(rows[k]) / heat[k] - noise[k]
            best[k] = own.masked_fill(barred[k], -torch.inf).argmax()
    return best.tolist()


def _gumbel_(uniform: Tensor) -> Tensor:
    """The logarithm of exponential noise, in place: Gumbel noise with its sign changed."""
    return uniform.clamp_(1e-9, 1 - 1e-7).log_().neg_().log_()


# -- what is read together ------------------------------------------------------------------------


def _groups(lengths: Mapping[int, int], cost: int) -> list[list[int]]:
    """Split the rows into groups, one forward pass each, where that saves enough padding."""
    order = sorted(lengths, key=lengths.__getitem__)
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


def _span(readable: Sequence[int], cost: int) -> int:
    """Number of tokens per row to read next: the most useful tokens per unit of time."""
    return max(
        sorted(set(readable) - {0}),
        key=lambda span: (
            sum(min(span, count) for count in readable) / (cost + span * len(readable))
        ),
    )
