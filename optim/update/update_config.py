"""Settings of one update of an adapter, with defaults that depend on the model's size."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar, get_args

from swarm_ui.errors import ConfigError
from swarm_ui.optim.protocols import Trainable

Method = Literal["dpo", "ipo", "rft", "pg"]
Reference = Literal["start", "base"]

SMALL_MODEL = 5_000_000
"""Parameters below which a model gets the defaults that were tuned on the embedded agent."""

T = TypeVar("T")


class UpdateDefaults(NamedTuple):
    """Settings whose best values depend on the size of the model."""

    lr: float
    steps: int
    shared_steps: int
    micro_batch_tokens: int


def defaults_for(parameters: int) -> UpdateDefaults:
    """The defaults for a model with this many parameters.

    The defaults of small models were tuned on the embedded agent (0.19 M parameters). Larger models
    get the usual learning rate of LoRA and an affordable number of steps, which were not tuned.
    """
    if parameters < SMALL_MODEL:
        return UpdateDefaults(lr=3e-3, steps=35, shared_steps=75, micro_batch_tokens=65_536)
    return UpdateDefaults(lr=2e-4, steps=20, shared_steps=40, micro_batch_tokens=2_048)


def defaults_of(model: Trainable) -> UpdateDefaults:
    """The defaults for a loaded model."""
    return defaults_for(sum(p.numel() for p in model.module.parameters()))


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """Settings for one update of an adapter.

    The paper gives none of these numbers; the defaults are those of this library.
    """

    method: Method = "dpo"
    """``dpo`` and ``ipo`` learn from preference pairs, ``rft`` from the likelihood of chosen
    replies only (the paper's "PO to RFT"), and ``pg`` from the agents' own replies with their
    advantages."""
    steps: int | None = None
    """Optimiser steps. They do not depend on the number of pairs, so that variants are compared at
    equal work. ``None``: 35 for models below 5 M parameters, else 20."""
    batch_size: int = 32
    """Examples of one optimiser step."""
    lr: float | None = None
    """Highest learning rate. ``None``: 3e-3 for models below 5 M parameters, else 2e-4."""
    warmup: int = 10
    """Steps of linear warm-up. Then the rate falls linearly to ``floor * lr``."""
    floor: float = 0.05
    beta: float = 0.05
    """The ``beta`` of DPO and IPO. On the embedded phone (validation seeds, one run each) 0.2
    gained 1 and 0.05 gained 10 points over the base agent. With ``pg``: weight of the divergence
    from the reference."""
    nll_weight: float = 1.0
    """Weight of the supervised term of DPO or IPO. It prevents a collapse of the likelihood."""
    clip: float = 0.2
    """``pg``: the importance ratio is clipped to 1 ± ``clip``."""
    reference: Reference = "start"
    """The adapter at the start of the update, or the base model without adapters."""
    unique: bool = True
    """Use each prompt with its chosen reply once, even if several agents have it."""
    unparsed: bool | None = None
    """Whether to learn from replies without a valid action too: they are rejected sides of pairs,
    and replies for ``pg``. ``None``: if the model can write any text (``CausalModel``); the
    embedded agent writes actions only."""
    max_grad_norm: float = 1.0
    betas: tuple[float, float] = (0.9, 0.98)
    micro_batch_tokens: int | None = None
    """Maximum number of tokens of one forward and backward, padding included, which bounds the
    memory. A larger batch is divided, and the gradients of its parts are added up; the sum is the
    gradient of the whole batch. The two sides of a pair stay together, so the smallest part is one
    pair.
    ``None``: 65,536 for models below 5 M parameters, else 2,048."""
    checkpointing: bool = False
    """Activation checkpointing: layers keep only their inputs, and are computed a second time in
    the backward pass. Less memory, about a third more time, equal gradients."""
    autocast: bool | None = None
    """Compute in bfloat16, with adapters and their optimiser in float32. ``None``: if the weights
    of the base model are bfloat16."""
    eager_attention: bool | None = None
    """Use the plain implementation of attention in training. ``None``: on a CPU with autocast,
    where it is faster for prompts of a few hundred tokens."""

    def __post_init__(self) -> None:
        for name, known in (("method", get_args(Method)), ("reference", get_args(Reference))):
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"update: {name} must be one of {known}, got {getattr(self, name)!r}"
                )
        if self.steps is not None and self.steps < 0:
            raise ConfigError(f"update: steps must be >= 0, got {self.steps}")
        if self.batch_size < 1 or (self.lr is not None and self.lr <= 0) or self.beta <= 0:
            raise ConfigError(
                "update: batch_size must be >= 1, lr and beta > 0, got "
                f"{self.batch_size}, {self.lr} and {self.beta}"
            )
        if not 0 < self.clip < 1:
            raise ConfigError(f"update: clip must be in (0, 1), got {self.clip}")
        if self.micro_batch_tokens is not None and self.micro_batch_tokens < 1:
            raise ConfigError(
                f"update: micro_batch_tokens must be >= 1, got {self.micro_batch_tokens}"
            )

    def filled(self, defaults: UpdateDefaults) -> UpdateConfig:
        """These settings, with the model's defaults for values that are not set."""
        return dataclasses.replace(
            self,
            lr=defaults.lr if self.lr is None else self.lr,
            steps=defaults.steps if self.steps is None else self.steps,
        )

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        lr, steps = known(self.lr, "update.lr"), known(self.steps, "update.steps")
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        return lr * warm * max(self.floor, 1.0 - step / max(1, steps))


def known(value: T | None, name: str) -> T:
    """The value of a setting that a trainer fills in. Raises ``ConfigError`` if it is not set."""
    if value is None:
        raise ConfigError(
            f"{name} depends on the model and is not set yet; set it, or use the configuration of "
            "a trainer (TeamTrainer(...).config), which has it"
        )
    return value
