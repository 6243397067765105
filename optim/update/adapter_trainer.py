"""Training one LoRA adapter on preference pairs or scored replies, for a number of updates."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import msgspec
import torch
from torch import Tensor, nn

from swarm_ui.errors import ConfigError, LearningError
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.batches import (
    Example,
    Row,
    by_length,
    encode_pairs,
    encode_replies,
    lengths_of,
    pad,
    schedule,
)  # fmt: skip
from swarm_ui.optim.update.losses import (
    divergence,
    dpo_loss,
    ipo_loss,
    margin,
    nll_loss,
    policy_gradient_loss,
)

Method = Literal["dpo", "ipo", "rft", "pg"]
Reference = Literal["start", "base"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """One update of an adapter. The paper gives none of these numbers; the defaults are ours."""

    method: Method = "dpo"
    """``dpo`` and ``ipo`` learn from preference pairs, ``rft`` from the likelihood of chosen
    replies only (the paper's "PO to RFT"), and ``pg`` from the agents' own replies with their
    advantages."""
    steps: int = 75
    """Optimiser steps. They do not depend on the number of pairs, so that variants are compared at
    equal work."""
    batch_size: int = 32
    lr: float = 3e-3
    warmup: int = 10
    """Steps of linear warm-up. Then the rate falls linearly to ``floor * lr``."""
    floor: float = 0.05
    beta: float = 0.05
    """The ``beta`` of DPO and IPO. On the embedded phone (validation seeds, one run each) 0.2
    gained 1 and 0.05 gained 10 points over the base agent. With ``pg``: weight of the divergence
    from the reference."""
    nll_weight: float = 1.0
    """Weight of the supervised term beside DPO or IPO. It prevents a collapse of the likelihood."""
    clip: float = 0.2
    """``pg``: the importance ratio is clipped to 1 ± ``clip``."""
    reference: Reference = "start"
    """The adapter at the start of the update, or the base model without adapters."""
    unique: bool = True
    """Use each prompt with its chosen reply once, even if several agents have it."""
    max_grad_norm: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)

    def __post_init__(self) -> None:
        for name, known in (("method", get_args(Method)), ("reference", get_args(Reference))):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if self.steps < 0 or self.batch_size < 1 or self.lr <= 0 or self.beta <= 0:
            raise ConfigError("steps must be >= 0, batch_size >= 1, lr and beta > 0")
        if not 0 < self.clip < 1:
            raise ConfigError(f"clip must be in (0, 1), got {self.clip}")

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        return self.lr * warm * max(self.floor, 1.0 - step / max(1, self.steps))


class UpdateStats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of an update."""

    adapter: str
    pairs: int
    """Number of usable pairs."""
    steps: int
    loss: float | None
    """Mean over the last quarter of the steps; ``None`` if there were none."""
    first_loss: float | None
    """Mean over the first quarter."""
    accuracy: float | None
    """Share of pairs in the last quarter of the steps whose margin is above 0; ``None`` for methods
    without rejected replies."""
    seconds: float
    cpu_seconds: float


class AdapterTrainer:
    """Updates adapters of one :class:`~swarm_ui.optim.protocols.Trainable`."""

    def __init__(self, model: Trainable, config: UpdateConfig | None = None) -> None:
        self.model = model
        self.config = config or UpdateConfig()

    def fit(
        self,
        adapter: str,
        examples: Sequence[PreferencePair] | Sequence[ScoredReply],
        rng: random.Random,
    ) -> UpdateStats:
        """Train ``adapter`` in place and raise its version. Other adapters do not change.

        Args:
            examples: pairs, or scored replies for ``pg``. From a pair without a rejected reply,
                only the likelihood of the chosen one is learned.
            rng: draws the batches. Equal states give equal weights.

        Raises:
            LearningError: a loss or a gradient was not a number. The adapter is restored.
        """
        settings = self.config
        began = (time.perf_counter(), time.process_time())
        task = _encoded(self.model, examples, settings)
        losses, hits = list[float](), list[float]()
        if task and settings.steps:
            stream = rng.getrandbits(63)
            batches = schedule(
                lengths_of([example.chosen for example in task]),
                steps=settings.steps,
                batch_size=settings.batch_size,
                rng=rng,
            )
            references = self._references(adapter, task, batches)
            # Dropout draws from torch's global stream, so that is seeded inside.
            with torch.random.fork_rng(devices=[]), self.model.activate(adapter):
                torch.manual_seed(stream)
                with _restored_on_error(self.model.adapter_parameters(adapter)):
                    losses, hits = self._loop(adapter, task, batches, references)
            self.model.bump(adapter)
        last, first = _quarter(losses)
        return UpdateStats(
            adapter=adapter,
            pairs=len(task),
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
        task: Sequence[Example],
        batches: Sequence[Sequence[int]],
        references: Tensor | None,
    ) -> tuple[list[float], list[float]]:
        settings = self.config
        parameters = self.model.adapter_parameters(adapter)
        optimizer = torch.optim.AdamW(
            parameters, lr=settings.lr, betas=settings.betas, weight_decay=0.0
        )
        losses, hits = list[float](), list[float]()
        for step, rows in enumerate(batches):
            loss, hit = self._loss(task, rows, references)
            self._check_finite("loss", loss.detach(), adapter, step)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            norm = nn.utils.clip_grad_norm_(parameters, settings.max_grad_norm)
            self._check_finite("gradient's norm", norm, adapter, step)
            for group in optimizer.param_groups:
                group["lr"] = settings.rate(step)
            optimizer.step()
            losses.append(float(loss.detach()))
            hits += [] if hit is None else [hit]
        return losses, hits

    def _loss(
        self, task: Sequence[Example], rows: Sequence[int], references: Tensor | None
    ) -> tuple[Tensor, float | None]:
        """Loss of one batch, and the share of its pairs whose margin is above 0."""
        settings = self.config
        chosen = [task[row].chosen for row in rows]
        weight = torch.tensor([task[row].weight for row in rows])
        if references is None:
            sums, tokens = self._forward(chosen)
            return nll_loss(sums, tokens, weight=weight.to(sums.device)), None
        if settings.method == "pg":
            sums, tokens = self._forward(chosen)
            old, reference = references[:, list(rows)].to(sums.device)
            advantage = weight.to(sums.device)
            loss = policy_gradient_loss(sums, old, advantage, tokens, clip=settings.clip)
            return loss + settings.beta * divergence(sums, reference, tokens), None
        paired = [k for k, row in enumerate(rows) if task[row].rejected is not None]
        against = [row for k in rows if (row := task[k].rejected) is not None]
        sums, tokens = self._forward(chosen + against)
        weight, size = weight.to(sums.device), len(rows)
        supervised = nll_loss(sums[:size], tokens[:size], weight=weight)
        if not paired:
            return settings.nll_weight * supervised, None
        reference = references[:, [rows[k] for k in paired]].to(sums.device)
        sides = (sums[paired], sums[size:], reference[0], reference[1])
        prefer = ipo_loss if settings.method == "ipo" else dpo_loss
        loss = prefer(*sides, beta=settings.beta, weight=weight[paired])
        # The loss of the pairs is weighted by their share of the batch.
        loss = loss * (len(paired) / size) + settings.nll_weight * supervised
        return loss, float((margin(*sides).detach() > 0).float().mean())

    @torch.no_grad()
    def _references(
        self, adapter: str, task: Sequence[Example], batches: Sequence[Sequence[int]]
    ) -> Tensor | None:
        """Log-probabilities to compare with, ``[2, examples]``; 0 where no batch uses one.

        Of a pair: both sides under the reference; of a reply: under the adapter and the reference.
        """
        settings = self.config
        if settings.method == "rft":
            return None
        known = torch.zeros(2, len(task))
        used = sorted({row for batch in batches for row in batch})
        under = None if settings.reference == "base" else adapter
        if settings.method == "pg":
            known[:, used] = self._all([task[k].chosen for k in used], adapter)
            if under is None:
                known[1, used] = self._all([task[k].chosen for k in used], None)
            return known
        paired = [k for k in used if task[k].rejected is not None]
        against = [row for k in paired if (row := task[k].rejected) is not None]
        known[0, paired] = self._all([task[k].chosen for k in paired], under)
        known[1, paired] = self._all(against, under)
        return known

    def _all(self, rows: Sequence[Row], adapter: str | None) -> Tensor:
        """Log-probability of each row, ``[rows]``, under an adapter or the base model."""
        values = torch.zeros(len(rows))
        with self.model.reference() if adapter is None else self.model.activate(adapter):
            training = self.model.module.training
            self.model.module.eval()
            try:
                for part in by_length(lengths_of(rows), 2 * self.config.batch_size):
                    values[part] = self._forward([rows[k] for k in part])[0].float().cpu()
            finally:
                self.model.module.train(training)
        return values

    def _forward(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        device = next(self.model.module.parameters()).device
        return self.model.forward_logprobs(*pad(rows, self.model.pad_id).to(device))

    def _check_finite(self, what: str, value: Tensor, adapter: str, step: int) -> None:
        if not bool(value.isfinite()):
            raise LearningError(
                f"adapter '{adapter}', step {step + 1} of {self.config.steps}, method "
                f"'{self.config.method}': the {what} is {float(value)}. The adapter was restored "
                f"to the weights before this update. Lower lr (it was {self.config.rate(step):g}), "
                "and look for inputs that are not numbers"
            )


@contextmanager
def _restored_on_error(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Restore the parameters if the block ends in a :class:`LearningError`."""
    before = [p.detach().clone() for p in parameters]
    try:
        yield
    except LearningError:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)
        raise


def _encoded(
    model: Trainable,
    examples: Sequence[PreferencePair] | Sequence[ScoredReply],
    settings: UpdateConfig,
) -> list[Example]:
    wanted = ScoredReply if settings.method == "pg" else PreferencePair
    wrong = next((e for e in examples if not isinstance(e, wanted)), None)
    if wrong is not None:
        raise ConfigError(
            f"method '{settings.method}' learns from {wanted.__name__}, got {type(wrong).__name__}"
        )
    if settings.method == "pg":
        return encode_replies(model, [e for e in examples if isinstance(e, ScoredReply)])
    pairs = [e for e in examples if isinstance(e, PreferencePair)]
    return encode_pairs(model, pairs, both=settings.method != "rft", unique=settings.unique)


def _quarter(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Means of the last and of the first quarter."""
    size = max(1, len(values) // 4)
    return (sum(values[-size:]) / size, sum(values[:size]) / size) if values else (None, None)
