"""A program that forks children which are made to be killed, and how to talk to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def children(
    script: str, *arguments: object, stderr: IO[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The program; it and its children are gone in the end."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / script), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests/support", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


def say(process: subprocess.Popen[str], *words: object) -> str:
    """One line to the program; its answer."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(" ".join(map(str, words)) + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()
