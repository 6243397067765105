"""Token rows as padded batches, rows of like length together."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

Row = tuple[list[int], list[int]]
"""Token ids of a prompt with its reply, and as many marks: 1 on the reply's tokens."""


class Batch(NamedTuple):
    """Rows padded on the right; each tensor ``[B, T]`` of int64."""

    ids: Tensor
    marks: Tensor

    def to(self, device: torch.device) -> Batch:
        return Batch(self.ids.to(device), self.marks.to(device))


def pad(rows: Sequence[Row], pad_id: int) -> Batch:
    """One batch of at least one row."""
    return Batch(
        pad_sequence([torch.tensor(ids) for ids, _ in rows], True, pad_id),
        pad_sequence([torch.tensor(marks) for _, marks in rows], True),
    )


def reply_logprobs(network: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Log-probability (nats) of each row's reply, and its number of tokens; both ``[B]``.

    Needs no attention mask: the padding is on the right, where a causal model does not look.
    """
    wanted = batch.marks[:, 1:]
    # Logits before the earliest reply of the batch would cost much and say nothing.
    first = int(wanted.any(0).int().argmax())
    keep = wanted.shape[1] - first
    output = network(input_ids=batch.ids[:, :-1], use_cache=False, logits_to_keep=keep)
    gained = output.logits.float().log_softmax(-1)
    taken = gained.gather(-1, batch.ids[:, 1 + first :, None])[..., 0]
    marks = wanted[:, first:].to(taken.dtype)
    return (taken * marks).sum(1), marks.sum(1)


def schedule(
    lengths: Sequence[int], *, steps: int, batch_size: int, rng: random.Random, jitter: float = 6.0
) -> list[list[int]]:
    """Which rows each of ``steps`` batches holds, so that a batch wastes little padding.

    Every row is used about equally often: whole shuffled passes, cut at ``steps * batch_size``.
    The rows are then sorted by length, blurred by ``jitter`` tokens, cut into batches, and the
    batches shuffled.
    """
    wanted = steps * batch_size
    rows: list[int] = []
    while len(rows) < wanted and lengths:
        once = list(range(len(lengths)))
        rng.shuffle(once)
        rows += once
    rows = sorted(rows[:wanted], key=lambda row: lengths[row] + rng.random() * jitter)
    batches = [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]
    rng.shuffle(batches)
    return batches


def by_length(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Every row once, shortest first, in batches: for passes whose order does not matter."""
    rows = sorted(range(len(lengths)), key=lengths.__getitem__)
    return [rows[at : at + batch_size] for at in range(0, len(rows), batch_size)]
