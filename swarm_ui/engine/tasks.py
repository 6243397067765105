"""Tasks of asyncio: jobs that depend on each other, several at once, and runs from plain code."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")
_PIECE = 1.0
"""Seconds."""


async def in_order(
    do: Callable[[int], Awaitable[bool]], jobs: range, missing: list[int],
    successors: Sequence[Sequence[int]],
) -> None:  # fmt: skip
    """Do numbered jobs, each as soon as the jobs that it depends on are done. What depends on a job
    for which ``do`` returns false is left out. No task is left running when this returns or raises.
    If jobs fail, the failure of the lowest number is raised.

    ``missing``: on how many jobs each one waits.
    """
    # A job that never awaits needs no separate task: one worker does jobs one after another,
    # without recursion. When a job has to wait, a relay gives the other ready jobs workers. A task
    # for each job takes 1.6 to 3 times the CPU time on every shape but chains.
    ready, relaying = deque(k for k in jobs if missing[k] == 0), False
    tasks, failures = set[asyncio.Task[None]](), dict[int, BaseException]()
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hire(workers: int, relay: bool = False) -> None:
        tasks.update([asyncio.create_task(work(relay)) for _ in range(workers)])

    async def work(relay: bool) -> None:
        nonlocal relaying
        k, task = -1, asyncio.current_task()
        assert task is not None
        if relay:
            relaying = False
            hire(len(ready) - 1)
        try:
            while ready and not over.done():
                k = ready.popleft()
                if ready and not relaying:
                    relaying = True
                    hire(1, relay=True)
                for successor in successors[k] if await do(k) else ():
                    missing[successor] -= 1
                    if missing[successor] == 0 and successor < jobs.stop:
                        ready.append(successor)
        except BaseException as failure:  # raised below: no exception may leave it waiting
            if not (over.done() and task.cancelling()):  # not a failure to stop
                failures[k] = failure
            if not over.done():
                over.set_result(None)
            if isinstance(failure, KeyboardInterrupt | SystemExit):
                raise  # it ends the event loop too
        tasks.discard(task)
        if not tasks and not over.done():
            over.set_result(None)

    hire(1)
    try:
        await over
    finally:
        await cancelled(tasks)
    for _, failure in sorted(failures.items()):
        raise failure from failure.__cause__


async def cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, even if cancelled meanwhile."""
    for task in tasks:
        task.cancel()
    ending, again = asyncio.gather(*tasks, return_exceptions=True), False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            again = True
    if again:
        raise asyncio.CancelledError


async def together(coroutines: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of coroutines that run concurrently. If one fails, the others are cancelled, and
    its exception is raised when they have ended."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await cancelled(tasks)


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Wait for ``work`` for at most ``seconds``; then it is cancelled, and ``TimeoutError`` raised.

    The time is counted in short pieces. While something else blocks the event loop, such as the
    forward pass of a model, at most one piece passes, so a result that has arrived is not lost.
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
    loop, done = asyncio.new_event_loop(), Future[T]()
    task = loop.create_task(coroutine)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop):
                done.set_result(loop.run_until_complete(task))
        except BaseException as error:  # raised by the caller
            done.set_exception(error)

    thread = Thread(target=run)
    try:
        thread.start()
        return done.result()
    except KeyboardInterrupt:
        with suppress(RuntimeError):  # the loop is closed: the run has just ended
            loop.call_soon_threadsafe(task.cancel)
        raise
    finally:
        thread.join()
