"""The updates of a training run, for ``swarm-ui train --dry-run``."""

from __future__ import annotations

from swarm_ui.experiment.config import Config
from swarm_ui.experiment.models import learned_adapters
from swarm_ui.optim.config import TeamConfig


def training_facts(config: Config, settings: TeamConfig, processes: int = 1) -> dict[str, str]:
    """The update, for ``train --dry-run``; nothing is loaded.

    Args:
        config: all settings.
        settings: those of the trainer.
        processes: the number of processes that share every batch.
    """
    update, default = settings.update, "by the size of the model"
    steps = default if update.steps is None else f"{update.steps}"
    rate = default if update.lr is None else f"{update.lr:g}"
    told = f"{update.method}, steps of an adapter: {steps}, rate: {rate}"
    if settings.shared_iterations:
        told += f"; one for all in the first {settings.shared_iterations} iterations"
    facts = {"update": told, "adapters": ", ".join(learned_adapters(config))}
    if processes > 1:
        size = update.batch_size
        facts["processes"] = (
            f"{processes}; the first one plays, each computes at most {-(-size // processes)} of "
            f"{size} examples of a batch"
        )
    return facts
