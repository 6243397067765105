"""Functions of the user that the trainer calls while it runs."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec

from swarm_ui.errors import ConfigError
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.loggers.logger import Logger
from swarm_ui.optim.loggers.tensorboard_logger import TensorBoardLogger
from swarm_ui.optim.metrics import IterationMetrics
from swarm_ui.optim.training_progress import Progress
from swarm_ui.trace.records import Episode

Parameters = ParamSpec("Parameters")


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


_CALLBACKS = {"progress": "on_progress", "on_episodes": "on_episodes", "warn": "on_warning"}


def accepts_former_keywords(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Let the constructor of the trainer take the keywords that it had in version 0.1.

    These are ``progress``, ``on_episodes``, ``warn``, ``tensorboard``, ``adapters`` and ``trust``.
    """

    @functools.wraps(init)
    def wrapped(*args: Parameters.args, **keywords: Parameters.kwargs) -> None:
        given: dict[str, Any] = dict(keywords)
        former = {
            name: given.pop(name)
            for name in (*_CALLBACKS, "tensorboard", "adapters", "trust")
            if name in given
        }
        if former:
            warnings.warn(
                f"TeamTrainer: {', '.join(former)} will be removed; use callbacks=Callbacks(...), "
                "TeamConfig(adapters=...) and TeamConfig(trust=...)",
                DeprecationWarning,
                stacklevel=2,
            )
            _translate(former, given)
        init(*args, **given)

    return wrapped


def _translate(former: dict[str, Any], given: dict[str, Any]) -> None:
    """Convert the former keywords to the present ones."""
    callbacks: dict[str, Any] = {
        _CALLBACKS[name]: former[name] for name in _CALLBACKS if name in former
    }
    if former.get("tensorboard") and given.get("folder") is not None:
        callbacks["loggers"] = (TensorBoardLogger(given["folder"] / "tensorboard"),)
    if callbacks:
        given["callbacks"] = dataclasses.replace(given.get("callbacks") or Callbacks(), **callbacks)
    config: TeamConfig = given.get("config") or TeamConfig()
    if former.get("adapters") is not None:
        if config.adapters != "per_node":
            raise ConfigError("TeamTrainer: adapters are given twice; use TeamConfig(adapters=...)")
        groups: dict[str, tuple[str, ...]] = {}
        for agent, adapter in former["adapters"].items():
            groups[adapter] = (*groups.get(adapter, ()), agent)
        config = dataclasses.replace(config, adapters=groups)
    if former.get("trust") is not None:
        config = dataclasses.replace(config, trust=former["trust"].config)
    given["config"] = config
