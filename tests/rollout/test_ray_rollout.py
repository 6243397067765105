"""Episodes in the workers of a real local Ray cluster: equal, once each, and never lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from handset_fleet import HandsetWorld, toucher
from local_ray import local_ray
from mortal_worlds import (
    CRASHES,
    DIES_ALWAYS,
    DIES_ONCE,
    REFUSES,
    SPENDS,
    WAITS,
    MortalWorld,
    Scribe,
    Spender,
    clicker,
    timeless,
)

from swarm_ui import BudgetExceeded, CollabGraph, ConfigError, Episode, GraphPolicy, Restarts
from swarm_ui.rollout import Job, LocalRollout, PerWorker, play_jobs
from swarm_ui.rollout.distributed import (
    RayCluster,
    RayRollout,
    WorkerEvent,
    WorkerResources,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with local_ray(cpus=8, handset=32, page=4) as found:
        yield found


def jobs(*seeds: int) -> list[Job]:
    return [("count", seed) for seed in seeds]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"


def within(seconds: float, true: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


class Played:
    """Jobs that were played in two workers, and what happened to the workers."""

    def __init__(self, folder: Path, asked: list[Job], **options: object) -> None:
        self.events: list[WorkerEvent] = []
        self.numbers: list[int] = []
        self.episodes: dict[int, Episode] = {}
        options.setdefault("losses", Restarts(retries=3, limit=5))
        self._options, self._folder, self._jobs = options, folder, asked
        asyncio.run(self._play())

    async def _play(self) -> None:
        world = partial(MortalWorld, str(self._folder))
        async with RayRollout(
            world, workers=2, on_event=self.events.append, **self._options  # type: ignore[arg-type]
        ) as rollouts:  # fmt: skip
            async for number, episode in rollouts.stream(clicker(), self._jobs):
                self.numbers.append(number)
                self.episodes[number] = episode

    def kinds(self) -> Counter[str]:
        return Counter(event.kind for event in self.events)


def test_equal_seeds_give_the_episodes_of_the_local_run(
    cluster: RayCluster, tmp_path: Path
) -> None:
    asked = jobs(*range(12))
    world = partial(MortalWorld, str(tmp_path))

    async def both() -> tuple[list[Episode], list[Episode], Scribe, Scribe]:
        here, there = Scribe(), Scribe()
        async with LocalRollout(world, concurrency=3) as local:
            ours = await play_jobs(local, clicker(), asked, intervention=here)
        async with RayRollout(world, workers=2, concurrency_per_worker=2) as remote:
            # In the first stream, and in one that reuses the workers.
            for _ in range(2):
                theirs = await play_jobs(remote, clicker(), asked, intervention=there)
        return ours, theirs, here, there

    ours, theirs, here, there = asyncio.run(both())
    assert [timeless(e) for e in ours] == [timeless(e) for e in theirs]
    assert [(e.task, e.seed) for e in theirs] == asked and all(e.success for e in theirs)
    # What the intervention kept came back, from other processes than this one.
    assert here.kept.keys() == there.kept.keys()
    assert f"pid {os.getpid()}" not in {note for notes in there.kept.values() for note in notes}
    assert not list(tmp_path.glob("open-*"))


def test_a_worker_that_is_killed_loses_and_doubles_no_episode(
    cluster: RayCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = jobs(*range(4), DIES_ONCE, *range(4, 8))
    done = Played(tmp_path, asked)
    assert sorted(done.numbers) == [*range(len(asked))]
    assert all(e.success and e.fault is None for e in done.episodes.values())
    assert done.kinds()["lost"] >= 2  # of the worker and of its job
    again = [e for e in done.events if e.kind == "finished" and e.job == 4]
    assert [e.attempt for e in again] == [1]
    time.sleep(1.0)  # Ray tells of it in another thread
    assert capsys.readouterr().out == ""


def test_the_patience_for_resources_begins_anew_when_the_last_worker_is_lost(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = 0.0

    def hours_pass(event: WorkerEvent) -> None:
        nonlocal later
        later += 9999.0 * (event.kind == "assigned")

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later)
    monkeypatch.setattr("swarm_ui.rollout.distributed.ray_rollout.time", clock)

    async def play() -> list[Episode]:
        world = partial(MortalWorld, str(tmp_path))
        async with RayRollout(world, workers=1, on_event=hours_pass) as rollouts:
            return await play_jobs(rollouts, clicker(), jobs(DIES_ONCE))

    assert [e.success for e in asyncio.run(play())] == [True]


def test_a_job_that_always_kills_its_worker_is_masked_and_never_scored(
    cluster: RayCluster, tmp_path: Path
) -> None:
    asked = jobs(0, DIES_ALWAYS, 1, 2)
    done = Played(tmp_path, asked, losses=Restarts(retries=1, limit=9))
    assert sorted(done.numbers) == [0, 1, 2, 3]
    lost = done.episodes[1]
    assert lost.success is None and lost.steps == ()
    assert lost.fault is not None and lost.fault.kind == "environment"
    assert "lost 2 times" in str(lost.fault)
    assert all(done.episodes[k].success for k in (0, 2, 3))


def test_errors_of_the_user_arrive_with_their_types(cluster: RayCluster, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such task here"):
        Played(tmp_path, jobs(REFUSES))
    with pytest.raises(ZeroDivisionError, match="a bug"):
        Played(tmp_path, jobs(CRASHES))
    assert not list(tmp_path.glob("open-*"))


def test_an_exhausted_budget_brings_its_partial_episodes(
    cluster: RayCluster, tmp_path: Path
) -> None:
    async def play() -> None:
        async with RayRollout(partial(MortalWorld, str(tmp_path)), workers=1) as rollouts:
            await play_jobs(rollouts, clicker(), jobs(1, SPENDS))

    with pytest.raises(BudgetExceeded, match="all calls are made") as caught:
        asyncio.run(play())
    assert [e.seed for e in caught.value.episodes] == [1, SPENDS]
    assert caught.value.episodes[1].fault.kind == "budget"


def test_jobs_are_read_only_as_fast_as_they_are_played(cluster: RayCluster, tmp_path: Path) -> None:
    read = 0

    def endless() -> Iterator[Job]:
        nonlocal read
        for seed in count():
            read += 1
            yield "count", seed % 5

    async def some() -> None:
        world = partial(MortalWorld, str(tmp_path))
        async with RayRollout(world, workers=2, concurrency_per_worker=2) as rollouts:
            stream = rollouts.stream(clicker(), endless())
            for finished in range(20):
                await anext(stream)
                # At most those in flight and those that wait for this reader.
                assert read <= finished + 1 + 4 + 4
            await stream.aclose()

    asyncio.run(some())


def test_leaving_cancels_the_episodes_and_closes_the_environments(
    cluster: RayCluster, tmp_path: Path
) -> None:
    async def play() -> None:
        async with RayRollout(partial(MortalWorld, str(tmp_path)), workers=2) as rollouts:
            await play_jobs(rollouts, clicker(), jobs(WAITS, WAITS))

    async def interrupted() -> None:
        playing = asyncio.create_task(play())
        while len(list(tmp_path.glob("waiting-*"))) < 2:
            await asyncio.sleep(0.05)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    asyncio.run(interrupted())
    assert not list(tmp_path.glob("open-*"))
    pids = [int(path.name.split("-")[1]) for path in tmp_path.glob("waiting-*")]
    assert len(pids) == 2
    assert within(20.0, lambda: not any(map(alive, pids)))


def test_missing_resources_are_named_and_no_silent_wait(
    cluster: RayCluster, tmp_path: Path
) -> None:
    events: list[WorkerEvent] = []
    needs = WorkerResources(custom={"emulator": 1})

    async def play() -> None:
        async with RayRollout(
            partial(MortalWorld, str(tmp_path)), workers=1, resources=needs, patience=0.5,
            on_event=events.append,
        ) as rollouts:  # fmt: skip
            await play_jobs(rollouts, clicker(), jobs(1))

    with pytest.raises(ConfigError, match=r"no node of the cluster has emulator 1 \(most.*: 0\)"):
        asyncio.run(play())
    assert [e.kind for e in events] == ["waiting"]


def test_more_workers_than_the_cluster_holds_do_not_stop_the_others(
    cluster: RayCluster, tmp_path: Path
) -> None:
    needs = WorkerResources(cpus=0, custom={"page": 2})

    async def play() -> tuple[int, int]:
        async with RayRollout(
            partial(MortalWorld, str(tmp_path)), workers=3, resources=needs
        ) as rollouts:
            played = await play_jobs(rollouts, clicker(), jobs(*range(6)))
            return len(played), rollouts.workers

    played, workers = asyncio.run(play())
    assert played == 6 and 1 <= workers <= 2


def test_a_fleet_of_32_handsets_at_the_same_time(cluster: RayCluster, tmp_path: Path) -> None:
    needs = WorkerResources(cpus=0, custom={"handset": 8})
    asked = [("wifi", seed) for seed in range(40)]

    async def play() -> list[Episode]:
        async with RayRollout(
            partial(HandsetWorld, str(tmp_path), 32), concurrency_per_worker=8, resources=needs
        ) as fleet:
            assert fleet.concurrency == 32  # what the cluster has
            return await play_jobs(fleet, toucher(), asked)

    episodes = asyncio.run(play())
    assert [(e.task, e.seed) for e in episodes] == asked
    assert all(e.success for e in episodes) and len(episodes[0].steps) == 3
    assert len(list(tmp_path.glob("handset-*"))) == 32  # each waited for all others


def test_another_version_on_a_node_is_told(
    cluster: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_ui.rollout.distributed.remote_worker.__version__", "9.9.9")
    with pytest.raises(
        ConfigError, match=r"has swarm-ui .*, this process 9\.9\.9; install the same"
    ):
        Played(tmp_path, jobs(1))


def test_what_cannot_be_sent_is_made_in_each_worker(cluster: RayCluster, tmp_path: Path) -> None:
    class Held(GraphPolicy):
        def __reduce__(self) -> tuple[object, ...]:
            raise TypeError("it holds a GPU")

    async def play(policy: object) -> list[Episode]:
        world = PerWorker(lambda: partial(MortalWorld, str(tmp_path)))
        async with RayRollout(world, workers=1) as rollouts:
            return await play_jobs(rollouts, policy, jobs(1, 2))  # type: ignore[arg-type]

    held = Held(CollabGraph.solo(Spender()))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"policy.*cannot be sent.*holds a GPU.*PerWorker"):
        asyncio.run(play(held))
    assert [e.policy for e in asyncio.run(play(PerWorker(clicker)))] == ["clicker", "clicker"]
