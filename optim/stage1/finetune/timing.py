"""Time of a training stage: its budget, the learning rate that follows it, and checkpoints."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import accelerate  # type: ignore[import-untyped]
from transformers import TrainerCallback

from swarm_ui.files import write_atomic

_WARM_UP = 0.1
"""Share of a stage in which the learning rate rises."""
_MARK = "complete.json"


class Timer(TrainerCallback):
    """Measures the time of a stage, across interruptions, and ends the stage at its time limit.

    It also marks complete checkpoints: a checkpoint without the mark was cut off by a kill or a
    full disk and is removed.
    """

    def __init__(self, work: Path, group: accelerate.PartialState, budget: float | None) -> None:
        """
        Args:
            work: folder of the checkpoints.
            group: the processes that train together; the first one's clock counts.
            budget: seconds; ``None``: no limit.
        """
        self._work, self._group, self._budget = work, group, budget
        self._start = time.monotonic()
        self._share = 0.0
        self.ran_out = False
        """Whether the stage was ended because its time was over."""

    def resume(self) -> str | None:
        """The last complete checkpoint, where the clock continues; ``None`` if there is none."""
        found = []
        for folder in self._work.glob("checkpoint-*"):
            if (folder / _MARK).exists():
                found.append(folder)
            elif self._group.is_main_process:
                shutil.rmtree(folder, ignore_errors=True)
        if not found:
            return None
        last = max(found, key=lambda folder: int(folder.name.rpartition("-")[2]))
        self._start -= json.loads((last / _MARK).read_text())["seconds"]
        return str(last)

    @property
    def seconds(self) -> float:
        """Seconds of training since the start, without the time between an interruption and the
        resume."""
        return time.monotonic() - self._start

    def rate(self, step: int, steps: int) -> float:
        """The learning rate as a share of its peak: it rises, then falls linearly to zero.

        Its position is the finished share of the steps or of the time, whichever is larger.
        """
        at = self.share(step, steps)
        return at / _WARM_UP if at < _WARM_UP else (1.0 - at) / (1.0 - _WARM_UP)

    def share(self, step: int, steps: int) -> float:
        """The finished share of the stage, in [0, 1]."""
        return min(1.0, max(step / max(1, steps), self._share))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._budget is None:
            return
        shared = [self.seconds / self._budget]
        if self._group.num_processes > 1:  # all must stop at the same step
            shared = accelerate.utils.broadcast_object_list(shared)
        self._share = shared[0]

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._share >= 1.0:
            self.ran_out = True
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._group.is_main_process:
            folder = self._work / f"checkpoint-{state.global_step}"
            write_atomic(folder / _MARK, json.dumps({"seconds": self.seconds}))
