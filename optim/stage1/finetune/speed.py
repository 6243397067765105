"""The measured speed of fine-tuning on this machine."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformers import PreTrainedTokenizerBase, TrainerCallback

from swarm_ui.optim.stage1.finetune.config import FinetuneConfig
from swarm_ui.optim.stage1.finetune.encoding import Encoded
from swarm_ui.optim.stage1.finetune.stage import Stage
from swarm_ui.optim.stage1.finetune.timing import Timer

_STEPS = 2
"""Measured steps, after one that is not counted."""


def tokens_per_second(
    model: Path,
    data: Encoded,
    tokenizer: PreTrainedTokenizerBase,
    config: FinetuneConfig,
    group: Any,
) -> float:
    """Tokens of samples (without padding) per second in supervised training."""
    taken = (1 + _STEPS) * config.batch_size * config.accumulate
    every = max(1, len(data.rows) // taken)
    rows = data.rows[::every][:taken]
    tokens = data.tokens * len(rows) / len(data.rows)
    watch = _StepTimes()
    with TemporaryDirectory() as folder:
        stage = Stage("speed", model, None, Path(folder) / "speed", config)
        trainer = stage.trainer(
            Encoded(rows, int(tokens), data.longest, 0),
            tokenizer,
            Timer(stage.work, group, None),
            max_steps=1 + _STEPS,
            save_strategy="no",
        )
        trainer.add_callback(watch)
        trainer.train()
    mean = tokens / len(rows) * config.batch_size * config.accumulate
    return mean * _STEPS / (watch.times[-1] - watch.times[0])


class _StepTimes(TrainerCallback):
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.times.append(time.monotonic())
