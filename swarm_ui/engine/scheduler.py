"""Numbered jobs that start as soon as those they depend on are done."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
_PIECE = 1.0
"""Seconds."""
DoJob = Callable[[int], Awaitable[None]]
"""Runs job ``k``. An exception ends the run."""


class Scheduler:
    """The workers of one run. There is no barrier: a job that is ready never waits for others.

    A job that never awaits needs no separate task: one worker runs jobs one after another, without
    recursion. When a job has to wait, the other ready jobs get workers. A task for each job takes
    1.6 to 3 times the CPU time per node on every shape but chains (``python -m
    benchmarks.speed.engine --quick``).
    """

    def __init__(
        self, job: DoJob, jobs: range, waiting: Sequence[int], successors: Sequence[Sequence[int]]
    ) -> None:
        """
        Args:
            waiting: how many jobs each one waits for; if it is not in ``jobs``, a large number.
            successors: which jobs wait for each one.
        """
        self._job, self._successors = job, successors
        self._waiting = list(waiting)
        self._ready = deque(k for k in jobs if waiting[k] == 0)
        self._left = len(jobs)
        self._hired = 0
        self._relaying = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: dict[int, BaseException] = {}
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

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

    def _hire(self, workers: int) -> None:
        self._hired += workers
        for _ in range(workers):
            self._tasks.add(asyncio.create_task(self._work()))

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
                    self._tasks.add(asyncio.create_task(self._relay()))
                await job(k)
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


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for ``work`` for at most ``seconds``.

    The time is counted in short pieces. While something else blocks the event loop, such as the
    forward pass of a model, at most one piece passes, so a result that has arrived is not lost.

    Raises:
        TimeoutError: the time is over; the work was cancelled.
    """
    task = asyncio.ensure_future(work)
    left = seconds
    try:
        while not task.done() and left > 0:
            piece = min(left, _PIECE, seconds / 4)
            await asyncio.wait({task}, timeout=piece)
            left -= piece
        if not task.done():
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code.

    Inside a running event loop (a notebook) it runs in a thread with a separate loop, and with a
    copy of the context variables. An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # run below, so that errors of the run do not have this one as their context
    else:
        return _run_in_thread(coroutine)
    return asyncio.run(coroutine)


def _run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    cancel: Future[Callable[[], object]] = Future()
    done: Future[T] = Future()

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        cancel.set_result(partial(loop.call_soon_threadsafe, task.cancel))
        return await coroutine

    def run() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # raised by the caller
            done.set_exception(error)

    # A pool would not wait for a thread whose start was interrupted.
    thread = Thread(target=copy_context().run, args=(run,))
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed: the run has just ended
            cancel.result()()
        raise
    finally:
        thread.join()
