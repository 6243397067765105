"""Examples as token ids, in padded batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable

Item = TypeVar("Item")

Row = tuple[list[int], list[int]]
"""Token ids of a prompt and of the reply to it."""


class Batch(NamedTuple):
    """Rows padded on the right; each tensor ``[B, T]`` of int64."""

    ids: Tensor
    attention_mask: Tensor
    """1 for the tokens of prompt and reply, 0 for padding."""
    reply_mask: Tensor
    """1 for the tokens of the reply, 0 for all others."""

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


def lengths_of(rows: Sequence[Row]) -> list[int]:
    """Number of tokens of each row."""
    return [len(prompt) + len(reply) for prompt, reply in rows]


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


def full_batches(
    items: Iterable[Item], length: Callable[[Item], int], room: int
) -> list[list[Item]]:
    """Batches of all items, shortest first, with at most ``room`` tokens each, padding included. An
    item that is longer forms a separate batch."""
    batches: list[list[Item]] = []
    for item in sorted(items, key=length):
        if not batches or length(item) * (len(batches[-1]) + 1) > room:
            batches.append([])
        batches[-1].append(item)
    return batches


def micro_batches(lengths: Sequence[int], sides: Sequence[int], limit: int) -> list[list[int]]:
    """Divide a batch so that each part, padded, has at most ``limit`` tokens.

    Args:
        lengths: tokens of the longest row of each example.
        sides: rows of each example, 1 or 2, which stay together.
        limit: tokens of one forward, padding included. A longer example forms a separate part.

    Returns:
        Positions of the examples; one part in the given order if the whole batch fits.
    """
    if sum(sides) * max(lengths, default=0) <= limit:
        return [list(range(len(lengths)))]
    parts: list[list[int]] = []
    rows = 0
    for k in sorted(range(len(lengths)), key=lengths.__getitem__):
        if parts and (rows + sides[k]) * lengths[k] <= limit:
            parts[-1].append(k)
            rows += sides[k]
        else:
            parts.append([k])
            rows = sides[k]
    return parts


class Example(NamedTuple):
    """A usable example as token ids."""

    chosen: Row
    """The chosen reply of a pair, or a scored reply."""
    rejected: Row | None
    weight: float
    """The weight of a pair, or the advantage of a reply."""
    said: float | None = None
    """Log-probability (nats) of a stale reply under the acting weights. ``None``: it is computed
    with the weights at the start of the update."""

    @property
    def sides(self) -> int:
        """Number of rows of the example."""
        return 1 if self.rejected is None else 2

    @property
    def longest(self) -> int:
        """Number of tokens of the longest row."""
        return max(
            lengths_of([self.chosen] if self.rejected is None else [self.chosen, self.rejected])
        )


def encode_pairs(
    model: Trainable,
    pairs: Sequence[PreferencePair],
    *,
    both: bool,
    unique: bool,
    unparsed: bool = False,
    adapter: str | None = None,
) -> list[Example]:
    """The pairs with positive weight: with ``both``, both sides if there are two; otherwise only
    the chosen replies.

    With ``unique``, each prompt with its chosen reply is used once: the first pair that has a
    rejected side, or else the first one. With ``unparsed``, replies
    without a valid action may be rejected sides too. ``adapter``: the adapter in training.
    """
    encode = _encoder(model, adapter)
    found: list[Example] = []
    places: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    for pair in pairs:
        if pair.weight <= 0:
            continue
        chosen = encode(pair.decision, pair.chosen_text)
        known = both and (unparsed or pair.rejected is not None)
        against = pair.rejected_text if known else None
        place = len(found)
        if unique:
            place = places.setdefault((tuple(chosen[0]), tuple(chosen[1])), place)
        if place == len(found) or (against is not None and found[place].rejected is None):
            rejected = None if against is None else encode(pair.decision, against)
            found[place : place + 1] = [Example(chosen, rejected, pair.weight)]
    return found


def encode_replies(
    model: Trainable,
    replies: Sequence[ScoredReply],
    *,
    unparsed: bool = False,
    adapter: str | None = None,
) -> list[Example]:
    """All replies, as the tokens that were sampled. Repeated ones are kept, because the policy
    gradient weights by frequency. ``unparsed``: also those without a valid action.

    Raises:
        ConfigError: a stale reply has no recorded log-probability.
    """
    lacking = next((r for r in replies if r.staleness and r.logprob is None), None)
    if lacking is not None:
        raise ConfigError(
            f"method 'pg' with staleness: the reply {lacking.text[:60]!r} of '{lacking.node}' has "
            "no recorded log-probability; use a model that reports them, or staleness=0"
        )
    encode = _encoder(model, adapter)
    found: list[Example] = []
    for each in replies:
        if each.reply is None and not unparsed:
            continue
        prompt, ids = encode(each.decision, each.text)
        said = each.logprob if each.staleness else None
        found.append(Example((prompt, list(each.sampled) or ids), None, each.advantage, said))
    return found


def _encoder(model: Trainable, adapter: str | None) -> Callable[[Decision, str], Row]:
    """:meth:`Trainable.encode` for one adapter. Models of the version before take no adapter."""
    if "adapter" in signature(model.encode).parameters:
        return partial(model.encode, adapter=adapter)
    return model.encode
