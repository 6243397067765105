"""Hands out numbered jobs, and again those whose worker was lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import NamedTuple

from swarm_ui.rollout.pool import Job, checked_job


class NumberedJob(NamedTuple):
    """A job of a stream, with its number."""

    number: int
    job: Job
    losses: int = 0
    """Number of times that its worker was lost."""


class JobQueue:
    """The jobs of a stream; each is read from its source when a worker is free to play it.

    A job that was taken is outstanding until :meth:`finish` or :meth:`put_back`. At most one job of
    an asynchronous source waits here.
    """

    def __init__(self, jobs: Iterable[Job] | AsyncIterable[Job]) -> None:
        self._source = aiter(jobs) if isinstance(jobs, AsyncIterable) else iter(jobs)
        self._ready: deque[NumberedJob] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._exhausted = False
        self._read = self._outstanding = 0

    @property
    def finished(self) -> bool:
        """Whether all jobs have been played."""
        return self._exhausted and not self._ready and not self._outstanding

    async def take(self) -> NumberedJob | None:
        """Wait for the next job and return it, or ``None`` if all jobs are played.

        Raises:
            Exception: an exception of the source.
        """
        while not self._ready and not self.finished:
            self._read_on()
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if not self._ready and not self.finished:
                await self._change()
        if not self._ready:
            self._wake(len(self._waiting))
            return None
        self._outstanding += 1
        taken = self._ready.popleft()
        if self._waiting:
            self._read_on()
        return taken

    def put_back(self, job: NumberedJob) -> None:
        """Hand out a job again, before all others."""
        self._outstanding -= 1
        self._ready.appendleft(job)
        self._wake(1)

    def finish(self) -> None:
        """Record that an outstanding job has its episode."""
        self._outstanding -= 1
        if self.finished:
            self._wake(len(self._waiting))

    async def close(self) -> None:
        """Stop reading from the source."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def _read_on(self) -> None:
        """Read the next job, unless another task is reading or a read job is still waiting."""
        if self._ready or self._exhausted or self._reading is not None:
            return
        if isinstance(self._source, AsyncIterator):
            self._reading = asyncio.get_running_loop().create_task(self._read_one(self._source))
            return
        try:
            self._put(next(self._source))
        except StopIteration:
            self._exhausted = True

    async def _read_one(self, source: AsyncIterator[Job]) -> None:
        try:
            self._put(await anext(source))
        except StopAsyncIteration:
            self._exhausted = True
        except Exception as error:
            self._error, self._exhausted = error, True
        finally:
            self._reading = None
            self._wake(len(self._waiting) if self._exhausted else 1)

    def _put(self, job: Job) -> None:
        self._ready.append(NumberedJob(self._read, checked_job(job)))
        self._read += 1

    async def _change(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled():
                self._wake(1)  # it was woken and will not take the job
            raise

    def _wake(self, count: int) -> None:
        while count and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1
