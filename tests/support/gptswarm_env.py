"""The environment in which the real GPTSwarm is checked: 2 GB, about 5 minutes to build, kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASKED_FOR = "SWARM_UI_GPTSWARM_ENV"


class NoPython(Exception):
    """GPTSwarm's pinned pandas has no wheels for the Pythons found."""


def python() -> Path:
    """An interpreter with GPTSwarm.

    That named by ``SWARM_UI_GPTSWARM_ENV``; else the environment which the benchmarks compare with,
    built if need be.

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
    return Path(built.strip().splitlines()[-1])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(
            f"this failed: {' '.join(command)}\n{(done.stdout + done.stderr)[-4000:]}"
        )
    return done.stdout
