"""Batched decoding with a cache, optionally held to a grammar, sampled by a seed of each row's own.

Kept apart from transformers' ``generate`` for three reasons: each row has its own temperature,
seed and grammar; a row's sample must not depend on what else is in the batch; and with a tiny
model most of ``generate``'s time is bookkeeping.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from swarm_ui.nodes.codec import Trie

MAX_FREE_WORDS = 8


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence to continue."""

    prompt: list[int]
    temperature: float
    """0 is greedy."""
    seed: int
    max_tokens: int
    grammar: Trie | None = None
    """``None``: any token."""
    free: tuple[int, ...] = ()
    """Tokens a free text may use, where the grammar says that one follows."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """What a row became."""

    ids: list[int]
    """New tokens, without the end token."""
    logprob: float
    """Sum over the new tokens (end token included) under the unconstrained model at
    temperature 1, nats."""


class _Cursor:
    """Where a row stands in its grammar."""

    def __init__(self, row: Row, eos_id: int) -> None:
        self._at: Trie | None = row.grammar
        self._bound = row.grammar is not None
        self._free = row.free
        self._eos = eos_id
        self._typed = -1
        """Words of free text so far; -1 before it begins."""

    def allowed(self) -> list[int] | None:
        """Tokens that may follow; ``None``: any."""
        if not self._bound:
            return None
        if self._at is not None:
            return list(self._at)
        if self._typed == 0:
            return list(self._free) or [self._eos]
        return [*self._free, self._eos] if self._typed < MAX_FREE_WORDS else [self._eos]

    def advance(self, token: int) -> None:
        if not self._bound:
            return
        if self._at is None:
            self._typed += 1
            return
        self._at = self._at[token]
        if self._at is None:
            self._typed = 0


@torch.inference_mode()
def generate(
    network: nn.Module, rows: Sequence[Row], *, pad_id: int, eos_id: int
) -> list[Continuation]:
    """Continue every row; one forward a new token for the whole batch.

    Args:
        network: a transformers causal language model in eval mode (adapters already routed).
        rows: any lengths; padded on the left here.
    """
    ids, attention = _left_padded(rows, pad_id)
    cursors = [_Cursor(row, eos_id) for row in rows]
    noise = [
        torch.Generator().manual_seed(row.seed) if row.temperature > 0 else None for row in rows
    ]
    new: list[list[int]] = [[] for _ in rows]
    logprobs = [0.0] * len(rows)
    open_rows = set(range(len(rows)))
    cache, step_ids = None, ids
    for _ in range(max(row.max_tokens for row in rows)):
        positions = attention.cumsum(1)[:, -step_ids.shape[1] :].clamp(min=1) - 1
        output = network(
            input_ids=step_ids,
            attention_mask=attention,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        cache, logits = output.past_key_values, output.logits[:, -1].float()
        chosen = _choose(logits, rows, cursors, noise, open_rows, eos_id)
        picked = torch.tensor(chosen)
        gained = logits.log_softmax(-1).gather(1, picked[:, None])[:, 0].tolist()
        for i in list(open_rows):
            logprobs[i] += gained[i]
            cursors[i].advance(chosen[i])
            if chosen[i] != eos_id:
                new[i].append(chosen[i])
            if chosen[i] == eos_id or len(new[i]) >= rows[i].max_tokens:
                open_rows.discard(i)
        if not open_rows:
            break
        step_ids = picked[:, None]
        attention = torch.cat([attention, torch.ones_like(attention[:, :1])], dim=1)
    return [Continuation(n, p) for n, p in zip(new, logprobs, strict=True)]


def _choose(
    logits: Tensor,
    rows: Sequence[Row],
    cursors: Sequence[_Cursor],
    noise: Sequence[torch.Generator | None],
    open_rows: set[int],
    eos_id: int,
) -> list[int]:
    """Next token of each row: the best allowed one, after Gumbel noise where it is sampled."""
    masked = logits.clone()
    for i, row in enumerate(rows):
        if i not in open_rows:
            continue
        generator = noise[i]
        if generator is not None:
            uniform = torch.rand(logits.shape[1], generator=generator).clamp_(1e-9, 1 - 1e-7)
            masked[i] = masked[i] / row.temperature - torch.log(-torch.log(uniform))
        allowed = cursors[i].allowed()
        if allowed is not None:
            keep = masked[i, allowed]
            masked[i] = -torch.inf
            masked[i, allowed] = keep
    best: list[int] = masked.argmax(-1).tolist()
    return [token if i in open_rows else eos_id for i, token in enumerate(best)]


def _left_padded(rows: Sequence[Row], pad_id: int) -> tuple[Tensor, Tensor]:
    longest = max(len(row.prompt) for row in rows)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    attention = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, longest - len(row.prompt) :] = torch.tensor(row.prompt)
        attention[i, longest - len(row.prompt) :] = 1
    return ids, attention
