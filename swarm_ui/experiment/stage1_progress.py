"""The progress of stage 1 in a terminal."""

from __future__ import annotations

from rich.progress import (
    BarColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)

from swarm_ui.optim.stage1.supervised import Progress


class Stage1Bar:
    """A progress bar with the loss and the time left; picklable, made when first called."""

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._task: TaskID | None = None

    def __call__(self, progress: Progress) -> None:
        if self._bars is None:
            self._bars = Bars(
                TextColumn("stage 1"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} steps  loss {task.fields[loss]:.3f}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._bars.start()
            self._task = self._bars.add_task("stage 1", total=progress.steps, loss=progress.loss)
        assert self._task is not None  # made together with the bars
        self._bars.update(self._task, completed=progress.step, loss=progress.loss)
        if progress.step == progress.steps:
            self._bars.stop()
