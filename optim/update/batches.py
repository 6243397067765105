"""Examples as token ids, in padded batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable

Row = tuple[list[int], list[int]]
"""Token ids of a prompt and of the reply to it."""


class Batch(NamedTuple):
    """Rows padded on the right; each tensor ``[B, T]`` of int64."""

    ids: Tensor
    attention_mask: Tensor
    """1 on prompt and reply."""
    reply_mask: Tensor
    """1 on the reply's tokens."""

    def to(self, device: torch.device) -> Batch:
        return Batch(*(tensor.to(device) for tensor in self))


def pad(rows: Sequence[Row], pad_id: int) -> Batch:
    """One batch of at least one row."""
    marks = [[0] * len(prompt) + [1] * len(reply) for prompt, reply in rows]
    return Batch(
        pad_sequence([torch.tensor(prompt + reply) for prompt, reply in rows], True, pad_id),
        pad_sequence([torch.ones(len(mark), dtype=torch.long) for mark in marks], True),
        pad_sequence([torch.tensor(mark) for mark in marks], True),
    )


def schedule(
    lengths: Sequence[int], *, steps: int, batch_size: int, rng: random.Random
) -> list[list[int]]:
    """The rows of each of ``steps`` batches, chosen so that there is little padding.

    The rows are shuffled passes over all rows, up to ``steps * batch_size``, so all rows are used
    about equally often. They are sorted by length plus random noise below 6 tokens, split
    into batches, and the batches are shuffled.
    """
    wanted = steps * batch_size
    rows: list[int] = []
    while len(rows) < wanted and lengths:
        once = list(range(len(lengths)))
        rng.shuffle(once)
        rows += once
    rows = sorted(rows[:wanted], key=lambda row: lengths[row] + rng.random() * 6.0)
    batches = [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]
    rng.shuffle(batches)
    return batches


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Batches of all rows, shortest first, for passes in which the order does not matter."""
    rows = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]


@dataclass(slots=True)
class Encoded:
    """The usable examples, each list as long as the others."""

    chosen: list[Row] = field(default_factory=list)
    """The chosen replies of pairs, or the replies where there are no pairs."""
    rejected: list[Row | None] = field(default_factory=list)
    """``None``: the example has no rejected reply."""
    weights: list[float] = field(default_factory=list)
    """Of pairs; advantages of replies."""

    @property
    def lengths(self) -> list[int]:
        """Tokens of each chosen row."""
        return [len(prompt) + len(reply) for prompt, reply in self.chosen]


def encode_pairs(
    model: Trainable, pairs: Sequence[PreferencePair], *, both: bool, unique: bool
) -> Encoded:
    """Pairs of positive weight: ``both`` sides where there are two, or the chosen replies only.

    With ``unique`` each prompt with its chosen reply is used once.
    """
    out = Encoded()
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for pair in pairs:
        if pair.weight <= 0:
            continue
        row = model.encode(pair.decision, pair.chosen.json())
        key = (tuple(row[0]), tuple(row[1]))
        if unique and key in seen:
            continue
        seen.add(key)
        out.chosen.append(row)
        out.weights.append(pair.weight)
        against = pair.rejected if both else None
        out.rejected.append(
            None if against is None else model.encode(pair.decision, against.json())
        )
    return out


def encode_replies(model: Trainable, replies: Sequence[ScoredReply]) -> Encoded:
    """All replies. Repeated ones are kept, because the policy gradient weights by frequency."""
    return Encoded(
        chosen=[model.encode(r.decision, r.reply.json()) for r in replies],
        rejected=[None] * len(replies),
        weights=[r.advantage for r in replies],
    )
