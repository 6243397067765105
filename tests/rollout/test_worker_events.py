"""What a pool tells about its places, and the file that keeps it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from graph_fakes import FixedModel, click, in_virtual_time

from swarm_ui import (
    Action,
    CollabGraph,
    Completion,
    Element,
    EnvironmentFault,
    GraphPolicy,
    Observation,
    Request,
    Step,
)
from swarm_ui.rollout import LocalRollout, play_jobs
from swarm_ui.rollout.pool import Restarts
from swarm_ui.rollout.worker_reporter import told_elsewhere
from swarm_ui.trace.worker_events import (
    MOST_LAPS,
    WORKER_FILE,
    WorkerEvent,
    read_worker_events,
)


class Thinker(FixedModel):
    """Needs two seconds for an answer."""

    async def generate(self, requests: list[Request]) -> list[Completion]:  # type: ignore[override]
        await asyncio.sleep(2)
        return await super().generate(requests)


class World:
    """A reset takes 1 second, a step 3, and an episode as many steps as its seed says."""

    name = "world"
    tasks = ("act",)

    def __init__(self) -> None:
        self.left = 0

    def look(self) -> Observation:
        return Observation(goal="act", elements=(Element(index=0, role="button", text="b"),))

    async def reset(self, *, task: str, seed: int) -> Observation:
        await asyncio.sleep(1)
        self.left = seed
        return self.look()

    async def step(self, action: Action) -> Step:
        await asyncio.sleep(3)
        self.left -= 1
        if self.left < 0:
            raise EnvironmentFault("the emulator is gone")
        over = not self.left
        return Step(observation=self.look(), reward=float(over), terminated=over)

    async def close(self) -> None: ...


async def slow_start() -> World:
    await asyncio.sleep(5)
    return World()


def told(*seeds: int, places: int = 1, restarts: Restarts | None = None) -> list[WorkerEvent]:
    """The events of these episodes, with times since the first one."""
    events: list[WorkerEvent] = []
    policy = GraphPolicy(CollabGraph.solo(Thinker({None: click(0)})))

    async def main() -> None:
        rollouts = LocalRollout(
            slow_start, concurrency=places, restarts=restarts, on_event=events.append
        )
        async with rollouts:
            await play_jobs(rollouts, policy, [("act", seed) for seed in seeds])

    in_virtual_time(main())
    return events


def test_where_the_time_of_an_episode_went() -> None:
    events = told(2, 1)
    assert [e.kind for e in events] == [
        "started", "assigned", "finished", "assigned", "finished", "closed",
    ]  # fmt: skip
    assert {e.worker for e in events} == {0} and {e.node for e in events} == {""}
    first, second = (e for e in events if e.kind == "finished")
    assert (first.job, first.task, first.seed, first.success) == (0, "act", 2, True)
    assert first.waited == pytest.approx(5), "its environment was started"
    assert first.began is not None and first.at - first.began == pytest.approx(11)
    assert (first.model, first.environment) == (pytest.approx(4), pytest.approx(7))
    assert first.laps == ((0, 1), (3, 3), (8, 3))
    assert (second.job, second.seed, second.waited) == (1, 1, pytest.approx(0))


def test_two_places_are_two_workers() -> None:
    events = told(1, 1, 1, places=2)
    assert {e.worker for e in events if e.kind == "started"} == {0, 1}
    assert sorted(e.job for e in events if e.kind == "finished" and e.job is not None) == [0, 1, 2]


def test_each_attempt_is_told_and_a_place_that_is_given_up() -> None:
    events = told(0, restarts=Restarts(retries=1, limit=1))
    ended = [e for e in events if e.kind == "finished"]
    assert [e.success for e in ended] == [None, None]
    assert all("the emulator is gone" in e.fault for e in ended)
    assert ended[1].waited == pytest.approx(5), "another emulator was started"
    (lost,) = (e for e in events if e.kind == "given_up")
    assert "the emulator is gone" in lost.text


def test_an_environment_that_cannot_be_made_is_an_attempt_without_a_beginning() -> None:
    events: list[WorkerEvent] = []

    def broken() -> World:
        raise EnvironmentFault("no emulator answers")

    async def main() -> None:
        policy = GraphPolicy(CollabGraph.solo(FixedModel({None: click(0)})))
        async with LocalRollout(
            broken, concurrency=1, restarts=Restarts(retries=0), on_event=events.append
        ) as rollouts:
            await play_jobs(rollouts, policy, [("act", 1)])

    in_virtual_time(main())
    (event,) = events
    assert (event.kind, event.began, event.success) == ("finished", None, None)
    assert "no emulator answers" in event.fault and event.queued is not None


def test_a_long_episode_is_recorded_without_each_operation() -> None:
    event = next(e for e in told(MOST_LAPS) if e.kind == "finished")
    assert event.laps == () and event.environment == pytest.approx(1 + 3 * MOST_LAPS)


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    assert read_worker_events(tmp_path) == []
    event = WorkerEvent(kind="lost", worker=3, at=12.5, node="gpu-1", text="killed")
    line = msgspec.json.encode(event)
    (tmp_path / WORKER_FILE).write_bytes(line + b'\n{"kind":"sold"}\n[]\n\n' + line + b"\n{half")
    assert read_worker_events(tmp_path) == [event, event]


def test_what_another_process_told_is_moved_to_the_clock_of_this_one() -> None:
    """Its clock is an hour behind."""
    ended = WorkerEvent(kind="finished", worker=0, at=400, queued=385, began=390, laps=((0, 2),))
    first = WorkerEvent(kind="finished", worker=0, at=385, queued=370, fault="broken")
    one, two = told_elsewhere([first, ended], queued=3970, now=4001)
    assert (one.queued, one.began, one.at) == (3970, None, 3986)
    assert (two.queued, two.began, two.at, two.laps) == (3986, 3991, 4001, ((0, 2),))
    assert told_elsewhere([], queued=1, now=2) == []
