"""Episodes in the workers of a cluster: equal, once each, never lost."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from local_ray import local_ray
from mortal_worlds import (
    CRASHES,
    DIES_ALWAYS,
    DIES_ONCE,
    REFUSES,
    SPENDS,
    WAITS,
    MortalWorld,
    Spender,
    clicker,
    scribe,
    timeless,
    worlds_in,
)

from swarm_ui import BudgetExceeded, CollabGraph, ConfigError, Episode, GraphPolicy
from swarm_ui.rollout import (
    Job,
    RayWorker,
    ray_rollouts,
    rollout_many,
)

pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads Linux's /proc"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_ray(cpus=8, handset=32, page=4):
        yield


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
    """Jobs that were played in two workers, and what was said about them."""

    def __init__(self, folder: Path, asked: list[Job]) -> None:
        self.told: list[str] = []
        self.numbers: list[int] = []
        self.episodes: dict[int, Episode] = {}
        self._folder, self._jobs = folder, asked
        asyncio.run(self._play())

    async def _play(self) -> None:
        world = partial(MortalWorld, str(self._folder))
        async with ray_rollouts(world, workers=2, warn=self.told.append) as rollouts:
            async for number, episode in rollouts.stream(clicker(), self._jobs):
                self.numbers.append(number)
                self.episodes[number] = episode


def test_equal_seeds_give_the_episodes_of_the_local_run(tmp_path: Path) -> None:
    asked = jobs(*range(12))
    world = partial(MortalWorld, str(tmp_path))

    async def both() -> tuple[list[Episode], list[list[Episode]]]:
        ours = await rollout_many(world, clicker(), asked, intervention=scribe)
        async with ray_rollouts(world, workers=2, slots=2) as remote:
            # Two streams at once, and one that reuses the workers.
            some = [rollout_many(remote, clicker(), asked, intervention=scribe) for _ in range(2)]
            theirs = await asyncio.gather(*some)
            return ours, [*theirs, await rollout_many(remote, clicker(), asked)]

    ours, (first, second, third) = asyncio.run(both())
    assert all(e.success for e in ours)
    for theirs in (first, second):
        assert [timeless(e) for e in ours] == [timeless(e) for e in theirs]
        for e in theirs:  # with notes, which are of other processes
            assert [step for step, _ in e.notes] == [*range(len(e.steps))]
            assert os.getpid() not in {pid for _, pid in e.notes}
    assert [(e.task, e.seed, e.success) for e in third] == [(*job, True) for job in asked]
    assert not list(tmp_path.glob("open-*"))


def test_a_worker_that_is_killed_loses_and_doubles_no_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = jobs(*range(4), DIES_ONCE, *range(4, 8))
    done = Played(tmp_path, asked)
    assert sorted(done.numbers) == [*range(len(asked))]
    assert all(e.success and e.fault is None for e in done.episodes.values())
    assert sum("played again" in line for line in done.told) == 1
    time.sleep(1.0)  # Ray tells of it in another thread
    assert capsys.readouterr().out == ""


def test_a_job_that_always_kills_its_worker_is_masked_and_never_scored(tmp_path: Path) -> None:
    done = Played(tmp_path, jobs(0, DIES_ALWAYS, 1, 2))
    assert sorted(done.numbers) == [0, 1, 2, 3]
    lost = done.episodes[1]
    assert lost.success is None and lost.steps == ()
    assert lost.fault is not None and lost.fault.kind == "environment"
    assert all(done.episodes[k].success for k in (0, 2, 3))


def test_errors_arrive_with_their_types(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such task here"):
        Played(tmp_path, jobs(REFUSES))
    with pytest.raises(ZeroDivisionError):
        Played(tmp_path, jobs(CRASHES))
    with pytest.raises(BudgetExceeded) as caught:
        asyncio.run(_spent(tmp_path))
    assert [e.seed for e in caught.value.episodes] == [1, SPENDS]
    assert caught.value.episodes[1].fault.kind == "budget"
    assert not list(tmp_path.glob("open-*"))


async def _spent(folder: Path) -> None:
    async with ray_rollouts(partial(MortalWorld, str(folder)), workers=1) as rollouts:
        await rollout_many(rollouts, clicker(), jobs(1, SPENDS))


def test_leaving_cancels_the_episodes_and_closes_the_environments(tmp_path: Path) -> None:
    async def play() -> None:
        async with ray_rollouts(
            partial(MortalWorld, str(tmp_path)), workers=2, slots=1
        ) as rollouts:
            await rollout_many(rollouts, clicker(), jobs(WAITS, WAITS))

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


class Held(GraphPolicy):
    """A policy that cannot be sent."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("it holds a GPU")


def test_environments_are_opened_in_each_worker_and_what_cannot_be_sent_is_told(
    tmp_path: Path,
) -> None:
    async def play(policy: object) -> list[Episode]:
        async with ray_rollouts(partial(worlds_in, str(tmp_path)), workers=1) as rollouts:
            return await rollout_many(rollouts, policy, jobs(1, 2))  # type: ignore[arg-type]

    held = Held(CollabGraph.solo(Spender()))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"policy.*cannot be sent.*holds a GPU.*hold_model"):
        asyncio.run(play(held))
    assert all(episode.success for episode in asyncio.run(play(clicker())))
    assert not list(tmp_path.glob("open-*"))


def test_a_worker_with_another_version_does_not_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_ui.rollout.ray.__version__", "0.0.1")  # of this process alone

    async def play() -> None:
        async with ray_rollouts(partial(MortalWorld, str(tmp_path)), workers=1) as rollouts:
            await rollout_many(rollouts, clicker(), jobs(1))

    with pytest.raises(ConfigError, match=r"same swarm-ui.*this process 0\.0\.1"):
        asyncio.run(play())


def test_missing_resources_are_named_and_no_silent_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_ui.rollout.ray.PATIENCE", 0.5)
    told: list[str] = []
    needs = {"emulator": 1}

    async def play() -> None:
        async with ray_rollouts(
            partial(MortalWorld, str(tmp_path)), workers=1, resources=needs,
            warn=told.append,
        ) as rollouts:  # fmt: skip
            await rollout_many(rollouts, clicker(), jobs(1))

    with pytest.raises(ConfigError, match=r"it needs .*emulator 1"):
        asyncio.run(play())
    (line,) = told
    assert "worker 0 does not play" in line


def test_more_workers_than_the_cluster_holds_do_not_stop_the_others(tmp_path: Path) -> None:
    needs = {"page": 2}

    async def play() -> tuple[int, int]:
        async with ray_rollouts(
            partial(MortalWorld, str(tmp_path)), workers=3, resources=needs
        ) as rollouts:
            played = await rollout_many(rollouts, clicker(), jobs(*range(6)))
            running = sum(isinstance(w, RayWorker) and bool(w.pid) for w in rollouts.workers)
            return len(played), running

    played, workers = asyncio.run(play())
    assert played == 6 and 1 <= workers <= 2


def test_without_a_number_there_are_as_many_workers_as_the_cluster_holds(tmp_path: Path) -> None:
    async def play() -> list[Episode]:
        world = partial(MortalWorld, str(tmp_path))
        async with ray_rollouts(world, slots=8, resources={"handset": 8}) as fleet:
            assert fleet.concurrency == 32
            return await rollout_many(fleet, clicker(), jobs(*range(40)))

    assert all(episode.success for episode in asyncio.run(play()))
