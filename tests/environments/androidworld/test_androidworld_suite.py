"""Suites of AndroidWorld: which jobs, and what is left of them after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.environments.androidworld.suite import Journal, instance_seed, suite
from swarm_ui.errors import ConfigError, Failure
from swarm_ui.trace.records import Episode

JOBS = suite(["WifiOn", "WifiOff"], combinations=2, seed=30)


def episode(job: tuple[str, int], success: bool | None) -> Episode:
    fault = Failure(kind="environment", message="the device is gone") if success is None else None
    return Episode(
        environment="android_world", task=job[0], seed=job[1], success=success, fault=fault
    )


def test_jobs_are_upstreams_in_upstreams_order() -> None:
    assert [task for task, _ in JOBS] == ["WifiOff", "WifiOff", "WifiOn", "WifiOn"]
    assert len({seed for _, seed in JOBS}) == 4
    # SHA-256 of "30_WifiOn_0" as a number, modulo 2**32.
    assert instance_seed(30, "WifiOn", 0) == JOBS[2][1] == 3403284504
    same = suite(["WifiOn"], combinations=3, seed=30, identical=True)
    assert same == [JOBS[2]] * 3
    with pytest.raises(ConfigError, match="combinations"):
        suite(["WifiOn"], combinations=0)


@given(st.integers(0, 2**40), st.text(min_size=1), st.integers(0, 50))
def test_seeds_fit_upstreams_generators(seed: int, task: str, number: int) -> None:
    assert 0 <= instance_seed(seed, task, number) < 2**32


def test_an_interrupted_suite_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "suite.jsonl"
    journal = Journal(path)
    assert journal.left(JOBS) == JOBS
    journal.add(episode(JOBS[0], True))
    journal.add(episode(JOBS[1], None))
    journal.add(episode(JOBS[2], False))
    with path.open("ab") as file:
        file.write(b'{"task":"Wifi')  # the process was killed here
    again = Journal(path)
    assert again.entries == journal.entries
    assert again.left(JOBS) == [JOBS[1], JOBS[3]], "what had a fault is played again"
    again.add(episode(JOBS[1], False))
    again.add(episode(JOBS[3], True))
    whole = Journal(path)
    assert whole.left(JOBS) == []
    score = whole.score()
    assert (score.tasks, score.episodes, score.mean) == (2, 4, 0.5)
    assert score.by_task == {"WifiOff": 0.5, "WifiOn": 0.5}


def test_equal_jobs_are_each_done_once(tmp_path: Path) -> None:
    jobs = suite(["WifiOn"], combinations=3, identical=True)
    journal = Journal(tmp_path / "suite.jsonl")
    journal.add(episode(jobs[0], True))
    assert journal.left(jobs) == jobs[1:]


def test_the_mean_is_over_tasks(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "suite.jsonl")
    assert journal.score().mean == 0.0
    for task, success in (("A", True), ("A", True), ("A", True), ("B", False), ("B", None)):
        journal.add(episode((task, 1), success))
    assert journal.score().mean == 0.5


def test_a_broken_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    path.write_bytes(b'not JSON\n{"task":"A","seed":1,"success":true,"steps":0}\n')
    with pytest.raises(ConfigError, match="line 1"):
        Journal(path)
