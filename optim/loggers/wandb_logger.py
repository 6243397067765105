"""Metrics in Weights & Biases. Needs the extra ``wandb``."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_ui.errors import MissingExtra
from swarm_ui.files import write_atomic
from swarm_ui.optim.loggers.logger import Status

_ID = "run_id"
"""The file with the id of the run, so that a resumed run continues its curves."""


class WandbLogger:
    """Logs to one run of Weights & Biases.

    Only the metrics and the settings are sent: no console output, source code, command line, git
    state or machine information, because these may hold secrets. The package's own variables
    apply: ``WANDB_API_KEY``, ``WANDB_PROJECT``, ``WANDB_ENTITY``, ``WANDB_MODE=offline``,
    ``WANDB_SILENT``.
    """

    def __init__(
        self, folder: Path, *, project: str | None = None, name: str | None = None
    ) -> None:
        """
        Args:
            folder: folder of the run. The package writes its files into ``folder / "wandb"``; a
                later logger with the same folder continues the run.
            project: ``None``: ``WANDB_PROJECT``, or else ``swarm-ui``.
            name: name of the run; ``None``: that of the folder.

        Raises:
            MissingExtra: the package wandb is not installed.
        """
        try:
            import wandb
        except ImportError as error:
            raise MissingExtra("wandb", "Weights & Biases", error.name or "wandb") from error
        self._wandb, self._folder = wandb, folder
        self._project = project or os.environ.get("WANDB_PROJECT") or "swarm-ui"
        self._name = name or folder.resolve().name
        self._run: Any = None

    def start(self, config: Mapping[str, Any]) -> None:
        kept = self._folder / "wandb" / _ID
        known = kept.read_text(encoding="utf-8").strip() if kept.is_file() else ""
        if not known:
            known = secrets.token_hex(8)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(kept, known + "\n")
        settings = self._wandb.Settings(
            console="off", save_code=False, disable_git=True, disable_job_creation=True,
            x_disable_meta=True, x_disable_stats=True, x_disable_machine_info=True,
        )  # fmt: skip
        self._run = self._wandb.init(
            project=self._project, name=self._name, id=known, resume="allow",
            dir=str(self._folder), config=dict(config), settings=settings,
        )  # fmt: skip

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def finish(self, status: Status) -> None:
        self._run.finish(exit_code=0 if status == "finished" else 1)
