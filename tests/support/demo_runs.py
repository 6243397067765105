"""What the tests of the demo share: how to run it, and what to skip where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from here import run_here

ROOT = Path(__file__).resolve().parents[2]
DEMOS = ROOT / "demos"
SCRIPT = DEMOS / "androidworld_swarm.py"

needs_agent = pytest.mark.skipif(
    not (ROOT / "nodes" / "models" / "tiny_agent" / "base_agent" / "config.json").is_file(),
    reason="no base agent: make one with python -m demos.base_agent",
)


def environment(**extra: str) -> dict[str, str]:
    """Of a process that finds the library in this checkout."""
    paths = [extra.pop("PYTHONPATH", ""), str(ROOT)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p), **extra}


def demo(
    *arguments: object, cwd: Path, process: bool = False, **extra: str
) -> CompletedProcess[str]:
    """Run the demo's script to its end, in this process, or in another one.

    A ``PYTHONPATH``, which may hide modules, needs another one.
    """
    words = [str(SCRIPT), *map(str, arguments)]
    fresh, env = process or "PYTHONPATH" in extra, environment(**extra)
    if not fresh:
        return run_here(words, cwd=cwd, env=env)
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )


def without(folder: Path, module: str) -> str:
    """A ``PYTHONPATH`` with which a module cannot be imported."""
    (folder / f"{module}.py").write_text(f"raise ImportError('no {module} here')\n")
    return str(folder)
