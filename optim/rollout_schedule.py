"""Schedules the episodes of an iteration after the previous update, or during it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.optim.collector import Collector, GraphRollout, PlannedRollout
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.training_progress import ProgressReporter


class PlayedRollouts(NamedTuple):
    """The rollouts of an iteration with their final credit."""

    rollouts: list[GraphRollout]
    staleness: int
    """Number of updates that were made after the weights that played the rollouts."""
    seconds: float
    """Duration of the rollouts, which may overlap with an update."""


class _Ahead(NamedTuple):
    """Rollouts that were started ahead of time."""

    iteration: int
    updates: int
    """Number of updates that had been made when the rollouts began."""
    task: asyncio.Task[tuple[list[GraphRollout], float]]


class RolloutSchedule:
    """Plays the episodes of the iterations, one iteration after another.

    :meth:`begin` starts those of the next iteration with the present weights, edges and trust in
    the critic, before the update that changes them. If other processes play, update and rollouts
    run at the same time. In one process the rollouts are played first, with the same result.
    """

    def __init__(self, collector: Collector, progress: ProgressReporter) -> None:
        self._collector, self._progress = collector, progress
        self._ahead: _Ahead | None = None
        self._current = -1

    @property
    def begun(self) -> int | None:
        """The iteration whose rollouts were started ahead of time, if any."""
        return None if self._ahead is None else self._ahead.iteration

    @property
    def playing(self) -> bool:
        """Whether episodes are being played now."""
        return self._ahead is not None and not self._ahead.task.done()

    async def begin(self, iteration: int, edges: EdgeDistribution, *, updates: int) -> None:
        """Start the rollouts of an iteration.

        A failure is raised by :meth:`episodes`, so that the update before it is not lost.

        Args:
            iteration: counted from 0.
            edges: the distribution from which graphs are drawn now.
            updates: number of updates that the present weights have had.
        """
        # The plan holds everything that an update changes.
        plan = self._collector.plan(iteration, edges)
        task = asyncio.create_task(self._play(iteration, plan))
        self._ahead = _Ahead(iteration, updates, task)
        if not self._collector.elsewhere:
            await asyncio.wait({task})

    async def episodes(self, iteration: int, edges: EdgeDistribution) -> PlayedRollouts:
        """The episodes of an iteration: those that :meth:`begin` started, or new ones. Raises
        ``ModelError`` as :meth:`Collector.play` does."""
        self._current = iteration
        ahead, updates = self._ahead, iteration
        if ahead is not None and ahead.iteration == iteration:
            rollouts, seconds = await ahead.task
            updates, self._ahead = ahead.updates, None
        else:
            rollouts, seconds = await self._play(iteration, self._collector.plan(iteration, edges))
        began = time.perf_counter()
        rollouts = await self._collector.settle(rollouts)
        seconds += time.perf_counter() - began
        return PlayedRollouts(rollouts, iteration - updates, seconds)

    async def stop(self) -> None:
        """Cancel rollouts that have begun and are not needed."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.task.cancel()
            await asyncio.gather(ahead.task, return_exceptions=True)

    async def _play(
        self, iteration: int, plan: Sequence[PlannedRollout]
    ) -> tuple[list[GraphRollout], float]:
        began = time.perf_counter()

        def report(done: int, total: int) -> None:
            if iteration == self._current:
                self._progress.report(iteration, "rollout", done, total)

        rollouts = await self._collector.play(plan, report)
        return rollouts, time.perf_counter() - began
