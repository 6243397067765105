"""The environment in which the real GPTSwarm is checked: 2 GB, about 5 minutes to build, kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASKED_FOR = "SWARM_UI_GPTSWARM_ENV"
CHECKS = [
    "tests/nodes/gptswarm/gptswarm_checks.py",
    "tests/nodes/gptswarm/gptswarm_checks_swarm.py",
]
TOOLS = ["pytest>=8.3", "pytest-asyncio>=1.0", "pytest-timeout>=2.3"]


class NoPython(Exception):
    """GPTSwarm's pinned pandas has no wheels for the Pythons found."""


def python() -> Path:
    """An interpreter with GPTSwarm, pytest and what our core needs.

    That named by ``SWARM_UI_GPTSWARM_ENV``, as it is; else the environment which the benchmarks
    compare with, built if need be, with our core's dependencies added.

    Raises:
        NoPython: there is no Python 3.11 to build with.
        RuntimeError: the variable names no file, or building failed; the message has the reason.
    """
    given = os.environ.get(ASKED_FOR)
    if given:
        if not Path(given).is_file():
            raise RuntimeError(f"{ASKED_FOR} must name a Python interpreter, got {given!r}")
        return Path(given)
    builder = sys.executable if sys.version_info[:2] == (3, 11) else shutil.which("python3.11")
    if builder is None:
        raise NoPython(f"GPTSwarm needs a python3.11 on the PATH, or {ASKED_FOR}")
    built = _run([builder, "-m", "benchmarks.speed.environments", "gptswarm"])
    interpreter = Path(built.strip().splitlines()[-1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # The extra itself once more, so that our dependencies cannot move what it pins.
    wanted = [*project["dependencies"], *project["optional-dependencies"]["gptswarm"], *TOOLS]
    stamp = interpreter.parent.parent / "checks.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != "\n".join(wanted):
        _run([str(interpreter), "-m", "pip", "install", *wanted])
        stamp.write_text("\n".join(wanted), encoding="utf-8")
    return interpreter


def run_checks(interpreter: Path) -> subprocess.CompletedProcess[str]:
    """Run the checks with that interpreter, away from this project's pytest settings."""
    own = ["--noconftest", "-o", "addopts=", "-o", "filterwarnings=default"]
    return subprocess.run(
        [str(interpreter), "-m", "pytest", *own, "-q", "--timeout=120", *CHECKS],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(
            f"this failed: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}"
        )
    return done.stdout
