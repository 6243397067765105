"""Does numbered jobs as soon as those before them are done: the dataflow under every run.

There is no barrier: a job that becomes ready has a task about to run, whatever else goes on. And
a job that never waits costs no task of its own: one worker goes on from job to job as long as it
need not wait, and only when it must do the others get workers. So a graph of plain functions costs
little more than calling them, and one of models has all its calls on their way at once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

DoJob = Callable[[int, "asyncio.Task[None]"], Awaitable[None]]
"""Does job ``k`` inside a task. What it raises ends everything."""


class Scheduler:
    """The workers of one run.

    A version with one task of ``asyncio.TaskGroup`` for each ready job took 1.6 to 3 times the CPU
    time per node on every shape but chains (``benchmarks/graph_engine.py --quick``), so this one
    stays. ``asyncio.timeout`` needs a timer for each call; see :mod:`swarm_ui.engine.deadlines`.
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
        self._failures: dict[int, Exception] = {}
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()

    async def finish(self) -> None:
        """Do every job. However it ends, no task is left behind.

        Raises:
            Exception: what a job raised; that of the lowest number, if several did.
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
        """Comes to run only when the worker that asked for it has to wait. So the jobs do take
        time, and everything that is ready gets a worker at once."""
        self._relaying = False
        self._hire(len(self._ready))
        task = asyncio.current_task()
        assert task is not None
        self._tasks.discard(task)

    async def _work(self) -> None:
        """Do jobs while there are any. As long as one is ready, some task is about to do it."""
        self._hired -= 1
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        job, ready, waiting, successors = self._job, self._ready, self._waiting, self._successors
        k = -1
        try:
            while ready and not self._failures:
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
        except Exception as failure:
            self._failures[k] = failure
            if not self._over.done():
                self._over.set_result(None)
        except asyncio.CancelledError:
            # Not dismissed, so somebody cancelled this task alone: the run cannot go on.
            self._over.cancel()
            raise
        self._tasks.discard(task)

    async def _dismiss(self) -> None:
        """Cancel who still works, and wait until all have left, however often cancelled."""
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
