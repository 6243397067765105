"""The loggers keep their promises with the real wandb and mlflow, offline.

``SWARM_UI_LOGGERS_PYTHON`` names a Python with wandb, mlflow (or mlflow-skinny) and the core's
dependencies.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("SWARM_UI_LOGGERS_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # both packages take long to import on a busy machine
    pytest.mark.skipif(not PYTHON, reason="SWARM_UI_LOGGERS_PYTHON names no Python"),
]


@pytest.mark.parametrize("package", ["wandb", "mlflow"])
def test_a_run_that_is_resumed_is_one_record_without_secrets(package: str, tmp_path: Path) -> None:
    program = Path(__file__).with_name("logger_checks.py")
    done = subprocess.run(
        # Secrets where these packages look by themselves: the command line and the environment.
        [PYTHON, str(program), package, str(tmp_path), "--url", "http://me:hunter2@host/v1"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "WANDB_MODE": "offline",
             "MLFLOW_ALLOW_FILE_STORE": "true", "HOME": str(tmp_path), "TOKEN": "hunter2"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "works" in done.stdout, done.stdout + done.stderr
