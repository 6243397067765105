"""Pools of environments: order, back-pressure, replacements, timing, and nothing left open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from graph_fakes import FixedModel, click, in_virtual_time
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui import (
    Action,
    BudgetExceeded,
    CollabGraph,
    ConfigError,
    Element,
    Environment,
    EnvironmentFault,
    Episode,
    GraphPolicy,
    ModelError,
    Observation,
    Step,
)
from swarm_ui.rollout.episodes import rollout_stream
from swarm_ui.rollout.pool import EnvironmentPool, Job, Lap, Restarts, Spread

POLICY = GraphPolicy(CollabGraph.solo(FixedModel({None: click(0)})), name="clicker")


class Slow:
    """An episode takes one step, which takes as many seconds as the seed says."""

    name = "slow"
    tasks = ("wait",)

    def __init__(self) -> None:
        self.open = True
        self.seconds = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.seconds = seed
        await asyncio.sleep(0.5)
        return self.look()

    def look(self) -> Observation:
        return Observation(goal="wait", elements=(Element(index=0, role="button", text="b"),))

    async def step(self, action: Action) -> Step:
        await asyncio.sleep(self.seconds)
        return Step(observation=self.look(), reward=1.0, terminated=True)

    async def close(self) -> None:
        self.open = False


class Worlds:
    """Makes environments, and remembers them and when."""

    def __init__(self, *broken: int) -> None:
        self.made: list[Slow] = []
        self.at: list[float] = []
        self.broken = broken
        """Which of the environments break at every step; -1: all."""

    def __call__(self) -> Environment:
        world = Slow()
        if len(self.made) in self.broken or -1 in self.broken:
            world.step = self.fail  # type: ignore[method-assign]
        self.made.append(world)
        self.at.append(asyncio.get_running_loop().time())
        return world

    async def fail(self, action: Action) -> Step:
        raise EnvironmentFault("the emulator is gone")

    @property
    def open(self) -> int:
        return sum(world.open for world in self.made)


def jobs(*seconds: int) -> list[Job]:
    return [("wait", s) for s in seconds]


async def collect(pool: EnvironmentPool, todo: list[Job]) -> list[Episode]:
    return [episode async for episode in rollout_stream(pool, POLICY, todo)]


# -- playing ----------------------------------------------------------------------------------


def test_episodes_come_in_the_order_they_finish() -> None:
    worlds = Worlds()

    async def main() -> tuple[list[int], float]:
        async with EnvironmentPool(worlds, 3) as pool:
            episodes = await collect(pool, jobs(9, 1, 4, 2, 3))
            assert worlds.open == 3
            return [e.seed for e in episodes], asyncio.get_running_loop().time()

    order, seconds = in_virtual_time(main())
    assert order == [1, 2, 4, 3, 9]
    assert seconds == pytest.approx(9.5)
    assert len(worlds.made) == 3 and worlds.open == 0


def test_environments_are_made_when_needed_and_kept_for_the_next_stream() -> None:
    worlds = Worlds()

    async def main() -> None:
        async with EnvironmentPool(worlds, 8) as pool:
            await collect(pool, jobs(1, 1))
            assert len(worlds.made) == 2
            await collect(pool, jobs(1, 1, 1))
            assert len(worlds.made) == 3

    in_virtual_time(main())
    assert worlds.open == 0


def test_jobs_are_taken_no_faster_than_episodes_are() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Job]:
        while True:
            taken.append(len(taken))
            yield ("wait", 1)

    async def main() -> None:
        async with EnvironmentPool(Worlds(), 2) as pool:
            stream = rollout_stream(pool, POLICY, endless())
            for k in range(3):
                await anext(stream)
                await asyncio.sleep(1000)
                # Two wait to be taken, and two more that found no room keep their places.
                assert len(taken) <= k + 1 + 2 + 2
            await stream.aclose()

    in_virtual_time(main())
    assert len(taken) >= 3


def test_jobs_may_come_from_a_coroutine() -> None:
    async def source() -> AsyncIterator[Job]:
        for seconds in (3, 1, 2):
            await asyncio.sleep(0.1)
            yield ("wait", seconds)

    async def main() -> list[int]:
        async with EnvironmentPool(Worlds(), 2) as pool:
            return [e.seed async for e in rollout_stream(pool, POLICY, source())]

    assert in_virtual_time(main()) == [1, 3, 2]


def test_the_number_of_each_job_is_known() -> None:
    async def attempt(world: Environment, task: str, seed: int, lap: Lap) -> Episode:
        await asyncio.sleep(seed)
        return Episode(environment=world.name, task=task, seed=seed, success=True)

    async def main() -> list[tuple[int, int]]:
        async with EnvironmentPool(Worlds(), 2) as pool:
            return [(n, e.seed) async for n, e in pool.episodes(attempt, jobs(5, 1, 1))]

    assert in_virtual_time(main()) == [(1, 1), (2, 1), (0, 5)]


# -- faults -----------------------------------------------------------------------------------


def test_a_fault_is_of_one_episode_and_its_environment_is_replaced() -> None:
    worlds = Worlds(1)

    async def main() -> tuple[list[Episode], EnvironmentPool]:
        async with EnvironmentPool(worlds, 2, restarts=Restarts(retries=0)) as pool:
            return await collect(pool, jobs(2, 2, 2, 2)), pool

    episodes, pool = in_virtual_time(main())
    faults = [str(e.fault) for e in episodes if e.fault]
    assert faults == ["EnvironmentFault: the emulator is gone"]
    assert [e.success for e in episodes].count(True) == 3
    assert len(worlds.made) == 3 and worlds.open == 0
    assert [(t.faults, t.restarts) for t in pool.timings] == [(0, 0), (1, 1)]


def test_an_episode_is_played_again_as_often_as_the_rules_say() -> None:
    for retries, success in ((0, None), (1, None), (2, True)):
        worlds = Worlds(0, 1)

        async def main(worlds: Worlds = worlds, retries: int = retries) -> list[Episode]:
            async with EnvironmentPool(worlds, 1, restarts=Restarts(retries=retries)) as pool:
                return await collect(pool, jobs(1))

        (episode,) = in_virtual_time(main())
        assert episode.success is success
        assert len(worlds.made) == retries + 1 and worlds.open == 0


def test_replacements_wait_longer_each_time_in_a_row() -> None:
    worlds = Worlds(0, 1, 2, 4)
    rules = Restarts(retries=9, backoff=10, longest=35)

    async def main() -> None:
        async with EnvironmentPool(worlds, 1, restarts=rules) as pool:
            episodes = await collect(pool, jobs(1, 1))
            assert [e.success for e in episodes] == [True, True]

    in_virtual_time(main())
    pauses = [b - a for a, b in zip(worlds.at, worlds.at[1:], strict=False)]
    assert [round(p - 0.5) for p in pauses[:3]] == [10, 20, 35]
    assert len(worlds.made) == 4  # the fourth was whole, and played the second job too


def test_a_place_is_given_up_after_so_many_replacements_in_a_row() -> None:
    worlds = Worlds(-1)
    rules = Restarts(retries=0, limit=2)

    async def main() -> tuple[list[Episode], EnvironmentPool]:
        async with EnvironmentPool(worlds, 2, restarts=rules) as pool:
            return await collect(pool, jobs(*[1] * 20)), pool

    episodes, pool = in_virtual_time(main())
    assert len(episodes) == 20 and {e.success for e in episodes} == {None}
    assert len(worlds.made) == 6 and worlds.open == 0
    assert str(episodes[0].fault) == "EnvironmentFault: the emulator is gone"
    assert str(episodes[-1].fault) == (
        "EnvironmentFault: the environment was replaced 2 times in a row without success; its last "
        "fault: EnvironmentFault: the emulator is gone"
    )
    assert all(t.given_up and t.restarts == 2 for t in pool.timings)


def test_places_that_hold_do_the_work_of_one_that_was_given_up() -> None:
    worlds = Worlds(1)

    async def main() -> tuple[list[Episode], EnvironmentPool]:
        async with EnvironmentPool(worlds, 2, restarts=Restarts(retries=0, limit=0)) as pool:
            return await collect(pool, jobs(*[1] * 9)), pool

    episodes, pool = in_virtual_time(main())
    assert [e.success for e in episodes].count(None) == 1 and len(episodes) == 9
    assert [(t.episodes, t.given_up) for t in pool.timings] == [(8, False), (1, True)]


def test_an_environment_that_cannot_be_made_is_a_fault_of_its_episode() -> None:
    tries = iter(range(9))

    async def make() -> Environment:
        if next(tries) == 0:
            raise EnvironmentFault("no emulator")
        return Slow()

    async def main() -> list[Episode]:
        async with EnvironmentPool(make, 1, restarts=Restarts(retries=0)) as pool:
            return await collect(pool, jobs(1, 1))

    first, second = in_virtual_time(main())
    assert (str(first.fault), first.policy, first.task) == (
        "EnvironmentFault: no emulator",
        "clicker",
        "wait",
    )
    assert second.success is True


# -- errors, leaving, cancelling --------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [BudgetExceeded("spent"), ConfigError("wrong"), ModelError("silent"), KeyError("bug")]
)
def test_other_errors_end_all_after_what_was_finished(error: Exception) -> None:
    worlds = Worlds()

    async def attempt(world: Environment, task: str, seed: int, lap: Lap) -> Episode:
        await asyncio.sleep(seed)
        if seed == 3:
            raise error
        return Episode(environment=world.name, task=task, seed=seed, success=True)

    seen = []

    async def main() -> None:
        async with EnvironmentPool(worlds, 3) as pool:
            async for _, episode in pool.episodes(attempt, jobs(1, 2, 3, 50, 50)):
                seen.append(episode.seed)
                await asyncio.sleep(10)

    with pytest.raises(type(error)):
        in_virtual_time(main())
    assert seen == [1, 2] and worlds.open == 0 and len(worlds.made) == 3


def test_leaving_a_stream_or_the_pool_leaves_no_task_and_no_environment() -> None:
    async def leave_early(worlds: Worlds) -> int:
        async with EnvironmentPool(worlds, 3) as pool:
            async for _ in rollout_stream(pool, POLICY, jobs(1, 50, 50, 50)):
                break
        return len(asyncio.all_tasks())

    async def next_stream(worlds: Worlds) -> int:
        async with EnvironmentPool(worlds, 3) as pool:
            stream = rollout_stream(pool, POLICY, jobs(1, 50, 50))
            await anext(stream)
            with pytest.raises(ConfigError, match="already in use"):
                await collect(pool, jobs(1))
            await stream.aclose()
            assert [e.seed for e in await collect(pool, jobs(2))] == [2]
        return len(asyncio.all_tasks())

    async def cancelled(worlds: Worlds) -> int:
        async def play() -> None:
            async with EnvironmentPool(worlds, 3) as pool:
                await collect(pool, jobs(50, 50, 50))

        task = asyncio.create_task(play())
        await asyncio.sleep(10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(asyncio.all_tasks())

    for main in (leave_early, next_stream, cancelled):
        worlds = Worlds()
        assert in_virtual_time(main(worlds)) == 1, main
        assert worlds.made and worlds.open == 0


def test_a_world_that_fails_to_close_does_not_keep_the_others_open() -> None:
    worlds = Worlds()

    async def stuck() -> None:
        worlds.made[0].open = False
        raise EnvironmentFault("it hangs")

    async def main(error: Exception | None) -> None:
        async with EnvironmentPool(worlds, 2) as pool:
            await collect(pool, jobs(1, 1))
            worlds.made[0].close = stuck  # type: ignore[method-assign]
            if error is not None:
                raise error

    with pytest.raises(EnvironmentFault, match="it hangs"):
        in_virtual_time(main(None))
    assert worlds.open == 0
    worlds = Worlds()
    with pytest.raises(KeyError):  # what ended the block is not hidden by what failed to close
        in_virtual_time(main(KeyError("bug")))
    assert worlds.open == 0


def test_a_bug_in_a_world_does_not_keep_the_others_open() -> None:
    worlds = Worlds()

    async def buggy() -> None:
        worlds.made[0].open = False
        raise ZeroDivisionError

    async def main() -> None:
        async with EnvironmentPool(worlds, 2) as pool:
            await collect(pool, jobs(1, 1))
            worlds.made[0].close = buggy  # type: ignore[method-assign]

    with pytest.raises(ZeroDivisionError):
        in_virtual_time(main())
    assert len(worlds.made) == 2 and worlds.open == 0


def test_a_pool_of_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="'size' must be at least 1, got 0"):
        EnvironmentPool(Worlds(), 0)


# -- timing -----------------------------------------------------------------------------------


def test_every_place_tells_how_long_its_environments_took() -> None:
    async def main() -> EnvironmentPool:
        async with EnvironmentPool(Worlds(), 2) as pool:
            await collect(pool, jobs(1, 7, 3, 2))
            return pool

    one, two = in_virtual_time(main()).timings
    assert (one.place, one.episodes, one.reset.count, one.step.count) == (0, 3, 3, 3)
    assert one.reset.p50 == one.reset.longest == pytest.approx(0.5)
    assert one.step.mean == pytest.approx(2.0) and one.step.p50 == pytest.approx(2.0)
    assert one.step.longest == one.step.p99 == pytest.approx(3.0)
    assert two.step.p95 == pytest.approx(7.0) and two.episodes == 1


@given(st.lists(st.floats(0, 1e6), max_size=300))
def test_percentiles_are_values_that_occurred(values: list[float]) -> None:
    spread = Spread.of(values)
    assert spread.count == len(values)
    if values:
        for percent, value in ((50, spread.p50), (95, spread.p95), (99, spread.p99)):
            assert value in values
            assert sum(v <= value for v in values) * 100 >= percent * len(values)
            assert sum(v < value for v in values) * 100 < percent * len(values)
        assert spread.longest == max(values)
    else:
        assert spread == Spread()
