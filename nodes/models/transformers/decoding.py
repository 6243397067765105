"""Rows of a batch while they are continued, and the choice of their next tokens.

transformers' ``generate`` is not used: each row has its own temperature, seed and grammar; a row's
sample must not depend on the others; and with a tiny model most of its time is overhead.

**Tokens without an alternative.** If a grammar allows only one token, the network has no choice.
Such tokens (the rest of a label, an index, the end) are processed together with the token before
them in one forward pass, which also gives their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

CLOSE = 1e-3
"""Difference of two logits below which the choice between them is close. Other rows in the batch,
and padding, change float32 logits of small models by some 1e-6."""

Allowed = Sequence[int] | Tensor
"""The tokens that may come next: a few ids, or a boolean tensor ``[vocabulary]`` on the device of
the logits."""


class Grammar(Protocol):
    """Restricts replies, and a position in one. Many rows may begin with one at the same time."""

    def begin(self) -> Grammar:
        """The position before the first token of a reply."""
        ...

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
    temperature: float
    """Sampling temperature; with 0, the most probable token is chosen."""
    seed: int
    max_tokens: int
    grammar: Grammar | None = None
    """The grammar that restricts the tokens; ``None``: any token is allowed."""
    sparse: bool = True
    """Whether noise is drawn for the allowed tokens only, if they are listed: suitable for large
    vocabularies; the samples differ."""


class OneReply:
    """The :class:`Grammar` of a reply whose tokens are known, which is scored and not chosen."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids

    def begin(self) -> OneReply:
        return OneReply(self._ids)

    def allowed(self) -> Allowed:
        return self._ids[:1]

    def take(self, token: int) -> None:
        self._ids = self._ids[1:]


class Continuation:
    """A row while it is continued, and its new tokens afterwards.

    ``feed`` are tokens that are known and not yet read by the network. All but the first were
    allowed without an alternative, and their log-probabilities come when the one before is read.
    """

    def __init__(self, row: Row, stops: Collection[int], device: torch.device, words: int) -> None:
        """``words``: number of tokens of the vocabulary."""
        self.row, self._stops, self._words = row, stops, words
        sampled = row.temperature > 0
        self.noise = torch.Generator(device).manual_seed(row.seed) if sampled else None
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
        self._cursor = None if row.grammar is None else row.grammar.begin()
        self._final = False  # whether nothing is to be chosen any more
        self.feed = [row.prompt[-1]]  # the network reads it with the prompt
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

    @property
    def heat(self) -> float:
        """What divides the scores before the choice."""
        return self.row.temperature or 1.0

    @property
    def listed(self) -> list[int] | None:
        """The only tokens for which noise is drawn, in order; ``None``: for all."""
        if not self.row.sparse or self.allowed is None or isinstance(self.allowed, Tensor):
            return None
        return sorted(self.allowed)

    def read(self, count: int) -> list[int]:
        """Note that the network has read the first ``count`` tokens of ``feed``; return the token
        that follows each of them, but for the last one if it must still be chosen."""
        following = self.feed[1 : count + 1]
        self.feed = self.feed[count:]
        return following

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
            self.allowed = self._cursor.allowed()
            if isinstance(self.allowed, Tensor) or len(self.allowed) != 1:
                return
            if self.noise is not None and not self.row.sparse:
                # What a row draws for a token does not depend on which tokens before it were free.
                torch.rand(self._words, generator=self.noise, device=self.noise.device)
            self._append(self.allowed[0])


def choose(
    logits: Tensor, rows: Sequence[Continuation], alone: Callable[[int], Tensor] | None = None
) -> Tensor:
    """The best allowed token of each row, ``[rows]``, by ``logits``, ``[rows, vocabulary]``.
    Sampled rows get Gumbel noise first. ``alone`` gives the logits of one row without the others,
    for rows in which the best two tokens are close, so that no choice depends on the batch."""
    scores, place = logits.clone(), logits.device
    sampled = {k: row.listed for k, row in enumerate(rows) if row.noise is not None}
    whole = [k for k, ids in sampled.items() if ids is None]
    noise = torch.empty(len(whole), logits.shape[1], device=place)
    if whole:
        for at, k in enumerate(whole):
            torch.rand(noise.shape[1], generator=rows[k].noise, out=noise[at])
        heat = torch.tensor([rows[k].heat for k in whole], device=place)
        scores[whole] = scores[whole] / heat[:, None] - _gumbel_(noise)
    for k, ids in sampled.items():
        if ids is not None and len(ids) > 1:
            drawn = torch.rand(len(ids), generator=rows[k].noise, device=place)
            scores[k, ids] = scores[k, ids] / rows[k].heat - _gumbel_(drawn)
    scores = _restricted(scores, rows)
    best = scores.argmax(-1)
    if alone is not None:
        first, second = scores.topk(2).values.unbind(1)
        gap = (first - second) * torch.tensor([row.heat for row in rows], device=place)
        drawn_for = dict(zip(whole, noise, strict=True))
        for k in (gap < CLOSE).nonzero()[:, 0].tolist():
            own = alone(k)
            if k in drawn_for:
                own = own / rows[k].heat - drawn_for[k]
            best[k] = own.masked_fill(scores[k].isneginf(), -torch.inf).argmax()
    return best


def _restricted(scores: Tensor, rows: Sequence[Continuation]) -> Tensor:
    """The scores, with those of tokens that are not allowed at minus infinity."""
    bound = [(k, row.allowed) for k, row in enumerate(rows) if row.allowed is not None]
    if not bound:
        return scores
    few = [(k, ids) for k, ids in bound if not isinstance(ids, Tensor)]
    places = torch.tensor([k for k, ids in few for _ in ids], dtype=torch.long)
    to = torch.tensor([token for _, ids in few for token in ids], dtype=torch.long)
    places, to = places.to(scores.device), to.to(scores.device)
    masked = scores.clone()
    masked[[k for k, _ in bound]] = -torch.inf
    masked[places, to] = scores[places, to]
    for k, allowed in bound:
        if isinstance(allowed, Tensor):
            torch.where(allowed, scores[k], masked[k], out=masked[k])
    return masked


def _gumbel_(uniform: Tensor) -> Tensor:
    """The logarithm of exponential noise, in place: Gumbel noise with its sign changed."""
    return uniform.clamp_(1e-9, 1 - 1e-7).log_().neg_().log_()
