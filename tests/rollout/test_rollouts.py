"""Rollouts: order, back-pressure, replacements, lost workers, and nothing left open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest
from graph_fakes import FixedModel, click, in_virtual_time

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
from swarm_ui.nodes import AgentNode
from swarm_ui.rollout import (
    Attempt,
    Job,
    LocalWorker,
    Rollouts,
    WorkerLost,
    rollout_many,
)

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


def local(worlds: Callable[[], Environment], slots: int) -> Rollouts:
    return Rollouts([LocalWorker(worlds, slots=slots)])


async def collect(rollouts: Rollouts, todo: Sequence[Job]) -> list[Episode]:
    return [episode async for _, episode in rollouts.stream(POLICY, todo)]


# -- playing ----------------------------------------------------------------------------------


def test_episodes_come_in_the_order_they_finish_with_the_numbers_of_their_jobs() -> None:
    worlds = Worlds()

    async def main() -> tuple[list[tuple[int, int]], float]:
        async with local(worlds, 3) as rollouts:
            stream = rollouts.stream(POLICY, jobs(9, 1, 4, 2, 3))
            found = [(number, e.seed) async for number, e in stream]
            assert worlds.open == 3
            return found, asyncio.get_running_loop().time()

    order, seconds = in_virtual_time(main())
    assert order == [(1, 1), (3, 2), (2, 4), (4, 3), (0, 9)]
    assert seconds == pytest.approx(9.5)
    assert len(worlds.made) == 3 and worlds.open == 0


def test_jobs_are_taken_no_faster_than_episodes_are() -> None:
    taken: list[int] = []

    def endless() -> Iterator[Job]:
        while True:
            taken.append(len(taken))
            yield ("wait", 1)

    async def main() -> None:
        async with local(Worlds(), 2) as rollouts:
            stream = rollouts.stream(POLICY, endless())
            for k in range(3):
                await anext(stream)
                await asyncio.sleep(1000)
                # Two wait to be taken, and two more that found no room keep their places.
                assert len(taken) <= k + 1 + 2 + 2
            await stream.aclose()

    in_virtual_time(main())
    assert len(taken) >= 3


def test_several_graphs_play_at_once_and_share_the_workers() -> None:
    worlds = Worlds()
    model = FixedModel({None: click(0)})
    graphs = [CollabGraph([AgentNode("a", model)], name=name) for name in "ab"]

    async def main() -> tuple[list[list[Episode]], float]:
        async with local(worlds, 2) as rollouts:
            played = [rollout_many(rollouts, graph, jobs(1, 1, 1, 1)) for graph in graphs]
            return await asyncio.gather(*played), asyncio.get_running_loop().time()

    played, seconds = in_virtual_time(main())
    assert [{e.policy for e in episodes} for episodes in played] == [{"a"}, {"b"}]
    assert seconds == pytest.approx(4 * 1.5) and len(worlds.made) == 2 and worlds.open == 0


def test_what_cannot_play_is_refused() -> None:
    with pytest.raises(ConfigError, match="'slots' must be at least 1"):
        local(Worlds(), 0)
    with pytest.raises(ConfigError, match="expected a graph, or a policy"):
        local(Worlds(), 1).stream("clicker", [])  # type: ignore[arg-type]
    wrong: list[Job] = ["contacts-add"]  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"expected pairs \(task, seed\), got 'contacts-add'"):
        in_virtual_time(collect(local(Worlds(), 1), wrong))


# -- faults -----------------------------------------------------------------------------------


def test_a_fault_is_of_one_episode_and_its_environment_is_replaced() -> None:
    worlds = Worlds(1, 2)

    async def main() -> list[Episode]:
        async with local(worlds, 2) as rollouts:
            return await collect(rollouts, jobs(2, 2, 2, 2))

    episodes = in_virtual_time(main())
    faults = [str(e.fault) for e in episodes if e.fault]
    assert faults == ["EnvironmentFault: the emulator is gone"]
    assert [e.success for e in episodes].count(True) == 3
    assert len(worlds.made) == 4 and worlds.open == 0


@pytest.mark.parametrize(("broken", "success"), [((0,), True), ((0, 1), None)])
def test_an_episode_with_a_fault_is_played_once_more(
    broken: tuple[int, ...], success: bool | None
) -> None:
    worlds = Worlds(*broken)

    async def main() -> list[Episode]:
        async with local(worlds, 1) as rollouts:
            return await collect(rollouts, jobs(1))

    (episode,) = in_virtual_time(main())
    assert episode.success is success and len(worlds.made) == 2 and worlds.open == 0


# -- workers that are lost --------------------------------------------------------------------


class Mortal(LocalWorker):
    """Is lost when it plays one of some seeds; starts again a few times, or never."""

    def __init__(self, *deadly: int, starts: int = 99) -> None:
        super().__init__(Slow, slots=2)
        self.deadly = [*deadly]
        self.starts, self.alive = starts, False

    async def start(self) -> None:
        if not self.alive:
            await asyncio.sleep(1)
            self.starts -= 1
            if self.starts < 0:
                raise ConfigError("its machine is gone")
            self.alive = True

    async def play(self, job: Job, attempt: Attempt) -> Episode:
        if not self.alive:
            raise WorkerLost("it is being replaced", begun=False)
        if job[1] in self.deadly:
            self.deadly.remove(job[1])
            self.alive = False
            raise WorkerLost("killed")
        return await super().play(job, attempt)


def played(*workers: Mortal, seeds: Sequence[int]) -> list[Episode]:
    async def main() -> list[Episode]:
        async with Rollouts(workers) as rollouts:
            return await rollout_many(rollouts, POLICY, jobs(*seeds))

    return in_virtual_time(main())


def test_a_lost_worker_costs_no_episode_and_doubles_none() -> None:
    episodes = played(Mortal(3, 5), Mortal(7), seeds=range(1, 12))
    assert [e.seed for e in episodes] == [*range(1, 12)] and all(e.success for e in episodes)


def test_a_job_that_always_kills_its_worker_is_masked() -> None:
    deadly = Mortal(*[2] * 9)
    episodes = played(deadly, seeds=(1, 2, 3))
    assert [e.success for e in episodes] == [True, None, True]
    assert episodes[1].fault is not None and episodes[1].fault.kind == "environment"
    assert "lost 4 times" in str(episodes[1].fault) and episodes[1].policy == "clicker"


def test_others_do_the_work_of_a_worker_that_never_starts_again() -> None:
    episodes = played(Mortal(1, starts=1), Mortal(), seeds=(1, 2, 3, 4))
    assert all(e.success for e in episodes)


def test_without_any_worker_the_stream_ends_with_an_error() -> None:
    with pytest.raises(ConfigError, match="its machine is gone"):
        played(Mortal(2, starts=1), Mortal(starts=0), seeds=(1, 2, 3))


# -- errors, leaving, cancelling --------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [BudgetExceeded("spent"), ConfigError("wrong"), ModelError("silent"), KeyError("bug")]
)
def test_other_errors_end_all_after_what_was_finished(error: Exception) -> None:
    worlds = Worlds()

    async def attempt(world: Environment, task: str, seed: int) -> Episode:
        await asyncio.sleep(seed)
        if seed == 3:
            raise error
        return Episode(environment=world.name, task=task, seed=seed, success=True)

    seen = []

    async def main() -> None:
        async with local(worlds, 3) as rollouts:
            async for _, episode in rollouts.play(attempt, jobs(1, 2, 3, 50, 50)):
                seen.append(episode.seed)
                await asyncio.sleep(10)

    with pytest.raises(type(error)):
        in_virtual_time(main())
    assert seen == [1, 2] and worlds.open == 0 and len(worlds.made) == 3


def test_leaving_a_stream_or_the_rollouts_leaves_no_task_and_no_environment() -> None:
    async def leave_early(worlds: Worlds) -> int:
        async with local(worlds, 3) as rollouts:
            async for _ in rollouts.stream(POLICY, jobs(1, 50, 50, 50)):
                break
        return len(asyncio.all_tasks())

    async def next_stream(worlds: Worlds) -> int:
        async with local(worlds, 3) as rollouts:
            stream = rollouts.stream(POLICY, jobs(1, 50, 50))
            await anext(stream)
            await stream.aclose()
            assert [e.seed for e in await collect(rollouts, jobs(2))] == [2]
        return len(asyncio.all_tasks())

    async def cancelled(worlds: Worlds) -> int:
        async def play() -> None:
            async with local(worlds, 3) as rollouts:
                await collect(rollouts, jobs(50, 50, 50))

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


@pytest.mark.parametrize("error", [EnvironmentFault("it hangs"), ZeroDivisionError()])
def test_a_world_that_fails_to_close_does_not_keep_the_others_open(error: Exception) -> None:
    async def stuck() -> None:
        worlds.made[0].open = False
        raise error

    async def main(raised: Exception | None) -> None:
        async with local(worlds, 2) as rollouts:
            await collect(rollouts, jobs(1, 1))
            worlds.made[0].close = stuck  # type: ignore[method-assign]
            if raised is not None:
                raise raised

    worlds = Worlds()
    with pytest.raises(type(error)):
        in_virtual_time(main(None))
    assert len(worlds.made) == 2 and worlds.open == 0
    if isinstance(error, EnvironmentFault):
        worlds = Worlds()
        with pytest.raises(KeyError):  # what ended the block is not hidden by what failed to close
            in_virtual_time(main(KeyError("bug")))
        assert worlds.open == 0
