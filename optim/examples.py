"""Examples of an update: preference pairs as token ids, in batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from swarm_ui.errors import ConfigError
from swarm_ui.model import Decision
from swarm_ui.optim.preferences import PreferencePair

Item = TypeVar("Item")
Row = tuple[list[int], list[int]]
"""Token ids of a prompt and of the reply to it."""


@runtime_checkable
class Trainable(Protocol):
    """A causal language model with named LoRA adapters, in this process, in evaluation mode outside
    :meth:`activate`. Unless its attribute ``encodes_text`` is true, it encodes only replies that
    hold a valid action."""

    @property
    def module(self) -> nn.Module: ...
    @property
    def adapters(self) -> tuple[str, ...]: ...
    @property
    def pad_id(self) -> int: ...
    def add_adapter(self, name: str, rank: int = 16, alpha: float | None = None) -> None:
        """Add an adapter that initially changes nothing."""

    def adapter_parameters(self, name: str) -> list[nn.Parameter]:
        """In the same order for all adapters of one shape."""

    def activate(self, name: str) -> AbstractContextManager[object]:
        """A context in which only this adapter is active, and the module is in training mode."""

    def encode(self, decision: Decision, reply: str, *, adapter: str | None = None) -> Row:
        """Token ids of the prompt and of a reply with its end token, exactly as the policy with
        this adapter gets and generates them."""

    def forward_logprobs(
        self, ids: Tensor, attention_mask: Tensor, reply_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) of each token of replies under the active adapter, ``[B, c]`` for
        the last ``c`` columns of ``ids`` and 0 outside of the reply; and the number of the reply's
        tokens, ``[B]``. ``ids``, ``[B, T]``, are prompt, reply and padding."""

    def save_adapters(self, folder: Path) -> object: ...
    def load_adapters(self, folder: Path) -> object:
        """Load the files of :meth:`save_adapters`, including versions."""


class Example(NamedTuple):
    """A usable example as token ids."""

    adapter: str
    """The adapter that learns from it."""
    chosen: Row
    """The chosen reply of a pair, or the one reply."""
    rejected: Row | None = None
    weight: float = 1.0
    """The weight of a pair, or the advantage of a reply."""
    reference: tuple[float, float] = (0.0, 0.0)
    """Log-probability (nats) of the chosen and of the rejected reply under the reference."""
    by_token: tuple[float, ...] = ()
    """Log-probability (nats) of each token of the chosen reply under the reference."""

    @property
    def rows(self) -> list[Row]:
        """The chosen and the rejected reply, if there is one."""
        return [self.chosen] if self.rejected is None else [self.chosen, self.rejected]


class Batch(tuple[Example, ...]):
    """The examples of one optimiser step, or a part of them; losses divide by the ``whole``."""

    whole: tuple[Example, ...]

    def __new__(cls, examples: Iterable[Example], whole: Iterable[Example] | None = None) -> Self:
        made = super().__new__(cls, examples)
        made.whole = tuple(made if whole is None else whole)
        return made

    def parts(self, tokens: int) -> list[Batch]:
        """Micro-batches of at most ``tokens`` tokens each, padding included; a longer example is
        alone. The two sides of a pair stay together."""

        def longest(example: Example) -> int:
            return max(map(_length, example.rows))

        parts = full_batches(self, longest, tokens, rows=lambda e: len(e.rows))
        return [Batch(part, self.whole) for part in parts]


def _length(row: Row) -> int:
    return len(row[0]) + len(row[1])


def reply_logprobs(model: Trainable, rows: Sequence[tuple[str, Row]]) -> Tensor:
    """Log-probability (nats) of each reply under the adapter that comes with it, ``[rows]``, with
    gradient. There is one forward for each adapter."""
    return token_logprobs(model, rows).sum(1)


def token_logprobs(
    model: Trainable, rows: Sequence[tuple[str, Row]], *, dropout: bool = True
) -> Tensor:
    """As :func:`reply_logprobs`, of each token, ``[rows, longest reply]``; 0 after the end."""
    training = model.module.training
    names = list(dict.fromkeys(adapter for adapter, _ in rows))
    found: dict[int, Tensor] = {}
    for name in names:
        own = [k for k, (adapter, _) in enumerate(rows) if adapter == name]
        with model.activate(name):
            if not dropout:
                model.module.eval()
            found |= zip(own, _forward(model, [rows[k][1] for k in own]), strict=True)
    model.module.train(training)
    if len(names) > 1:  # whichever adapter was active last, the gradient reaches all
        for parameter in (p for name in names for p in model.adapter_parameters(name)):
            parameter.requires_grad_(True)
    return pad_sequence([found[k] for k in range(len(rows))], True)


def _forward(model: Trainable, rows: Sequence[Row]) -> list[Tensor]:
    device = next(model.module.parameters()).device
    marks = [[0] * len(prompt) + [1] * len(reply) for prompt, reply in rows]
    ids = pad_sequence([torch.tensor([*a, *b]) for a, b in rows], True, model.pad_id)
    attention = pad_sequence([torch.ones(len(m), dtype=torch.long) for m in marks], True)
    replies = pad_sequence([torch.tensor(mark) for mark in marks], True)
    batch = (tensor.to(device) for tensor in (ids, attention, replies))
    tokens = model.forward_logprobs(*batch)[0]
    start = ids.shape[1] - tokens.shape[1]  # the column of `ids` of the first one in `tokens`
    return [
        found[len(prompt) - start : len(prompt) - start + len(reply)]
        for found, (prompt, reply) in zip(tokens, rows, strict=True)
    ]


def encode(
    model: Trainable,
    pairs: Sequence[PreferencePair],
    adapter: str | None = None,
    *,
    rejected: bool = True,
) -> list[Example]:
    """Pairs as token ids. Raises ``ConfigError`` if the model has no such adapter.

    Those without a positive weight are left out. Of pairs with equal adapter, prompt and chosen
    reply the first one that has a rejected reply is used, or else the first one. Replies with an
    advantage are the sampled tokens, and all are kept: a policy gradient weights by frequency. A
    model that cannot write any text learns only from replies with a valid action.

    Args:
        adapter: the adapter that learns from all of them; ``None``: that with the node's name.
        rejected: whether the rejected replies of pairs are used.
    """
    found: list[Example] = []
    places: dict[tuple[object, ...], int] = {}
    any_text = bool(getattr(model, "encodes_text", False))
    for each in pairs:
        name = adapter or each.node
        if name not in model.adapters:
            raise ConfigError(
                f"no adapter '{name}' learns from the examples of '{each.node}'; the model has: "
                f"{', '.join(model.adapters) or 'none'}. Add one, or name the adapter"
            )
        if each.weight <= 0 or not (any_text or each.chosen is not None):
            continue
        prompt, ids = model.encode(each.decision, each.chosen_text, adapter=name)
        if each.advantage is not None:
            row = prompt, list(each.sampled) or ids
            found.append(Example(name, row, None, each.advantage))
            continue
        against = each.rejected_text if rejected and (any_text or each.rejected) else None
        place = places.setdefault((name, tuple(prompt), tuple(ids)), len(found))
        if place == len(found) or (against is not None and found[place].rejected is None):
            other = None
            if against is not None:
                other = model.encode(each.decision, against, adapter=name)
            found[place : place + 1] = [Example(name, (prompt, ids), other, each.weight)]
    return found


@torch.no_grad()
def with_reference(
    model: Trainable,
    examples: Sequence[PreferencePair] | Sequence[Example],
    *,
    tokens: int = 65_536,
) -> list[Example]:
    """The examples with their log-probabilities under the reference: each adapter as it is now.
    Pairs are encoded first. ``tokens``: the maximum of one forward, padding included."""
    given: Any = examples
    if not all(isinstance(e, Example) for e in examples):
        given = encode(model, given)
    now: dict[tuple[int, int], tuple[float, ...]] = {}
    places = [(k, side) for k, e in enumerate(given) for side in range(len(e.rows))]
    for part in full_batches(places, lambda at: _length(given[at[0]].rows[at[1]]), tokens):
        rows = [(given[k].adapter, given[k].rows[side]) for k, side in part]
        found = token_logprobs(model, rows, dropout=False).tolist()
        for at, (_, row), values in zip(part, rows, found, strict=True):
            now[at] = tuple(values[: len(row[1])])
    return [
        e._replace(reference=(sum(now[k, 0]), sum(now.get((k, 1), ()))), by_token=now[k, 0])
        for k, e in enumerate(given)
    ]


# -- batches ----------------------------------------------------------------------------------


def minibatches(
    examples: Sequence[Example], size: int, steps: int, rng: random.Random | None = None
) -> list[Batch]:
    """A batch for each of ``steps`` optimiser steps, or none: shuffled passes over all examples,
    grouped by length plus noise below 6 tokens, so that there is little padding."""
    rng = rng or random.Random(0)
    return [Batch([examples[k] for k in rows]) for rows in schedule(examples, size, steps, rng)]


def schedule(
    examples: Sequence[Example], size: int, steps: int, rng: random.Random
) -> list[list[int]]:
    """The positions of the examples of each batch."""
    wanted = steps * size
    rows: list[int] = []
    while len(rows) < wanted and examples:
        once = list(range(len(examples)))
        rng.shuffle(once)
        rows += once
    rows = sorted(rows[:wanted], key=lambda k: _length(examples[k].chosen) + rng.random() * 6.0)
    batches = [rows[at : at + size] for at in range(0, len(rows), size)]
    rng.shuffle(batches)
    return batches


def full_batches(
    items: Iterable[Item],
    length: Callable[[Item], int],
    room: int,
    *,
    rows: Callable[[Item], int] = lambda item: 1,
) -> list[list[Item]]:
    """Batches of all items, shortest first, with at most ``room`` tokens each, padding included. An
    item that is longer forms a separate batch. ``rows``: how many rows of its length an item is."""
    batches, used = list[list[Item]](), 0
    for item in sorted(items, key=length):
        used += rows(item)
        if not batches or length(item) * used > room:
            batches.append([])
            used = rows(item)
        batches[-1].append(item)
    return batches
