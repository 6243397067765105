"""Batched decoding with a cache and an optional grammar, sampled with a seed per row.

transformers' ``generate`` is not used: each row has its own temperature, seed and grammar; a row's
sample must not depend on the others; and with a tiny model most of its time is overhead.

Logits stay on the device of the network. Of each step, only the chosen tokens and their
log-probabilities are copied to the host.

**Tokens without an alternative.** If a grammar allows only one token, the network has no choice.
Such tokens (the rest of a label, an index, the end) are processed together with the token before
them in one forward pass, which also gives their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from swarm_ui.nodes.models.transformers.cache import KVCache
from swarm_ui.nodes.models.transformers.choosing import Allowed, Choice, Grammar, choose
from swarm_ui.nodes.models.transformers.forwards import forward, gaps_allowed
from swarm_ui.nodes.models.transformers.prefill import Setting, prefill


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to continue."""

    prompt: list[int]
    temperature: float
    """Sampling temperature; with 0, the most probable token is chosen."""
    seed: int
    max_tokens: int
    grammar: Grammar | None = None
    """The grammar that restricts the tokens; ``None``: any token is allowed."""
    sparse: bool = True
    """Whether noise is drawn for the listed tokens only: suitable for large vocabularies; the
    samples differ."""
    shift: int = 0
    """Position of the first new token minus the number of tokens before it; not 0 where pictures
    are counted in another way."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """The new tokens of a row."""

    ids: list[int]
    """The new tokens, without the end token."""
    logprob: float
    """Sum over the new tokens (end token included) under the unconstrained model at
    temperature 1, nats."""
    end: int | None
    """The end token; ``None``: the reply was cut off."""

    @property
    def tokens(self) -> list[int]:
        """The new tokens, with the end token."""
        return self.ids if self.end is None else [*self.ids, self.end]


class _State:
    """A row while it is decoded.

    ``feed`` are tokens that are known and not yet read by the network. All but the first were
    allowed without an alternative, and their log-probabilities come when the one before is read.
    """

    def __init__(self, row: Row, stops: Collection[int], device: torch.device, words: int) -> None:
        """``words``: number of tokens of the vocabulary."""
        self.row, self._stops, self._words = row, stops, words
        sampled = row.temperature > 0
        self.noise = torch.Generator(device).manual_seed(row.seed) if sampled else None
        self.ids: list[int] = []
        self.logprob = 0.0
        self.end: int | None = None
        self._cursor = None if row.grammar is None else row.grammar.begin()
        self._allowed: Allowed | None = None
        self._final = False  # whether nothing is to be chosen any more
        self.feed = [row.prompt[-1]]  # the network reads it with the prompt
        self._look_ahead()

    @property
    def readable(self) -> int:
        """Number of tokens of ``feed`` to read: 0 if all tokens are known, with their
        log-probabilities. The last token of a reply need not be read."""
        return len(self.feed) - self._final

    def read(self, count: int) -> list[int]:
        """Note that the network has read the first ``count`` tokens of ``feed``.

        Returns the token that follows each of them. If only ``count - 1`` tokens are returned, the
        token that follows the last one must still be chosen.
        """
        following = self.feed[1 : count + 1]
        self.feed = self.feed[count:]
        return following

    def choice(self) -> Choice:
        """Settings for the choice of the next token."""
        return Choice(self.row.temperature, self.noise, self._allowed, self.row.sparse)

    def take(self, token: int) -> None:
        """Append a chosen token."""
        self._append(token)
        self._look_ahead()

    def _append(self, token: int) -> None:
        self.feed.append(token)
        if token in self._stops:
            self.end = token
        else:
            self.ids.append(token)
        self._final = self.end is not None or len(self.ids) >= self.row.max_tokens
        if self._cursor is not None and not self._final:
            self._cursor.take(token)

    def _look_ahead(self) -> None:
        while self._cursor is not None and not self._final:
            self._allowed = self._cursor.allowed()
            if isinstance(self._allowed, Tensor) or len(self._allowed) != 1:
                return
            if self.noise is not None and not self.row.sparse:
                # What a row draws for a token does not depend on which tokens before it were free.
                torch.rand(self._words, generator=self.noise, device=self.noise.device)
            self._append(self._allowed[0])


def generate(
    setting: Setting, rows: Sequence[Row], stops: Collection[int], *, same_in_any_batch: bool
) -> list[Continuation]:
    """Continue every row; usually one forward per new token for the whole batch.

    Rows may have different lengths. The tokens ``stops`` end a row. With ``same_in_any_batch``,
    the tokens of a row do not depend on the other rows: if two tokens have nearly equal scores, a
    forward pass of this row alone decides.
    """
    network, routing = setting.network, setting.routing
    here, logits, cache, attention = prefill(setting, [row.prompt for row in rows])
    gaps = gaps_allowed(network, cache)
    states = [_State(row, stops, network.device, logits.shape[2]) for row in rows]
    read = [1] * len(rows)
    lengths = attention.sum(1).tolist()
    while True:
        alone = partial(_logits_alone, setting, here, states) if same_in_any_batch else None
        _advance(logits, [states[k] for k in here], read, alone)
        unfinished = [at for at, k in enumerate(here) if states[k].readable]
        if not unfinished:
            return [Continuation(s.ids, s.logprob, s.end) for s in states]
        if 2 * len(unfinished) <= len(here):  # removing fewer rows saves less than the copy costs
            kept = torch.tensor(unfinished, device=network.device)
            cache.select_rows(kept)
            attention = attention[kept]
            here, lengths = [here[at] for at in unfinished], [lengths[at] for at in unfinished]
            routing.select_rows(here)
        now = [states[k] for k in here]
        # Rows that read fewer tokens than others are padded between their tokens.
        span = _span([state.readable for state in now], setting.cost) if gaps else 1
        read = [min(state.readable, span) for state in now]
        feed = [state.feed[:count] for state, count in zip(now, read, strict=True)]
        begin = [length + state.row.shift for length, state in zip(lengths, now, strict=True)]
        ids, added, positions = _next_tokens(feed, begin, span, setting.pad_id, network.device)
        attention = torch.cat([attention, added], dim=1)
        lengths = [length + count for length, count in zip(lengths, read, strict=True)]
        logits = forward(network, ids, attention, positions, cache, span)


def _advance(
    logits: Tensor,
    states: Sequence[_State],
    read: Sequence[int],
    alone: Callable[[int], Tensor] | None,
) -> None:
    """Choose the next tokens, and add up log-probabilities.

    ``logits``: ``[rows, tokens, words]``, of the tokens that were read, aligned at the end;
    ``read``: how many tokens of each row; ``alone``: if given, the logits of one row alone decide
    close choices.
    """
    span = logits.shape[1]
    known: list[tuple[int, int, int]] = []  # row, place, token
    choosing: list[int] = []
    for at, (state, count) in enumerate(zip(states, read, strict=True)):
        following = state.read(count) if count else []
        known += [(at, span - count + k, token) for k, token in enumerate(following)]
        if len(following) < count:
            choosing.append(at)
    places = [(at, place) for at, place, _ in known] + [(at, span - 1) for at in choosing]
    if not places:
        return
    if span == 1 and len(places) == len(states) and not known:
        used = logits[:, 0]
    else:
        index = torch.tensor(places, device=logits.device)
        used = logits[index[:, 0], index[:, 1]]
    tokens = torch.tensor([token for *_, token in known], dtype=torch.long, device=used.device)
    if choosing:
        choices = [states[at].choice() for at in choosing]
        own = None if alone is None else lambda k: alone(choosing[k])
        tokens = torch.cat([tokens, choose(used[len(known) :], choices, own)])
    gains = used.gather(1, tokens[:, None])[:, 0] - used.logsumexp(1)
    owners = [at for at, *_ in known] + choosing
    both = torch.stack([tokens.double(), gains.double()]).tolist()
    for k, (at, token, gain) in enumerate(zip(owners, *both, strict=True)):
        states[at].logprob += gain
        if k >= len(known):
            states[at].take(int(token))


def _logits_alone(
    setting: Setting, here: Sequence[int], states: Sequence[_State], at: int
) -> Tensor:
    """The logits of the next token of one row of a batch, ``[words]``, from a forward of this row
    alone."""
    network, state = setting.network, states[here[at]]
    ids = torch.tensor([state.row.prompt + state.ids], device=network.device)
    positions = torch.arange(ids.shape[1], device=ids.device)[None]
    setting.routing.select_rows([here[at]])
    try:
        cache = KVCache(network.config)
        return forward(network, ids, torch.ones_like(ids), positions, cache)[0, -1]
    finally:
        setting.routing.select_rows(here)


def _span(readable: Sequence[int], cost: int) -> int:
    """Number of tokens per row to read next: the most useful tokens per unit of time."""
    return max(
        sorted(set(readable) - {0}),
        key=lambda span: (
            sum(min(span, count) for count in readable) / (cost + span * len(readable))
        ),
    )


def _next_tokens(
    feed: Sequence[list[int]], lengths: Sequence[int], span: int, pad_id: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, mask and positions of a forward, ``[rows, span]``, padded on the left."""
    ids = [[pad_id] * (span - len(tokens)) + tokens for tokens in feed]
    mask = [[0] * (span - len(tokens)) + [1] * len(tokens) for tokens in feed]
    positions = [
        [max(0, length + place - (span - len(tokens))) for place in range(span)]
        for tokens, length in zip(feed, lengths, strict=True)
    ]
    whole = torch.tensor([ids, mask, positions], device=device)
    return whole[0], whole[1], whole[2]
