"""Training one LoRA adapter on preference pairs, for a fixed number of updates."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec
import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError
from swarm_ui.optim.batches import Row, by_length, pad, schedule
from swarm_ui.optim.losses import dpo_loss, ipo_loss, margin, nll_loss
from swarm_ui.optim.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable

Method = Literal["dpo", "ipo", "rft"]
Reference = Literal["start", "base"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """One update of an adapter. The paper gives none of these; the defaults are ours."""

    method: Method = "dpo"
    """``rft``: likelihood of chosen replies only (the paper's "PO to RFT")."""
    steps: int = 75
    """Optimiser steps, whatever the number of pairs, so that arms are compared at equal work."""
    batch_size: int = 32
    lr: float = 3e-3
    warmup: int = 10
    """Steps of linear warm-up; then the rate falls linearly to ``floor`` of ``lr``."""
    floor: float = 0.05
    beta: float = 0.05
    """Strength of the preference beside the supervised term. On the embedded phone (validation
    seeds, one run each) 0.2 gained 1 and 0.05 gained 10 points over the base agent."""
    nll_weight: float = 1.0
    """Weight of the supervised term beside DPO or IPO; guards against likelihood collapse."""
    reference: Reference = "start"
    """The adapter as it is when the update starts, or the base model without adapters."""
    unique: bool = True
    """Use each prompt with its chosen reply once, whoever of the team was in that place."""
    max_grad_norm: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ConfigError(f"method must be one of {get_args(Method)}, got {self.method!r}")
        if self.reference not in get_args(Reference):
            raise ConfigError(
                f"reference must be one of {get_args(Reference)}, got {self.reference!r}"
            )
        if self.steps < 0 or self.batch_size < 1 or self.lr <= 0 or self.beta <= 0:
            raise ConfigError("steps must be >= 0, batch_size >= 1, lr and beta > 0")

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        return self.lr * warm * max(self.floor, 1.0 - step / max(1, self.steps))


class UpdateStats(msgspec.Struct, frozen=True, kw_only=True):
    """What an update did."""

    adapter: str
    pairs: int
    """Pairs it could use."""
    steps: int
    loss: float | None
    """Mean over the last quarter of the steps; ``None`` if there were none."""
    first_loss: float | None
    """Mean over the first quarter."""
    accuracy: float | None
    """Share of pairs, in the last quarter, whose margin over the reference is above 0; ``None``
    for methods without rejected replies."""
    seconds: float
    """Wall time."""
    cpu_seconds: float


class AdapterTrainer:
    """Updates adapters of one :class:`~swarm_ui.optim.protocols.Trainable`."""

    def __init__(self, model: Trainable, config: UpdateConfig | None = None) -> None:
        self.model = model
        self.config = config or UpdateConfig()

    def fit(
        self,
        adapter: str,
        pairs: Sequence[PreferencePair],
        rng: random.Random,
        *,
        config: UpdateConfig | None = None,
    ) -> UpdateStats:
        """Train ``adapter`` in place and raise its version; other adapters do not change.

        Args:
            pairs: without a rejected reply they are left out, except by ``rft``.
            rng: decides the batches; equal states give equal weights.
            config: instead of the trainer's own.
        """
        settings = config or self.config
        began = (time.perf_counter(), time.process_time())
        task = _Encoded(self.model, pairs, settings)
        losses: list[float] = []
        hits: list[float] = []
        if task.weights and settings.steps:
            references = self._references(adapter, task, settings)
            # Dropout draws from torch's global stream: give it one of our own for the while.
            with torch.random.fork_rng(devices=[]), self.model.activate(adapter):
                torch.manual_seed(rng.getrandbits(63))
                losses, hits = self._loop(adapter, task, references, settings, rng)
            self.model.bump(adapter)
        last, first = _quarter(losses)
        return UpdateStats(
            adapter=adapter,
            pairs=len(task.weights),
            steps=len(losses),
            loss=last,
            first_loss=first,
            accuracy=_quarter(hits)[0],
            seconds=time.perf_counter() - began[0],
            cpu_seconds=time.process_time() - began[1],
        )

    def _loop(
        self,
        adapter: str,
        task: _Encoded,
        references: Tensor | None,
        settings: UpdateConfig,
        rng: random.Random,
    ) -> tuple[list[float], list[float]]:
        parameters = self.model.adapter_parameters(adapter)
        optimizer = torch.optim.AdamW(
            parameters, lr=settings.lr, betas=settings.betas, weight_decay=0.0
        )
        batches = schedule(
            task.lengths, steps=settings.steps, batch_size=settings.batch_size, rng=rng
        )
        losses: list[float] = []
        hits: list[float] = []
        for step, rows in enumerate(batches):
            loss, hit = self._loss(task, rows, references, settings)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            optimizer.step()
            losses.append(float(loss.detach()))
            hits += [] if hit is None else [hit]
        return losses, hits

    def _loss(
        self, task: _Encoded, rows: Sequence[int], references: Tensor | None, settings: UpdateConfig
    ) -> tuple[Tensor, float | None]:
        """Loss of one batch, and the share of its pairs on the right side of the reference."""
        chosen = [task.chosen[row] for row in rows]
        weight = torch.tensor([task.weights[row] for row in rows])
        if references is None:
            sums, tokens = self._forward(chosen)
            return nll_loss(sums, tokens, weight=weight.to(sums.device)), None
        size = len(rows)
        sums, tokens = self._forward(chosen + [task.rejected[row] for row in rows])
        weight, reference = weight.to(sums.device), references[:, list(rows)].to(sums.device)
        sides = (sums[:size], sums[size:], reference[0], reference[1])
        prefer = ipo_loss if settings.method == "ipo" else dpo_loss
        loss = prefer(*sides, beta=settings.beta, weight=weight)
        if settings.nll_weight:
            loss = loss + settings.nll_weight * nll_loss(sides[0], tokens[:size], weight=weight)
        return loss, float((margin(*sides).detach() > 0).float().mean())

    @torch.no_grad()
    def _references(self, adapter: str, task: _Encoded, settings: UpdateConfig) -> Tensor | None:
        """Reference log-probabilities of both sides of each pair, ``[2, pairs]``."""
        if settings.method == "rft":
            return None
        here = self.model.reference() if settings.reference == "base" else None
        with here or self.model.activate(adapter):
            training = self.model.module.training
            self.model.module.eval()
            try:
                sides = [self._all(side) for side in (task.chosen, task.rejected)]
            finally:
                self.model.module.train(training)
        return torch.stack(sides)

    def _all(self, rows: Sequence[Row]) -> Tensor:
        values = torch.zeros(len(rows))
        lengths = [len(prompt) + len(reply) for prompt, reply in rows]
        for part in by_length(lengths, 2 * self.config.batch_size):
            values[part] = self._forward([rows[k] for k in part])[0].float().cpu()
        return values

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        device = next(self.model.module.parameters()).device
        return self.model.forward_logprobs(*pad(rows, self.model.pad_id).to(device))


class _Encoded:
    """The usable pairs as token rows, each list as long as the others (``rejected``: or empty)."""

    def __init__(
        self, model: Trainable, pairs: Sequence[PreferencePair], settings: UpdateConfig
    ) -> None:
        both = settings.method != "rft"
        self.chosen: list[Row] = []
        self.rejected: list[Row] = []
        self.weights: list[float] = []
        seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
        for pair in pairs:
            if pair.weight <= 0 or (both and pair.rejected is None):
                continue
            row = model.encode(pair.decision, pair.chosen.json())
            key = (tuple(row[0]), tuple(row[1]))
            if settings.unique and key in seen:
                continue
            seen.add(key)
            self.chosen.append(row)
            self.weights.append(pair.weight)
            if both and pair.rejected is not None:
                self.rejected.append(model.encode(pair.decision, pair.rejected.json()))
        self.lengths = [len(prompt) + len(reply) for prompt, reply in self.chosen]


def _quarter(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Means of the last and of the first quarter."""
    if not values:
        return None, None
    size = max(1, len(values) // 4)
    return sum(values[-size:]) / size, sum(values[:size]) / size
