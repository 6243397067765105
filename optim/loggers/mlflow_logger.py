"""Metrics in MLflow. Needs the extra ``mlflow``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swarm_ui.errors import MissingExtra
from swarm_ui.files import write_atomic
from swarm_ui.optim.loggers.logger import Status

_ID = "mlflow_run_id"
_ENDED: dict[Status, str] = {"finished": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
_PARAMETERS = 100
"""Maximum number of parameters of one request."""
_LONGEST = 500
"""Maximum number of characters of a parameter that every version of a server accepts."""


class MLflowLogger:
    """Logs to one run of an MLflow experiment.

    It uses the client and not the global run, so MLflow adds no user, file name or git state. The
    package's own variables apply: ``MLFLOW_TRACKING_URI``, ``MLFLOW_EXPERIMENT_NAME``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        experiment: str | None = None,
        name: str | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        """
        Args:
            folder: folder of the run. It stores the id of MLflow's run, so that a later logger with
                the same folder continues that run.
            experiment: name of the experiment; ``None``: the value of ``MLFLOW_EXPERIMENT_NAME``,
                or ``swarm-ui`` if it is not set.
            name: name of the run; ``None``: that of the folder.
            tracking_uri: ``None``: the value of ``MLFLOW_TRACKING_URI``, or MLflow's default if it
                is not set.

        Raises:
            MissingExtra: the package mlflow is not installed.
        """
        try:
            from mlflow import MlflowClient, entities
        except ImportError as error:
            raise MissingExtra("mlflow", "MLflow", error.name or "mlflow") from error
        self._make_client, self._entities = MlflowClient, entities
        self._folder, self._uri = folder, tracking_uri
        self._experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "swarm-ui"
        self._name = name or folder.resolve().name
        self._client: Any = None
        self._run = ""

    def start(self, config: Mapping[str, Any]) -> None:
        self._client = self._make_client(tracking_uri=self._uri)
        kept = self._folder / _ID
        if kept.is_file():
            self._run = kept.read_text(encoding="utf-8").strip()
            self._client.update_run(self._run, "RUNNING")
            return  # MLflow's parameters cannot be changed
        found = self._client.get_experiment_by_name(self._experiment)
        experiment = (
            self._client.create_experiment(self._experiment)
            if found is None
            else found.experiment_id
        )
        self._run = self._client.create_run(experiment, run_name=self._name).info.run_id
        write_atomic(kept, self._run + "\n")
        given = [
            self._entities.Param(name, str(value)[:_LONGEST]) for name, value in config.items()
        ]
        for at in range(0, len(given), _PARAMETERS):
            self._client.log_batch(self._run, params=given[at : at + _PARAMETERS])

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        points = [self._entities.Metric(name, value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._run, metrics=points)

    def finish(self, status: Status) -> None:
        self._client.set_terminated(self._run, _ENDED[status])
