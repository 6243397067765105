"""The sizes of the study, and its training as ``swarm-ui`` commands."""

from __future__ import annotations

from pathlib import Path

import msgspec

from benchmarks.studies.commands.cells import SAMPLES_PER_SECOND, Cell

CORPUS, TRAINING = "corpus", "training"
SETTINGS_FILE = "settings.json"


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes for one CPU core; a study cannot change them once it has begun."""

    model: str = "smollm2"
    adapter: str = "smollm2-phone"
    """Stage 1: name or folder of the adapter that the training starts from."""
    apps: int = 4
    """Open apps of each episode, with one agent each."""
    walks: int = 360
    """Episodes of the scripted team on training templates, about seven samples each."""
    learning_rate: float = 5e-4
    batch_size: int = 4
    known: int = 26
    """Test episodes on training templates, with test parameters."""
    new: int = 24
    """Test episodes on new templates."""
    concurrency: int = 13


QUICK = Sizes(walks=1, known=1, new=1, concurrency=2)
"""Shows that every part works; the figures mean nothing."""


def training_cells(sizes: Sizes, out: Path) -> list[Cell]:
    """The corpus of the scripted team, and the adapter that is trained on it."""
    corpus = (
        "synthesize", "phone-split", "--apps", str(sizes.apps), "--levels", "3",
        "--prompt-format", "compact", "--walks", str(sizes.walks),
    )  # fmt: skip
    training = (
        "finetune", sizes.model, str(out / CORPUS), str(out / TRAINING),
        "--adapters", sizes.adapter, "--learning-rate", str(sizes.learning_rate),
        "--set", f"finetune.batch_size={sizes.batch_size}", "--set", "finetune.accumulate=1",
        "--set", "finetune.max_length=420",
        "--set", "finetune.save_steps=20",
    )  # fmt: skip
    hours = 7 * sizes.walks / SAMPLES_PER_SECOND / 3600
    return [Cell(CORPUS, corpus), Cell(TRAINING, training, (CORPUS,), hours=hours)]
