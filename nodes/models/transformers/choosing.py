"""Chooses the next token of each row on the device of the logits, among those that are allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

CLOSE = 1e-3
"""Difference of two logits below which the choice between them is close. Other rows in the batch,
and padding, change float32 logits of small models by some 1e-6."""

Allowed = Sequence[int] | Tensor
"""The tokens that may come next: a few ids, or a boolean tensor ``[vocabulary]`` on the device of
the logits."""


class Cursor(Protocol):
    """A position in a grammar."""

    def allowed(self) -> Allowed:
        """The tokens that may come next, at least one."""
        ...

    def take(self, token: int) -> None:
        """Append an allowed token that does not end the reply."""
        ...


class Grammar(Protocol):
    """Restricts replies. Many rows may use one grammar at the same time."""

    def begin(self) -> Cursor:
        """The position before the first token of a reply."""
        ...


class Choice(NamedTuple):
    """Settings for the choice of a row's next token."""

    temperature: float
    """Sampling temperature; with 0, the most probable token is chosen."""
    noise: torch.Generator | None
    """Generator for sampling, on the device of the logits; ``None``: greedy."""
    allowed: Allowed | None
    """The tokens to choose from; ``None``: any token."""
    sparse: bool
    """Whether noise is drawn for the allowed tokens only, if they are a few ids. This is cheaper
    for large vocabularies, and gives other samples."""

    @property
    def few(self) -> bool:
        """Whether noise is drawn for the allowed tokens only."""
        return self.sparse and self.allowed is not None and not isinstance(self.allowed, Tensor)


def choose(
    logits: Tensor, choices: Sequence[Choice], alone: Callable[[int], Tensor] | None = None
) -> Tensor:
    """The best allowed token of each row. Sampled rows get Gumbel noise first.

    Args:
        logits: ``[rows, vocabulary]``.
        choices: one per row. The sample of a row does not depend on the other rows.
        alone: returns the logits of one row, ``[vocabulary]``, computed without the other rows. It
            is called for rows in which the best two tokens have nearly equal scores, so that the
            choice does not depend on the batch. ``None``: ``logits`` decide.

    Returns:
        ``[rows]``, on the device of the logits.
    """
    scores, place = logits.clone(), logits.device
    sampled = [k for k, choice in enumerate(choices) if choice.noise is not None]
    whole = [k for k in sampled if not choices[k].few]
    noise = torch.empty(len(whole), logits.shape[1], device=place)
    if whole:
        for at, k in enumerate(whole):
            torch.rand(noise.shape[1], generator=choices[k].noise, out=noise[at])
        heat = torch.tensor([choices[k].temperature for k in whole], device=place)
        scores[whole] = scores[whole] / heat[:, None] - _gumbel_(noise)
    for k in sampled:
        if choices[k].few and len(ids := sorted(choices[k].allowed)) > 1:  # type: ignore[arg-type]
            drawn = torch.rand(len(ids), generator=choices[k].noise, device=place)
            scores[k, ids] = scores[k, ids] / choices[k].temperature - _gumbel_(drawn)
    scores = _restricted(scores, choices)
    best = scores.argmax(-1)
    if alone is not None:
        drawn_for = dict(zip(whole, noise, strict=True))
        for k in _close_rows(scores, choices):
            own = alone(k)
            if k in drawn_for:
                own = own / choices[k].temperature - drawn_for[k]
            best[k] = own.masked_fill(scores[k].isneginf(), -torch.inf).argmax()
    return best


def _restricted(scores: Tensor, choices: Sequence[Choice]) -> Tensor:
    """The scores, with those of tokens that are not allowed at minus infinity."""
    bound = [(k, c.allowed) for k, c in enumerate(choices) if c.allowed is not None]
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


def _close_rows(scores: Tensor, choices: Sequence[Choice]) -> list[int]:
    """The rows whose two best tokens differ by less than :data:`CLOSE` before the temperature."""
    first, second = scores.topk(2).values.unbind(1)
    heat = [1.0 if choice.noise is None else choice.temperature for choice in choices]
    gap = (first - second) * torch.tensor(heat, device=scores.device)
    return [int(k) for k in (gap < CLOSE).nonzero()[:, 0]]


def _gumbel_(uniform: Tensor) -> Tensor:
    """The logarithm of exponential noise, in place: Gumbel noise with its sign changed."""
    return uniform.clamp_(1e-9, 1 - 1e-7).log_().neg_().log_()
