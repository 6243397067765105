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

    method: Method = "rft"
    """``dpo`` and ``ipo`` learn from preference pairs, ``rft`` from the likelihood of chosen
    replies only (the paper's "PO to RFT"), and ``pg`` from the agents' own replies with their
    advantages. On the phone, ``rft`` is as good as ``dpo``, the paper's method, in less time."""
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
        limit = self.micro_batch_tokens
        wrong = [
            f"{name} must be {rule}, got {getattr(self, name)!r}"
            for name, good, rule in (
                ("method", self.method in get_args(Method), f"one of {get_args(Method)}"),
                ("reference", self.reference in get_args(Reference),
                 f"one of {get_args(Reference)}"),
                ("steps", self.steps is None or self.steps >= 0, ">= 0"),
                ("batch_size", self.batch_size >= 1, ">= 1"),
                ("lr", self.lr is None or self.lr > 0, "> 0"),
                ("warmup", self.warmup >= 0, ">= 0"),
                ("floor", 0 <= self.floor <= 1, "in [0, 1]"),
                ("beta", self.beta > 0, "> 0"),
                ("nll_weight", self.nll_weight >= 0, ">= 0"),
                ("clip", 0 < self.clip < 1, "in (0, 1)"),
                ("max_grad_norm", self.max_grad_norm > 0, "> 0"),
                ("micro_batch_tokens", limit is None or limit >= 1, ">= 1"),
            )
            if not good
        ]  # fmt: skip
        if wrong:
            raise ConfigError("update: " + "; ".join(wrong))

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
