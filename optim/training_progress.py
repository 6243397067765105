"""Where training stands, for progress bars and logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from swarm_ui.trace.records import Episode

Phase = Literal["rollout", "update", "checkpoint", "iteration"]


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One report."""

    iteration: int
    """The one at work, counted from 0; with phase ``iteration``: how many are finished."""
    iterations: int
    phase: Phase
    done: int
    """Episodes or adapters done in this phase."""
    total: int
    elapsed: float
    """Seconds since this process began to train."""
    remaining: float | None
    """Seconds to the end, judged by the iterations finished so far; ``None`` before the first."""


class Pace:
    """Keeps time over iterations and makes reports."""

    def __init__(
        self,
        iterations: int,
        report: Callable[[Progress], None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._iterations, self._report, self._clock = iterations, report, clock
        self._began = self._at = clock()
        self._finished: list[float] = []

    def start(self) -> None:
        """An iteration begins."""
        self._at = self._clock()

    def tell(self, iteration: int, phase: Phase, done: int, total: int) -> None:
        """Report, if anybody listens."""
        if self._report is not None:
            now = self._clock()
            self._report(
                Progress(
                    iteration=iteration,
                    iterations=self._iterations,
                    phase=phase,
                    done=done,
                    total=total,
                    elapsed=now - self._began,
                    remaining=self._remaining(iteration, now),
                )
            )

    def counting(
        self, iteration: int, before: int, total: int
    ) -> Callable[[int, int, Episode], None]:
        """A listener for one of several rollouts of an iteration, ``before`` episodes in."""

        def count(done: int, _: int, __: Episode) -> None:
            self.tell(iteration, "rollout", before + done, total)

        return count

    def finish(self, iteration: int) -> None:
        """An iteration is over."""
        self._finished.append(self._clock() - self._at)
        self._at = self._clock()
        self.tell(iteration + 1, "iteration", iteration + 1, self._iterations)

    def _remaining(self, iteration: int, now: float) -> float | None:
        if not self._finished:
            return None
        each = sum(self._finished) / len(self._finished)
        return max(0.0, (self._iterations - iteration) * each - (now - self._at))
