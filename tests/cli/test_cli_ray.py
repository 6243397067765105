"""``--on ray``: the same run in workers of a cluster; interrupted there, and resumed here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli_world import BROKEN, LAMP, SLOW, Shell
from interrupts import interrupted, started, wait_for, written
from local_ray import local_ray
from mortal_worlds import timeless

from swarm_ui.trace.jsonl import read_jsonl
from swarm_ui.trace.records import Episode


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
    process = started(*words)
    traces = shell.folder / "r/traces/episodes.jsonl"
    wait_for(process, lambda: written(traces) >= 2)
    assert "continue with: swarm-ui eval --resume r" in interrupted(process)
    saved = read_jsonl(traces)
    assert 2 <= len(saved) < 8
    refused = shell("eval --resume r")
    assert refused.code == 2 and "send its work to the Ray cluster at" in refused.err
    done = shell("eval --resume r --trust --on local --json")
    assert done.code == 0 and done.json["plans"][0]["episodes"] == 8
    assert read_jsonl(traces)[: len(saved)] == saved and len(read_jsonl(traces)) == 8
    import ray

    assert ray.available_resources()["CPU"] == 4.0  # no worker was left behind
