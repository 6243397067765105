"""Train the base agent from scratch: a transformer of about 0.2 M parameters, on the CPU.

    python demos/train_base_agent.py --out my_agent

The command that made the checkpoint in nodes/base_agent: the same with --out nodes/base_agent.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

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
from study.base_agent import BaseAgentConfig, make_base_agent

from swarm_ui.optim.stage1.supervised import Progress, Stage1Config


class Report:
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


def main() -> None:
    default = BaseAgentConfig()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder to save the agent in")
    parser.add_argument("--start", type=Path, help="go on from the agent in this folder")
    parser.add_argument("--steps", type=int, default=default.stage1.steps)
    parser.add_argument("--width", type=int, default=default.width)
    parser.add_argument("--layers", type=int, default=default.layers)
    parser.add_argument("--processes", type=int, default=default.processes)
    parser.add_argument("--demonstrations", type=int, default=default.demonstrations)
    parser.add_argument("--learning-rate", type=float, default=default.stage1.learning_rate)
    parser.add_argument("--seed", type=int, default=default.seed)
    given = parser.parse_args()
    stage1 = Stage1Config(steps=given.steps, learning_rate=given.learning_rate, seed=given.seed)
    config = replace(
        default,
        width=given.width,
        layers=given.layers,
        processes=given.processes,
        demonstrations=given.demonstrations,
        seed=given.seed,
        stage1=stage1,
    )
    make_base_agent(config, given.out, start=given.start, report=Report())


if __name__ == "__main__":
    main()
