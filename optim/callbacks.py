"""Functions of the user that the trainer calls while it runs."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarm_ui.optim.loggers.logger import Logger
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.training_progress import Progress
from swarm_ui.trace.records import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The callbacks of :class:`~swarm_ui.optim.trainer.TeamTrainer`; ``None``: no callback."""

    on_progress: Callable[[Progress], None] | None = None
    """Called with each report of progress."""
    on_episodes: Callable[[int, Sequence[Episode]], None] | None = None
    """Called with the iteration and its episodes, with their credit, before the update."""
    on_iteration: Callable[[IterationMetrics], None] | None = None
    """Called after the checkpoint of each iteration."""
    on_warning: Callable[[str], None] = warnings.warn
    """Called when a checkpoint is damaged, a model cannot be reached, or a logger fails."""
    loggers: Sequence[Logger] = ()
    """Receive the metrics of each iteration (:func:`swarm_ui.optim.metrics.scalars`). One that
    fails is reported once and left out; the training continues."""
    logged_config: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings that loggers receive in addition to those of the trainer, by section."""
