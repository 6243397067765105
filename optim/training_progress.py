"""Reports of the progress of training, for progress bars and logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

Phase = Literal["rollout", "update", "checkpoint", "iteration"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One report of the progress."""

    iteration: int
    """The current iteration, counted from 0. In phase ``iteration``: how many are finished."""
    iterations: int
    phase: Phase
    done: int
    """Episodes or adapters done in this phase."""
    total: int
    elapsed: float
    """Seconds since this process began to train."""
    remaining: float | None
    """Estimated seconds to the end, from the iterations finished so far; in the first one, from its
    rollouts and the adapters updated so far. ``None`` before the first adapter is updated, because
    the time of an update is not known before."""


class ProgressReporter:
    """Measures the time of iterations and makes reports."""

    def __init__(
        self,
        iterations: int,
        on_progress: Callable[[Progress], None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._iterations, self._on_progress, self._clock = iterations, on_progress, clock
        self._started = self._iteration_started = self._update_started = clock()
        self._durations: list[float] = []

    def start_iteration(self) -> None:
        """Start the clock of an iteration."""
        self._iteration_started = self._clock()

    def report(self, iteration: int, phase: Phase, done: int, total: int) -> None:
        """Make a report if there is a callback."""
        if self._on_progress is None:
            return
        now = self._clock()
        if phase == "update" and not done:
            self._update_started = now
        self._on_progress(
            Progress(
                iteration=iteration,
                iterations=self._iterations,
                phase=phase,
                done=done,
                total=total,
                elapsed=now - self._started,
                remaining=self._remaining(iteration, phase, done, total, now),
            )
        )

    def finish_iteration(self, iteration: int) -> None:
        """Stop the clock of an iteration and report its end."""
        now = self._clock()
        self._durations.append(now - self._iteration_started)
        self._iteration_started = now
        self.report(iteration + 1, "iteration", iteration + 1, self._iterations)

    def _remaining(
        self, iteration: int, phase: Phase, done: int, total: int, now: float
    ) -> float | None:
        spent = now - self._iteration_started
        if self._durations:
            mean = sum(self._durations) / len(self._durations)
            return max(0.0, (self._iterations - iteration) * mean - spent)
        if phase == "rollout" or (phase == "update" and not done):
            return None
        whole = spent
        if phase == "update":
            updating = now - self._update_started
            whole += updating * (total - done) / done
        return (self._iterations - iteration) * whole - spent
