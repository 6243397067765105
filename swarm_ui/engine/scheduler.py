"""Runs numbered jobs, each as soon as the jobs it depends on are done.

There is no barrier: a job that is ready never waits for others. A job that never awaits needs no
separate task: one worker runs jobs one after another. When a job has to wait, the other ready jobs
get workers. A graph of plain functions therefore costs little more than calling the functions, and
in a graph of models all ready calls run concurrently.

Work without dependencies runs :func:`together`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
DoJob = Callable[[int, "asyncio.Task[None]"], Awaitable[None]]
"""Runs job ``k`` inside a task. An exception ends the run."""


class Jobs(Protocol):
    """Numbered jobs; each depends on some with smaller numbers."""

    @property
    def inputs(self) -> Sequence[Sequence[int]]: ...
    @property
    def successors(self) -> Sequence[Sequence[int]]: ...


async def run_part(job: DoJob, jobs: Jobs, part: range) -> None:
    """Run the jobs of some consecutive numbers, once all jobs before them are done.

    Raises what a job raised, as :meth:`Scheduler.finish` does.
    """

    def shifted(k: int, task: asyncio.Task[None]) -> Awaitable[None]:
        return job(part.start + k, task)

    if part:
        waiting = [sum(j in part for j in jobs.inputs[k]) for k in part]
        successors = [[s - part.start for s in jobs.successors[k] if s in part] for k in part]
        await Scheduler(shifted, waiting, successors).finish()


class Scheduler:
    """The workers of one run.

    A version with one task of ``asyncio.TaskGroup`` for each ready job took 1.6 to 3 times the CPU
    time per node on every shape but chains (``benchmarks/graph_engine.py --quick``), so it is not
    used. ``asyncio.timeout`` needs a timer for each call; see :mod:`swarm_ui.engine.deadlines`.
    """

    __slots__ = (
        "_failures", "_hired", "_job", "_left", "_loop", "_over", "_ready", "_relaying",
        "_successors", "_tasks", "_waiting",
    )  # fmt: skip

    def __init__(
        self, job: DoJob, waiting: Sequence[int], successors: Sequence[Sequence[int]]
    ) -> None:
        """
        Args:
            job: what to do for a number.
            waiting: how many jobs each one waits for.
            successors: which jobs wait for each one.
        """
        self._job, self._successors = job, successors
        self._waiting = list(waiting)
        self._ready = deque(k for k, count in enumerate(waiting) if count == 0)
        self._left = len(waiting)
        self._hired = 0
        self._relaying = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: dict[int, BaseException] = {}
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()

    async def finish(self) -> None:
        """Run every job. No task is left running when this returns or raises.

        Raises:
            BaseException: the exception of a job; if several jobs failed, that of the lowest
                number.
        """
        try:
            self._hire(1)
            await self._over
        finally:
            await self._dismiss()
        if self._failures:
            failure = self._failures[min(self._failures)]
            raise failure from failure.__cause__

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(self._loop.create_task(work))

    def _hire(self, workers: int) -> None:
        self._hired += workers
        for _ in range(workers):
            self._start(self._work())

    async def _relay(self) -> None:
        """Give every ready job a worker; runs when the worker that started it has to wait."""
        self._relaying = False
        self._hire(len(self._ready))
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)

    async def _work(self) -> None:
        """Run jobs while any is ready."""
        self._hired -= 1
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        job, ready, waiting, successors = self._job, self._ready, self._waiting, self._successors
        k = -1
        try:
            while ready and not self._over.done():
                k = ready.popleft()
                if ready and not self._hired and not self._relaying:
                    self._relaying = True
                    self._start(self._relay())
                await job(k, task)
                for successor in successors[k]:
                    waiting[successor] -= 1
                    if waiting[successor] == 0:
                        ready.append(successor)
                self._left -= 1
            if not self._left and not self._over.done():
                self._over.set_result(None)
        except asyncio.CancelledError:
            # Only this task was cancelled, from outside, so the run cannot continue.
            self._over.cancel()
            raise
        except BaseException as failure:  # raised by finish(): no exception may leave it waiting
            if not (self._over.done() and task.cancelling()):  # not a failure to stop
                self._failures[k] = failure
            if not self._over.done():
                self._over.set_result(None)
            if isinstance(failure, KeyboardInterrupt | SystemExit):
                raise  # it ends the event loop too
        self._tasks.discard(task)

    async def _dismiss(self) -> None:
        """Cancel all workers and wait until they have ended, even if cancelled meanwhile."""
        again = False
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            try:
                done, _ = await asyncio.wait(self._tasks)
            except asyncio.CancelledError:
                again = True
            else:
                self._tasks -= done
        if again:
            raise asyncio.CancelledError


async def together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines that run concurrently. No task is left running when this returns or
    raises.

    If one fails, the others are cancelled, and its exception is raised.
    """
    if len(coroutines) == 1:
        return [await coroutines[0]]
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:  # re-raised: no part may outlive the whole
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
