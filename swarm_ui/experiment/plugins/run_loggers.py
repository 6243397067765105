"""Loggers of a run by name: ``tensorboard``, ``wandb``, ``mlflow``, a plug-in, or code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swarm_ui.experiment.config import Finding
from swarm_ui.experiment.plugins.entry_points import plugin, unknown_name
from swarm_ui.experiment.results import ArmResult, Results
from swarm_ui.experiment.user_code import callable_of, made_of
from swarm_ui.optim.loggers import Logger, MLflowLogger, TensorBoardLogger, WandbLogger

LOGGERS: dict[str, Callable[[Path], Logger]] = {
    "tensorboard": lambda folder: TensorBoardLogger(folder / "tensorboard"),
    "wandb": WandbLogger,
    "mlflow": MLflowLogger,
}
"""The loggers of this package by name. Each is made from the folder of the run."""
_LOCAL = ("tensorboard",)
"""Loggers that only write into the folder of the run."""


def make_loggers(names: Sequence[str], folder: Path) -> list[Logger]:
    """The loggers of a run.

    Args:
        names: those of :data:`LOGGERS`, plug-ins, or ``module:factory``; a plug-in or a user's
            factory is called with the folder.
        folder: the folder of the run.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: a factory cannot be called, or returns no logger.
    """
    return [
        LOGGERS[name](folder)
        if name in LOGGERS
        else made_of("loggers", name, Logger, ("start", "log", "finish"), folder)
        for name in names
    ]


def logger_findings(names: Sequence[str]) -> Iterator[Finding]:
    """Mistakes in the choice of loggers. Nothing is imported."""
    at = ("run", "log")
    for number, name in enumerate(names):
        if name in names[:number]:
            yield at, f"the logger '{name}' is named twice"
        elif name not in LOGGERS and ":" not in name and plugin("loggers", name) is None:
            yield at, unknown_name("loggers", name, LOGGERS, "module:factory")


def check_loggers(names: Sequence[str]) -> None:
    """Import the loggers, before anything is written.

    Raises:
        MissingExtra: a package is not installed.
        ConfigError: a factory cannot be imported.
    """
    for name in names:
        if name in LOGGERS:
            LOGGERS[name](Path())  # imports its package, and writes nothing
        else:
            callable_of("loggers", name)


def logger_demands(names: Sequence[str]) -> Iterator[str]:
    """Actions of the loggers in a folder's settings that need the user's consent."""
    for name in names:
        if name not in LOGGERS:
            yield f"import and call '{name}' (a logger)"
        elif name not in _LOCAL:
            yield f"send settings and metrics to {name}"


def result_scalars(results: Results) -> Mapping[str, float]:
    """The results of an evaluation as metrics by name: ``success/SPLIT``, with its interval, and
    costs."""
    found: dict[str, Any] = {}
    for arm in results.arms:
        name = _name(arm)
        interval = arm.success
        if interval is not None:
            found |= {
                f"success/{name}": interval.mean,
                f"success/{name}_low": interval.low,
                f"success/{name}_high": interval.high,
            }
        found |= {
            f"episodes/{name}": arm.counted,
            f"masked/{name}": arm.masked,
            f"calls_per_decision/{name}": arm.work.calls_per_decision,
            f"tokens/{name}": arm.work.tokens,
            f"seconds/{name}": arm.work.seconds,
        }
    return {name: float(value) for name, value in found.items()}


def _name(arm: ArmResult) -> str:
    """The split, with the seed if a run has several."""
    return arm.name or arm.split.replace("/", "-") or "episodes"
