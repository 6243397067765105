"""The progress of a fine-tuning, and the division of its time among the stages.

The remaining time is estimated from the tokens that were trained on since a stage began, not from
its steps: batches of similar length begin with the longest ones, so the first steps are the
slowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec


class StageSize(msgspec.Struct, frozen=True, kw_only=True):
    """The amount of work of a stage."""

    stage: str
    samples: int
    skipped: int
    tokens: int
    longest: int
    steps: int
    work: float
    """Tokens of all its steps, in units of the cost of a token in supervised training."""
    weight: float = 1.0
    """The cost of one of its tokens, relative to a token in supervised training."""


class Step(NamedTuple):
    """A finished step of a stage."""

    step: int
    steps: int
    """Number of all steps of the stage."""
    loss: float
    share: float
    """Finished share of the stage, by steps or by time."""
    seconds: float
    """Time of the stage so far, also before an interruption."""
    first: int
    """The number of steps that were made before this process began."""
    tokens: float
    """Tokens that this process has trained on, without padding."""
    trained: float
    """Seconds for which this process has trained."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a fine-tuning."""

    stage: str
    step: int
    steps: int
    loss: float
    done: float
    """Share of all stages' work that is done, in [0, 1]."""
    left: float
    """Seconds until the end, estimated from the speed of the stage so far; never more than what is
    left of the time limit."""


class Watch:
    """Divides the time over the stages, and reports the remaining time."""

    def __init__(
        self,
        sizes: list[StageSize],
        minutes: float | None,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self._sizes = {size.stage: size for size in sizes}
        self._limit = None if minutes is None else 60.0 * minutes
        self._report = report
        self._spent = 0.0
        self._stage = ""
        self._done = 0.0

    def begin(self, stage: str) -> float | None:
        """The seconds that a stage may take: its share of the remaining time."""
        self._stage = stage
        if self._limit is None:
            return None
        share = self._sizes[stage].work / max(self._work_from(stage), 1e-9)
        return max(1.0, (self._limit - self._spent) * share)

    def end(self, seconds: float) -> None:
        self._spent += seconds
        self._done += self._sizes[self._stage].work

    def on_step(self, at: Step) -> None:
        if self._report is None:
            return
        whole = max(sum(size.work for size in self._sizes.values()), 1e-9)
        done = (self._done + at.share * self._sizes[self._stage].work) / whole
        self._report(
            Progress(
                stage=self._stage, step=at.step, steps=at.steps, loss=at.loss, done=done,
                left=self._left(at),
            )
        )  # fmt: skip

    def _left(self, at: Step) -> float:
        """The remaining seconds of all stages, from the speed of the current one; at most what the
        time limit leaves."""
        size = self._sizes[self._stage]
        made = at.tokens * size.weight
        before = size.work * at.first / max(1, at.steps)
        # Batches are drawn, so the tokens of all steps are not known exactly before the last one.
        here = 0.0 if at.step >= at.steps else max(0.0, size.work - before - made)
        later = self._work_from(self._stage) - size.work
        left = (here + later) * at.trained / max(made, 1e-9)
        if self._limit is None:
            return left
        return max(0.0, min(left, self._limit - self._spent - at.seconds))

    def _work_from(self, stage: str) -> float:
        """The work of a stage and of all later ones."""
        names = list(self._sizes)
        return sum(self._sizes[name].work for name in names[names.index(stage) :])
