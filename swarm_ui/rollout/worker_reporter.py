"""Reports what one place of a pool does: its start, and each attempt at an episode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from swarm_ui.trace.records import Episode
from swarm_ui.trace.worker_events import (
    MOST_LAPS,
    OnWorkerEvent,
    WorkerEvent,
    WorkerEventKind,
    seconds_in_calls,
)

Clock = Callable[[], float]
_DIGITS = 4
"""Decimals of a recorded time in seconds."""


def wall_clock() -> Clock:
    """A clock in seconds since the epoch that never runs backwards; for use in a running loop."""
    offset: float | None = None

    def now() -> float:
        nonlocal offset
        seconds = asyncio.get_running_loop().time()
        if offset is None:
            offset = time.time() - seconds
        return offset + seconds

    return now


class WorkerReporter:
    """Reports to a listener what one worker does; does nothing without a listener."""

    def __init__(
        self, worker: int, listener: OnWorkerEvent | None, clock: Clock | None = None
    ) -> None:
        """
        Args:
            worker: its number.
            listener: called with each event, in the order in which they happen.
            clock: seconds since the epoch; the workers of a run share one.
        """
        self.worker = worker
        self._listener, self._clock = listener, clock or wall_clock()
        self._job, self._queued, self._began = 0, 0.0, 0.0
        self._laps: list[tuple[float, float]] = []
        self._environment, self._operations = 0.0, 0
        self._present = False

    def started(self) -> None:
        """The worker has an environment. Only the first call is reported."""
        if not self._present:
            self._present = True
            self._tell("started")

    def queued(self, job: int) -> None:
        """A job was given to the worker, which begins it as soon as it can."""
        self._job, self._queued = job, self._now

    def began(self, task: str, seed: int) -> None:
        """An attempt at the job begins."""
        self._began, self._laps = self._now, []
        self._environment, self._operations = 0.0, 0
        self._tell("assigned", job=self._job, task=task, seed=seed)

    def lap(self, what: Literal["reset", "step"], seconds: float) -> None:
        """The environment has just finished an operation; a :data:`swarm_ui.rollout.pool.Lap`."""
        if self._listener is None:
            return
        self._environment += seconds
        self._operations += 1
        if self._operations <= MOST_LAPS:
            after = max(0.0, self._clock() - self._began - seconds)
            self._laps.append((round(after, _DIGITS), round(seconds, _DIGITS)))

    def finished(self, episode: Episode, *, played: bool = True) -> None:
        """An attempt at the job has ended. ``played``: whether an episode had begun."""
        if self._listener is None:
            return
        times: dict[str, Any] = {}
        if played:
            times = {
                "began": self._began,
                "model": round(seconds_in_calls(episode), _DIGITS),
                "environment": round(self._environment, _DIGITS),
                "laps": tuple(self._laps) if self._operations <= MOST_LAPS else (),
            }
        self._tell(
            "finished",
            job=self._job,
            task=episode.task,
            seed=episode.seed,
            success=episode.success,
            fault="" if episode.fault is None else str(episode.fault),
            queued=self._queued,
            **times,
        )
        self._queued = self._now  # another attempt at the same job waits from now on

    def given_up(self, why: str) -> None:
        """The worker is no longer used, because it had too many faults."""
        self._tell("given_up", text=why)

    def closed(self) -> None:
        """The worker is no longer needed."""
        if self._present:
            self._present = False
            self._tell("closed")

    @property
    def _now(self) -> float:
        return round(self._clock(), _DIGITS)

    def _tell(self, kind: WorkerEventKind, **more: Any) -> None:
        if self._listener is not None:
            self._listener(WorkerEvent(kind=kind, worker=self.worker, at=self._now, **more))


def told_elsewhere(
    attempts: Sequence[WorkerEvent], *, queued: float, now: float
) -> list[WorkerEvent]:
    """Convert the times of attempts, which another process reported, to this process's clock.

    Only durations are taken from the other clock: the last attempt has ended just now.

    Args:
        attempts: ``finished`` events, the oldest first.
        queued: when the job was sent there, in seconds since the epoch.
        now: seconds since the epoch.
    """
    if not attempts:
        return []
    shift = now - attempts[-1].at

    def moved(at: float | None) -> float | None:
        return None if at is None else max(queued, round(at + shift, _DIGITS))

    first, *others = (
        replace(event, at=max(queued, round(event.at + shift, _DIGITS)), began=moved(event.began),
                queued=moved(event.queued))
        for event in attempts
    )  # fmt: skip
    return [replace(first, queued=queued), *others]
