"""Settings of fine-tuning. The paper gives none; every default here is ours."""

from __future__ import annotations

from typing import Literal

import msgspec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.stage1.corpus.config import check


class FinetuneConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Training settings for a model on a corpus, in all stages unless overridden."""

    method: Literal["lora", "full"] = "lora"
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    """Dropout rate of the adapter."""
    layers: tuple[int, ...] = ()
    """Layers that get an adapter, counted from 0; empty: all. Without an adapter on the lower
    layers, the backward pass ends above them."""
    epochs: float = 1.0
    """Number of epochs of each stage."""
    max_steps: int = -1
    """Optimiser steps of each stage; -1: as many as the epochs take."""
    minutes: float | None = None
    """Time for all stages together; ``None``: no limit. Each stage gets a share by its number of
    tokens, ends when its share or its epochs are over, and its learning rate falls to zero by
    then."""
    learning_rate: float = 1e-4
    """Learning rate of the supervised stages; warm-up over a tenth of the steps, then linear to
    zero. For full fine-tuning of a large model, 1e-5 is usual."""
    preference_learning_rate: float = 1e-5
    """Learning rate of DPO; for full fine-tuning of a large model, 5e-7 is usual."""
    batch_size: int = 4
    """Samples in a batch of each process."""
    accumulate: int = 4
    """Batches in one optimiser step."""
    by_length: bool = True
    """Batches of samples of similar length in the supervised stages, so that there is less
    padding."""
    beta: float = 0.1
    """The ``beta`` of DPO: strength of the constraint to stay close to the reference."""
    preferences: bool = True
    """Whether DPO on the preferences of level 3 ends the training; ``False``: supervised stages
    only."""
    supervised: float = 0.2
    """Weight of a supervised loss that is added to DPO's, so that the likelihood of the chosen
    response does not fall; 0: none."""
    max_length: int = 4096
    """Maximum number of tokens of prompt and response together; samples are never truncated."""
    too_long: Literal["error", "skip"] = "error"
    """Whether a longer sample is an error or is skipped; skipped samples are counted."""
    bf16: bool | None = None
    """Compute in bfloat16; the trained weights stay in float32. ``None``: if the processor has
    instructions for it."""
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""
    weight_decay: float = 0.0
    seed: int = 0
    save_steps: int = 200
    """Optimiser steps between checkpoints; an interrupted stage continues from the last one."""

    def __post_init__(self) -> None:
        known = self.method in ("lora", "full")
        check(self, "finetune", "method", "'lora' or 'full'", known)
        for name in ("rank", "alpha", "batch_size", "accumulate", "max_length", "save_steps"):
            check(self, "finetune", name, "at least 1", getattr(self, name) >= 1)
        for name in ("epochs", "learning_rate", "preference_learning_rate", "beta"):
            check(self, "finetune", name, "positive", getattr(self, name) > 0)
        check(self, "finetune", "dropout", "in [0, 1)", 0.0 <= self.dropout < 1.0)
        check(self, "finetune", "supervised", "at least 0", self.supervised >= 0.0)
        timed = self.minutes is None or self.minutes > 0
        check(self, "finetune", "minutes", "positive", timed)
        check(self, "finetune", "layers", "numbers from 0", min(self.layers, default=0) >= 0)
        if self.layers and self.method == "full":
            raise ConfigError(
                "finetune: 'layers' chooses the layers of an adapter; with method='full' all "
                "weights are trained: leave it out, or set method='lora'"
            )
