"""Checks of loggers against the real packages: ``python logger_checks.py wandb|mlflow FOLDER``.

Run in an environment with wandb and mlflow (or mlflow-skinny) by test_loggers_real.py. Nothing is
sent anywhere: wandb is offline, and mlflow writes files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from swarm_ui.optim.loggers import Logger, MLflowLogger, WandbLogger, logging_to

CONFIG = {
    "train": {"iterations": 3, "update": {"method": "rft"}},
    "model": {"name": "tiny", "url": "http://me:hunter2@host/v1"},
    "team": {"agents": ("ada", "grace"), "seed": None},
    "long": "x" * 9_000,
    **{f"setting_{k}": k for k in range(120)},
}
METRICS = {"rollout/success": 0.5, "edge/ada to grace": 0.25, "seconds/cpu": 3.0}


def record(make: Callable[[], Logger]) -> None:
    """A run that is interrupted after two steps, and resumed for the third."""
    said: list[str] = []
    try:
        with logging_to([make()], CONFIG, said.append) as loggers:
            for step in (0, 1):
                loggers.log(METRICS, step)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    with logging_to([make()], CONFIG, said.append) as loggers:
        loggers.log({**METRICS, "rollout/success": 0.75}, 2)
    assert said == [], said


def check_mlflow(folder: Path) -> None:
    from mlflow import MlflowClient

    uri = f"file://{folder / 'server'}"
    run = folder / "run"
    run.mkdir()
    record(lambda: MLflowLogger(run, tracking_uri=uri))
    client: Any = MlflowClient(tracking_uri=uri)
    (found,) = client.search_runs([client.get_experiment_by_name("swarm-ui").experiment_id])
    points = client.get_metric_history(found.info.run_id, "rollout/success")
    assert [(p.step, p.value) for p in points] == [(0, 0.5), (1, 0.5), (2, 0.75)]
    assert set(found.data.metrics) == set(METRICS)
    assert found.data.params["train.update.method"] == "rft"
    assert found.data.params["team.agents"] == "ada, grace"
    assert len(found.data.params) == 127
    assert found.info.status == "FINISHED"
    assert found.data.tags == {"mlflow.runName": "run"}, "no user, no file, no commit"


def check_wandb(folder: Path) -> None:
    run = folder / "run"
    run.mkdir()
    record(lambda: WandbLogger(run))
    kept = sorted((run / "wandb").glob("offline-run-*/*.wandb"))
    name = (run / "wandb" / "run_id").read_text().strip()
    assert [path.name for path in kept] == [f"run-{name}.wandb"] * 2, "one run, in two parts"
    first, second = (path.read_bytes() for path in kept)
    for part in (first, second):
        for text in ("rollout/success", "edge/ada to grace", "train.update.method", "swarm-ui"):
            assert text.encode() in part, text
    assert b"0.75" in second and b"0.75" not in first


if __name__ == "__main__":
    place = Path(sys.argv[2])
    {"mlflow": check_mlflow, "wandb": check_wandb}[sys.argv[1]](place)
    leaks = [p for p in place.rglob("*") if p.is_file() and b"hunter2" in p.read_bytes()]
    assert leaks == [], leaks
    print("works")
