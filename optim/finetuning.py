"""Settings of a fine-tuning with trl, its progress and its results."""

from __future__ import annotations

import msgspec

from swarm_ui.optim.settings import Count, Positive, check


class FinetuneConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a training, in all stages. The paper gives none; every default here is ours."""

    rank: Count = 16
    """Rank of a new adapter; alpha is twice it."""
    epochs: Positive = 1.0
    """Number of epochs of each stage."""
    max_steps: int = -1
    """Optimiser steps of each stage; -1: as many as the epochs take."""
    learning_rate: Positive = 1e-4
    """Learning rate of the supervised stages; warm-up over a tenth of the steps, then linear to
    zero."""
    preference_learning_rate: Positive = 1e-5
    """Learning rate of DPO."""
    batch_size: Count = 4
    """Samples in a batch of each process."""
    accumulate: Count = 4
    """Batches in one optimiser step."""
    beta: Positive = 0.1
    """The ``beta`` of DPO: strength of the constraint to stay close to the reference."""
    preferences: bool = True
    """Whether DPO on the preferences of level 3 ends the training."""
    max_length: Count = 4096
    """Maximum number of tokens of prompt and response together. Longer samples are left out and
    counted, never truncated."""
    bf16: bool | None = None
    """Compute in bfloat16; the trained weights stay in float32. ``None``: if the processor has
    instructions for it."""
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    seed: int = 0
    save_steps: Count = 200
    """Optimiser steps between checkpoints; an interrupted stage continues from the last one."""

    def __post_init__(self) -> None:
        check(self, "finetune")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a stage: the samples, those that were too long, the optimiser steps, the mean
    loss, and the wall time since it began or was continued."""

    stage: str
    samples: int
    skipped: int
    steps: int
    loss: float
    seconds: float


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a fine-tuning; ``done``: the share of all stages' steps, in [0, 1]."""

    stage: str
    step: int
    steps: int
    loss: float
    done: float
