"""Child processes that are interrupted or killed, or that hold the lock of a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
_HOLD = """
import sys
from pathlib import Path
from swarm_ui.files import only_writer
with only_writer(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def hear_ctrl_c() -> None:
    """A ``preexec_fn``: what a shell runs in the background inherits that Ctrl-C is ignored, and
    so would the child."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*words: str, **environment: str) -> subprocess.Popen[str]:
    """``swarm-ui`` in a process of its own, which finds the worlds of the tests."""
    path = os.pathsep.join([str(SUPPORT.parents[1]), str(SUPPORT)])
    return subprocess.Popen(
        [sys.executable, "-m", "swarm_ui", *words], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path, **environment}, preexec_fn=hear_ctrl_c,
    )  # fmt: skip


def wait_for(
    process: subprocess.Popen[str], ready: Callable[[], bool], seconds: float = 120
) -> None:
    """Wait until something is so, while the process runs."""
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.05)


def interrupted(process: subprocess.Popen[str]) -> str:
    """What the process says of a Ctrl-C, on one line."""
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    return " ".join(err.split())


def written(path: Path) -> int:
    """The number of lines of a file that may not exist yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


@contextmanager
def held(folder: Path, part: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of a folder."""
    words = [sys.executable, "-c", _HOLD, str(folder), part]
    env, pipe = {**os.environ, "PYTHONPATH": str(SUPPORT.parents[1])}, subprocess.PIPE
    with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
