"""Metrics as TensorBoard scalars: ``tensorboard --logdir runs/RUN/tensorboard``.

Needs the extra ``tensorboard``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm_ui.errors import MissingExtra
from swarm_ui.optim.loggers.logger import Status

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class TensorBoardLogger:
    """Writes scalars, and the settings as a text, into a folder. Every step is flushed to disk."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: where the event files are written; created with the first metrics.

        Raises:
            MissingExtra: the package tensorboard, or torch, is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            extra = "train" if error.name == "torch" else "tensorboard"
            raise MissingExtra(extra, "TensorBoard", error.name or "tensorboard") from error
        self._folder, self._make_writer = folder, SummaryWriter
        self._config: Mapping[str, Any] = {}
        self._writer: SummaryWriter | None = None

    def start(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Write scalars.

        If a killed run already wrote points for this or a later step, the first call removes them
        from the curves.
        """
        if self._writer is None:
            self._writer = self._make_writer(str(self._folder), purge_step=step)
            if self._config:
                lines = json.dumps(dict(self._config), indent=1).splitlines()
                self._writer.add_text("config", "\n".join(f"    {line}" for line in lines), step)
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def finish(self, status: Status) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
