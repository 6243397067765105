"""Progress of a fine-tuning, and the division of its time over the stages."""

from __future__ import annotations

from collections.abc import Callable

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


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """State of a fine-tuning."""

    stage: str
    step: int
    steps: int
    loss: float
    done: float
    """Share of all stages' work that is done, in [0, 1]."""


class Watch:
    """Divides the time over the stages, and reports the remaining time."""

    def __init__(
        self,
        sizes: list[StageSize],
        minutes: float | None,
        report: Callable[[Progress], None] | None,
    ) -> None:
        self._work = {size.stage: size.work for size in sizes}
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
        names = list(self._work)
        left = sum(self._work[name] for name in names[names.index(stage) :])
        return max(1.0, (self._limit - self._spent) * self._work[stage] / max(left, 1e-9))

    def end(self, seconds: float) -> None:
        self._spent += seconds
        self._done += self._work[self._stage]

    def on_step(self, step: int, steps: int, loss: float, share: float) -> None:
        if self._report is None:
            return
        whole = max(sum(self._work.values()), 1e-9)
        done = (self._done + share * self._work[self._stage]) / whole
        made = Progress(stage=self._stage, step=step, steps=steps, loss=loss, done=done)
        self._report(made)
