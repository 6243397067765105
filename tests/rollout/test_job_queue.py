"""Jobs of a stream: each handed out once, and again if it is put back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from swarm_ui import CollabGraph, ConfigError, GraphPolicy, ScriptedModel
from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.rollout import Job
from swarm_ui.rollout.distributed import ray_rollout
from swarm_ui.rollout.distributed.job_queue import JobQueue, NumberedJob


def numbered(count: int) -> Iterator[Job]:
    return (("task", seed) for seed in range(count))


async def test_many_takers_get_each_job_once_and_then_the_end() -> None:
    queue = JobQueue(numbered(100))
    seen: list[int] = []

    async def taker() -> None:
        while (job := await queue.take()) is not None:
            await asyncio.sleep(0)
            seen.append(job.number)
            queue.finish()

    await asyncio.wait_for(asyncio.gather(*(taker() for _ in range(20))), 5)
    assert sorted(seen) == [*range(100)] and queue.finished


async def test_nothing_is_read_ahead() -> None:
    read = 0

    def source() -> Iterator[Job]:
        nonlocal read
        while True:
            read += 1
            yield "task", read

    queue = JobQueue(source())
    for number in range(5):
        assert await queue.take() == NumberedJob(number, ("task", number + 1))
        assert read == number + 1


async def test_a_job_that_is_put_back_comes_first_and_wakes_who_waits() -> None:
    queue = JobQueue(numbered(2))
    first, second = await queue.take(), await queue.take()
    assert first is not None and second is not None
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not waiting.done()  # two jobs are out, and either may come back
    queue.put_back(first._replace(losses=1))
    assert await asyncio.wait_for(waiting, 1) == NumberedJob(0, ("task", 0), losses=1)
    queue.finish()
    last = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.finish()
    assert await asyncio.wait_for(last, 1) is None


async def test_a_job_that_is_put_back_does_not_wait_for_a_source_that_waits() -> None:
    never = asyncio.Event()

    async def source() -> AsyncIterator[Job]:
        yield "task", 0
        await never.wait()

    queue = JobQueue(source())
    job = await queue.take()
    assert job is not None
    others = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.put_back(job)
    done, waiting = await asyncio.wait(others, timeout=1, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [job] and len(waiting) == 2
    for task in waiting:
        task.cancel()
    await queue.close()


async def test_an_asynchronous_source_feeds_all_who_wait() -> None:
    async def source() -> AsyncIterator[Job]:
        for seed in range(30):
            await asyncio.sleep(0)
            yield "task", seed

    queue, seen = JobQueue(source()), list[int]()

    async def taker() -> None:
        while (job := await queue.take()) is not None:
            seen.append(job.number)
            await asyncio.sleep(0)
            queue.finish()

    await asyncio.wait_for(asyncio.gather(*(taker() for _ in range(7))), 5)
    assert sorted(seen) == [*range(30)]


async def test_a_taker_that_is_cancelled_after_it_was_woken_loses_no_job() -> None:
    queue = JobQueue(numbered(1))
    job = await queue.take()
    assert job is not None
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.put_back(job)  # wakes the first
    first.cancel()
    assert await asyncio.wait_for(second, 1) == job


async def test_the_error_of_a_source_is_raised() -> None:
    async def source() -> AsyncIterator[Job]:
        yield "task", 0
        raise ZeroDivisionError("in the source")

    queue = JobQueue(source())
    assert await queue.take() is not None
    with pytest.raises(ZeroDivisionError, match="in the source"):
        await queue.take()


async def test_a_job_that_is_no_pair_is_refused() -> None:
    wrong: list[Job] = ["contacts-add"]  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"expected pairs \(task, seed\), got 'contacts-add'"):
        await JobQueue(wrong).take()


async def test_a_stream_that_is_cancelled_before_its_first_job_stops_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def source() -> AsyncIterator[Job]:
        await asyncio.sleep(99)
        yield "task", 1

    monkeypatch.setattr(ray_rollout, "connected", lambda _: None)
    rollouts = ray_rollout.RayRollout(PhoneEnvironment, workers=1)
    policy = GraphPolicy(CollabGraph.solo(ScriptedModel(lambda request: "")))

    async def play() -> None:
        async for _ in rollouts.stream(policy, source()):
            pass

    before = asyncio.all_tasks()
    task = asyncio.create_task(play())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled() and asyncio.all_tasks() == before
