"""``--on ray``: the same run in workers of a cluster; interrupted there, and resumed here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_world import BROKEN, LAMP, SLOW, Shell
from interrupts import hear_ctrl_c
from local_ray import local_ray
from mortal_worlds import timeless

from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Episode

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LAMP_SECONDS", "0.3")  # of the workers
            found = stack.enter_context(local_ray(cpus=4))
        yield found


def played(folder: Path, name: str = "episodes") -> list[Episode]:
    return sorted(read_jsonl(folder / f"traces/{name}.jsonl"), key=lambda e: (e.task, e.seed))


@pytest.mark.ray
@pytest.mark.slow
def test_the_base_agent_plays_the_same_episodes_on_a_cluster(shell: Shell, cluster: str) -> None:
    line = "eval phone -n 8 --agents 2 team.vote=probability team.views=shuffle --split parameters"
    # The episodes of one process share the batches of its model, which change the last digits of
    # probabilities: so one at a time, as in each worker.
    here = shell(f"{line} -j 1 --out here --json")
    there = shell(f"{line} --out there --on ray place.workers=2 --json")
    assert there.code == here.code == 0, there.err
    ours, theirs = (played(shell.folder / name, "parameters") for name in ("here", "there"))
    assert len(theirs) == 8 and [timeless(e) for e in ours] == [timeless(e) for e in theirs]
    for name in ("solved", "episodes"):
        assert here.json["plans"][0][name] == there.json["plans"][0][name]


@pytest.mark.ray
@pytest.mark.slow
def test_faults_and_mistakes_of_workers_end_as_they_do_here(shell: Shell, cluster: str) -> None:
    broken = shell(f"eval {BROKEN} -n 2 --model script:right.txt --on ray place.workers=1 --out r")
    assert broken.code == 3 and "the bulb is gone" in broken.err
    lacking = shell(f"eval {LAMP} -n 2 --model script:right.txt --on ray place.episodes=0 --out s")
    assert lacking.code == 2 and "episodes" in lacking.err


@pytest.mark.ray
@pytest.mark.slow
def test_ctrl_c_ends_the_workers_and_the_rest_is_played_here(shell: Shell, cluster: str) -> None:
    words = ["eval", SLOW, "-n", "8", "--model", "script:right.txt", "--out", "r"]
    words += ["--on", f"ray:{cluster}", "place.workers=1"]
    path = f"{ROOT}:{ROOT}/tests/support"
    process = subprocess.Popen(
        [sys.executable, "-m", "swarm_ui", *words], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path}, preexec_fn=hear_ctrl_c,
    )  # fmt: skip
    traces = shell.folder / "r/traces/episodes.jsonl"
    until = time.monotonic() + 120
    while not (traces.exists() and traces.read_bytes().count(b"\n") >= 2):
        assert time.monotonic() < until and process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "continue with: swarm-ui eval --resume r" in " ".join(err.split())
    saved = read_jsonl(traces)
    assert 2 <= len(saved) < 8
    refused = shell("eval --resume r")
    assert refused.code == 2 and "send its work to the Ray cluster at" in refused.err
    done = shell("eval --resume r --trust --on local --json")
    assert done.code == 0 and done.json["plans"][0]["episodes"] == 8
    assert read_jsonl(traces)[: len(saved)] == saved and len(read_jsonl(traces)) == 8
    import ray

    assert ray.available_resources()["CPU"] == 4.0  # no worker was left behind
