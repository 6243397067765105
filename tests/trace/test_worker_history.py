"""Histories of workers: states, shares of time, and what they did when."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from swarm_ui.trace.worker_events import WorkerEvent, WorkerEventKind
from swarm_ui.trace.worker_history import Part, WorkerHistory, sessions


def event(kind: WorkerEventKind, at: float, worker: int = 0, **more: Any) -> WorkerEvent:
    return WorkerEvent(kind=kind, at=at, worker=worker, **more)


def only(*events: WorkerEvent) -> WorkerHistory:
    ((worker,),) = sessions(events)
    return worker


PLAYED = event(
    "finished", 20, job=1, queued=8, began=10, environment=5, model=4.5, laps=((0, 2), (6, 3)),
    success=True,
)  # fmt: skip


def test_an_episode_is_cut_into_its_parts() -> None:
    worker = only(event("started", 9), event("assigned", 10, job=1), PLAYED)
    assert [*worker.parts()] == [
        Part("waiting", 8, 10), Part("environment", 10, 12), Part("deciding", 12, 16),
        Part("environment", 16, 19), Part("deciding", 19, 20),
    ]  # fmt: skip
    assert worker.state == "idle" and worker.playing == {}
    times = worker.times
    assert (times.environment, times.deciding, times.waiting, times.idle) == (5, 5, 2, 0)
    assert (times.calls, times.total) == (4.5, 12)


def test_without_the_time_of_each_operation_the_share_is_right() -> None:
    worker = only(event("finished", 20, job=1, queued=10, began=10, environment=4))
    assert [*worker.parts()] == [Part("environment", 10, 14), Part("deciding", 14, 20)]


def test_laps_outside_of_the_attempt_do_not_leave_it() -> None:
    odd = event("finished", 20, queued=10, began=10, environment=99, laps=((-5, 3), (9, 90)))
    parts = [*only(odd).parts()]
    assert parts[0].begin == 10 and parts[-1].end == 20
    assert all(before.end == after.begin for before, after in itertools.pairwise(parts))


def test_states_of_a_worker_that_waits_plays_and_is_lost() -> None:
    worker = WorkerHistory(3)
    worker.add(event("waiting", 1, 3, text="emulator 1"))
    worker.add(event("waiting", 4, 3, text="emulator 1"))
    assert (worker.state, worker.text) == ("waiting", "emulator 1")
    worker.add(event("started", 6, 3, node="gpu-1"))
    assert (worker.state, worker.node, worker.times.waiting) == ("idle", "gpu-1", 5)
    worker.add(event("assigned", 7, 3, job=1, task="a"))
    worker.add(event("assigned", 7, 3, job=2, task="b"))
    worker.add(event("finished", 9, 3, job=1, began=7, queued=7))
    assert worker.state == "playing" and [*worker.playing] == [2]
    worker.add(event("lost", 10, 3, text="its node died"))
    worker.add(event("lost", 10, 3, job=2, text="its node died"))
    assert (worker.state, worker.text) == ("lost", "its node died")
    assert worker.playing == {} and len(worker.losses) == 1
    worker.add(event("closed", 11, 3))
    assert worker.state == "lost", "the reason is kept"


def test_the_workers_of_a_resumed_run_are_others() -> None:
    first = [event("session", 0, -1), event("started", 1), event("assigned", 2, job=1)]
    second = [event("session", 50, -1), event("started", 51), event("started", 51, 1)]
    old, new = sessions(first + second)
    assert [w.worker for w in old] == [0] and old[0].state == "playing"
    assert [w.worker for w in new] == [0, 1] and new[0].state == "idle"
    assert sessions([]) == [] and sessions([event("session", 1, -1)]) == []


def test_a_worker_waits_from_when_it_was_asked_for() -> None:
    worker = only(event("waiting", 6), event("started", 9, queued=1), event("closed", 10))
    assert [*worker.parts()] == [Part("waiting", 1, 9)]
    assert (worker.times.waiting, worker.times.idle) == (8, 1)


def test_time_without_a_job_is_idle() -> None:
    assert only(event("started", 1), event("closed", 9)).times.idle == 8
    worker = only(event("started", 0), PLAYED, event("closed", 40))
    assert worker.times.idle == pytest.approx(40 - 12)


def test_episodes_at_the_same_time_leave_no_idle_time() -> None:
    both = [event("finished", 10, job=k, queued=0, began=0, environment=4) for k in range(2)]
    times = only(event("started", 0), *both, event("closed", 20)).times
    assert (times.environment, times.deciding, times.idle) == (8, 12, 10)
