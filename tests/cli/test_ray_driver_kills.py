"""``eval --on ray``, killed at random moments and resumed, ends like an undisturbed run."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")

from local_ray import SUPPORT, ray_environment

from benchmarks.speed.paced import digest
from swarm_ui.trace.jsonl import iter_jsonl

pytestmark = [
    pytest.mark.ray,
    pytest.mark.soak,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc"),
]

KILLS = 6
EPISODES = 20
MARK = "SWARM_UI_TEST_RUN"
"""A variable that all processes of a command inherit."""
PATIENCE = 300.0


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        ray_environment(Path(folder)),
    ):
        yield Path(folder)


def started(mark: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "swarm_ui", "eval", *words, "--quiet", "--trust"],
        env={**os.environ, MARK: mark}, cwd=SUPPORT, start_new_session=True,
    )  # fmt: skip


def evaluation(out: Path, place: str) -> list[str]:
    model = ["phone", "--split", "parameters", "-n", str(EPISODES), "env.max_steps=4"]
    workers = ["run.report=false"]
    if place != "local":
        workers += ["place.workers=2", "place.episodes=4"]
    return [*model, "--model", "paced_model:paced", "--on", place, *workers, "--out", str(out)]


def written(run: Path) -> int:
    """Episodes in the trace files of a run so far."""
    return sum(path.read_bytes().count(b"\n") for path in run.glob("traces/*.jsonl"))


def until(true: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"not in {PATIENCE:g} s: {what}"
        time.sleep(0.01)


def running(mark: str) -> list[str]:
    """The command lines of the processes with that mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has just ended, or is not ours
    return found


def episodes(run: Path) -> Counter[str]:
    """The digests of the episodes, and how often each is there."""
    return Counter(digest(e) for path in run.glob("traces/*.jsonl") for e in iter_jsonl(path))


def outcomes(run: Path) -> list[object]:
    arms = json.loads((run / "results.json").read_text(encoding="utf-8"))["arms"]
    return [(arm["jobs"], arm["outcomes"]) for arm in arms]


def test_a_killed_driver_loses_and_doubles_nothing(tmp_path: Path, ray_folder: Path) -> None:
    quiet = tmp_path / "quiet"
    assert started("quiet", *evaluation(quiet, "local")).wait(PATIENCE) in (0, 1)
    expected = episodes(quiet)
    assert expected.total() == len(expected) == EPISODES
    for seed in range(KILLS):
        rng, run, mark = random.Random(seed), tmp_path / f"run-{seed}", f"kill-{seed}-{os.getpid()}"
        driver = started(mark, *evaluation(run, "ray"))
        # The first is killed while the cluster starts, the others while it plays.
        after = rng.randint(1, EPISODES - 9) if seed else 0
        until(lambda: (run / "config.json").exists() and written(run) >= after, "episodes")  # noqa: B023
        time.sleep(rng.uniform(0.0, 0.1 if seed else 3.0))
        driver.kill()
        assert driver.wait() == -signal.SIGKILL, "it ended before it was killed"
        kept = written(run)
        until(lambda: not running(mark), f"the end of {running(mark)}")  # noqa: B023
        place = ("ray", "local")[seed % 2]
        resumed = started(mark, "--resume", str(run), "--on", place)
        assert resumed.wait(PATIENCE) in (0, 1)
        assert after <= kept < EPISODES
        assert episodes(run) == expected
        assert outcomes(run) == outcomes(quiet)
        until(lambda: not running(mark), f"the end of {running(mark)}")  # noqa: B023
