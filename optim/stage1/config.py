"""Settings of stage 1, and what a fine-tuning reports."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.prompts import format_named

Level = Literal[1, 2, 3]
LEVELS: tuple[Level, ...] = (1, 2, 3)
"""1: questions about screens; 2: instructions of one step; 3: preferences."""


class CorpusConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for making and keeping samples. The paper gives no sizes; all defaults are ours."""

    levels: tuple[int, ...] = LEVELS
    prompt_format: str = "json"
    """Format of prompts and replies; see :mod:`swarm_ui.prompts`."""
    reasons: bool = True
    """Whether replies give a reason before their action."""
    seed: int = 0
    max_steps: int | None = 30
    """Maximum number of steps of a walk; the environment may end it earlier."""
    stray: float = 0.0
    """Probability of a random action instead of the agent's, so that walks also show the way back.
    Use it only where actions can be undone."""
    screens: int = 4
    """Maximum number of different screens of a walk for samples of levels 1 and 2."""
    first_screen: float = 0.2
    """Probability that a walk's first screen is among these screens. It is low, because the first
    screens of all walks are similar. This is the value in the method's released code."""
    questions: int = 8
    """Maximum number of questions about a screen."""
    instructions: int = 6
    """Maximum number of instructions for a screen."""
    messages: float = 0.5
    """Share of the preferences with messages of neighbours in their prompt."""
    neighbours: int = 3
    """Maximum number of messages of neighbours."""
    wrong_neighbours: float = 0.4
    """Share of the neighbours' messages that the adversary wrote."""
    attempts: int = 4
    """Maximum number of replies of the adversary for one preference."""
    good_above: float = 0.5
    """An item with a score above it is right."""
    bad_below: float = 0.5
    """An item with a score below it is wrong."""
    repeats: int = 8
    """Maximum number of samples that differ only in the order of the screen's elements."""
    longest_prompt: int = 40_000
    """Maximum number of characters of a sample; longer samples are dropped."""
    longest_response: int = 2_000
    temperature: float = 0.7
    """Temperature for questions, instructions, neighbours and adversary; walks and verdicts: 0."""
    max_tokens: int = 1024
    """Token limit of a list of questions or instructions; a reply with an action may have a
    quarter of it."""

    def __post_init__(self) -> None:
        if not self.levels or not set(self.levels) <= set(LEVELS):
            raise ConfigError(f"corpus: 'levels' must be some of 1, 2 and 3, got {self.levels}")
        format_named(self.prompt_format)
        least = {"screens": 0, "max_tokens": 16} | dict.fromkeys(
            ("questions", "instructions", "neighbours", "attempts", "repeats"), 1
        )
        for name, low in least.items():
            check(self, "corpus", name, f"at least {low}", getattr(self, name) >= low)
        limited = self.max_steps is None or self.max_steps >= 1
        check(self, "corpus", "max_steps", "at least 1, or none", limited)
        for name in ("stray", "first_screen", "messages", "wrong_neighbours"):
            check(self, "corpus", name, "in [0, 1]", 0.0 <= getattr(self, name) <= 1.0)
        if not 0.0 <= self.bad_below <= self.good_above <= 1.0:
            raise ConfigError(
                "corpus: expected 0 <= bad_below <= good_above <= 1, got "
                f"{self.bad_below} and {self.good_above}"
            )


class FinetuneConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Training settings for a model on a corpus, in all stages. The paper gives none; every default
    here is ours."""

    method: Literal["lora", "full"] = "lora"
    rank: int = 16
    alpha: int = 32
    layers: tuple[int, ...] = ()
    """Layers that get an adapter, counted from 0; empty: all. Without an adapter on the lower
    layers, the backward pass ends above them."""
    epochs: float = 1.0
    """Number of epochs of each stage."""
    max_steps: int = -1
    """Optimiser steps of each stage; -1: as many as the epochs take."""
    minutes: float | None = None
    """Stop after this time, for all stages together; ``None``: no limit."""
    learning_rate: float = 1e-4
    """Learning rate of the supervised stages; warm-up over a tenth of the steps, then linear to
    zero. For full fine-tuning of a large model, 1e-5 is usual."""
    preference_learning_rate: float = 1e-5
    """Learning rate of DPO; for full fine-tuning of a large model, 5e-7 is usual."""
    batch_size: int = 4
    """Samples in a batch of each process."""
    accumulate: int = 4
    """Batches in one optimiser step."""
    beta: float = 0.1
    """The ``beta`` of DPO: strength of the constraint to stay close to the reference."""
    preferences: bool = True
    """Whether DPO on the preferences of level 3 ends the training; ``False``: supervised stages
    only."""
    supervised: float = 0.2
    """Weight of a supervised loss that is added to DPO's, so that the likelihood of the chosen
    response does not fall; 0: none."""
    max_length: int = 4096
    """Maximum number of tokens of prompt and response together. Longer samples are left out and
    counted, never truncated."""
    bf16: bool | None = None
    """Compute in bfloat16; the trained weights stay in float32. ``None``: if the processor has
    instructions for it."""
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    seed: int = 0
    save_steps: int = 200
    """Optimiser steps between checkpoints; an interrupted stage continues from the last one."""

    def __post_init__(self) -> None:
        check(self, "finetune", "method", "'lora' or 'full'", self.method in ("lora", "full"))
        for name in ("rank", "alpha", "batch_size", "accumulate", "max_length", "save_steps"):
            check(self, "finetune", name, "at least 1", getattr(self, name) >= 1)
        for name in ("epochs", "learning_rate", "preference_learning_rate", "beta"):
            check(self, "finetune", name, "positive", getattr(self, name) > 0)
        check(self, "finetune", "supervised", "at least 0", self.supervised >= 0.0)
        timed = self.minutes is None or self.minutes > 0
        check(self, "finetune", "minutes", "positive", timed)
        check(self, "finetune", "layers", "numbers from 0", min(self.layers, default=0) >= 0)
        if self.layers and self.method == "full":
            raise ConfigError(
                "finetune: 'layers' chooses the layers of an adapter; with method='full' all "
                "weights are trained: leave it out, or set method='lora'"
            )


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a stage."""

    stage: str
    samples: int
    skipped: int
    """Number of samples that were too long."""
    tokens: int
    """Tokens of the samples; of a pair, those of the prompt with the longer reply."""
    steps: int
    """Optimiser steps."""
    loss: float
    """Mean loss over the stage."""
    seconds: float
    """Wall time since the stage began or was continued."""
    ran_out: bool = False
    """Whether it was ended by ``minutes`` before its epochs were over."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a fine-tuning."""

    stage: str
    step: int
    steps: int
    loss: float
    done: float
    """Share of all stages' steps that are done, in [0, 1]."""


def check(config: msgspec.Struct, where: str, name: str, wanted: str, fits: bool) -> None:
    """Raise ``ConfigError`` if ``fits`` is false. ``wanted`` says in words what the setting must
    be."""
    if not fits:
        raise ConfigError(f"{where}: '{name}' must be {wanted}, got {getattr(config, name)!r}")
