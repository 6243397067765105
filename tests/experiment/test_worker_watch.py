"""The record of workers in a run's folder, and what the progress display says about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swarm_ui.experiment.live.worker_watch import WorkerWatch
from swarm_ui.trace.worker_events import (
    WORKER_FILE,
    WorkerEvent,
    WorkerEventKind,
    read_worker_events,
)
from swarm_ui.trace.worker_history import sessions


def event(kind: WorkerEventKind, worker: int = 0, **more: Any) -> WorkerEvent:
    return WorkerEvent(kind=kind, worker=worker, at=more.pop("at", 10.0), **more)


def test_events_are_lines_with_the_name_of_their_trace(tmp_path: Path) -> None:
    with WorkerWatch(tmp_path, pytest.fail) as watch:
        watch(event("started"))
        watch.shown("parameters")
        watch(event("finished", job=3, began=1.0, success=False))
    found = read_worker_events(tmp_path)
    assert [e.kind for e in found] == ["session", "started", "finished"]
    assert (found[2].trace, found[2].job, found[2].success) == ("parameters", 3, False)
    with WorkerWatch(tmp_path, pytest.fail) as watch:
        watch(event("started"))
    assert len(sessions(read_worker_events(tmp_path))) == 2


def test_a_line_cut_off_by_a_kill_is_removed(tmp_path: Path) -> None:
    (tmp_path / WORKER_FILE).write_bytes(b'{"kind":"session","worker":-1,"at":1}\n{"kind":"sta')
    with WorkerWatch(tmp_path, pytest.fail) as watch:
        watch(event("started"))
    assert [e.kind for e in read_worker_events(tmp_path)] == ["session", "session", "started"]


def test_nothing_is_written_before_something_happens(tmp_path: Path) -> None:
    with WorkerWatch(tmp_path, pytest.fail):
        pass
    assert not (tmp_path / WORKER_FILE).exists()


def test_a_file_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / WORKER_FILE).mkdir()
    told: list[str] = []
    with WorkerWatch(tmp_path, told.append) as watch:
        watch(event("started"))
        watch(event("closed"))
    assert len(told) == 1 and "not recorded" in told[0]


def test_places_of_this_process_are_not_summed_up(tmp_path: Path) -> None:
    with WorkerWatch(tmp_path, pytest.fail) as watch:
        watch(event("started"))
        watch(event("assigned", job=1))
        assert watch.note == ""


def test_workers_of_a_cluster_are_summed_up_and_warned_about(tmp_path: Path) -> None:
    told: list[str] = []
    seen: list[str] = []
    now = 0.0
    with WorkerWatch(tmp_path, told.append, clock=lambda: now) as watch:
        watch.shown("", lambda: seen.append(watch.note))
        for k in range(3):
            watch(event("waiting", k, text=f"worker {k} waits for emulator 1"))
        assert watch.note == "0 workers, 3 waiting for resources"
        assert told == ["worker 0 waits for emulator 1"], "not a line for each worker"
        now = 61.0
        watch(event("waiting", 2, text="worker 2 waits for emulator 1"))
        assert len(told) == 2
        for k in range(2):
            watch(event("started", k, node="10.0.0.5"))
        watch(event("assigned", 0, job=0, node="10.0.0.5"))
        assert watch.note == "2 workers, 1 playing, 1 waiting for resources"
        watch(event("lost", 0, node="10.0.0.5", text="worker 0 on 10.0.0.5: its node died"))
        watch(event("lost", 0, job=0, node="10.0.0.5", text="its node died"))
    assert watch.note == "1 worker, 1 waiting for resources, 1 lost"
    assert told[2:] == [
        "worker 0 on 10.0.0.5: its node died; its episodes are played again elsewhere"
    ]
    assert seen[-1] == watch.note and len(seen) == len(set(seen))
