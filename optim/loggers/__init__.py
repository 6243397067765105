"""Loggers: where the metrics of a run go, besides ``metrics.jsonl``.

A logger is any object with :meth:`~Logger.start`, :meth:`~Logger.log` and :meth:`~Logger.finish`::

    Callbacks(loggers=[WandbLogger(folder), TensorBoardLogger(folder / "tensorboard")])

On the command line: ``swarm-ui train --log wandb --log tensorboard``.
"""

from __future__ import annotations

from swarm_ui.optim.loggers.logger import Logger, LoggerGroup, Status, flat, logging_to
from swarm_ui.optim.loggers.mlflow_logger import MLflowLogger
from swarm_ui.optim.loggers.tensorboard_logger import TensorBoardLogger
from swarm_ui.optim.loggers.wandb_logger import WandbLogger

__all__ = [
    "Logger",
    "LoggerGroup",
    "MLflowLogger",
    "Status",
    "TensorBoardLogger",
    "WandbLogger",
    "flat",
    "logging_to",
]
