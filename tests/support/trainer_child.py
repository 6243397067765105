"""Training runs in forked processes that are made to be killed."""

from __future__ import annotations

import dataclasses
import resource
from pathlib import Path

from learning_fakes import TinyModel
from learning_run import CONFIG, run

from swarm_ui.optim.config import TeamConfig, UpdateConfig


def config(seed: int) -> TeamConfig:
    """Twelve iterations of a few hundredths of a second."""
    return dataclasses.replace(
        CONFIG, seed=seed, iterations=12, shared_iterations=4, episodes=6,
        update=UpdateConfig(method="dpo", steps=4, batch_size=8, lr=5e-2),
    )  # fmt: skip


def train(seed: int, folder: Path, largest: int = 0) -> None:
    """Train the team of a seed in ``folder/run``, from wherever it stands.

    ``folder/adapters`` is there once all is done. No file may grow over ``largest`` bytes, as on a
    disk that is full (0: any size).
    """
    if largest:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    model = TinyModel()
    # Of so few episodes, none may be solved in an iteration.
    run(model, folder / "run", resume=True, config=config(seed), warn=lambda _: None)
    model.save_adapters(folder / "adapters.part")
    (folder / "adapters.part").rename(folder / "adapters")
