"""The files that a training run leaves, whenever it is killed."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from swarm_ui.experiment.progress import Bar
from swarm_ui.experiment.training import stage2
from swarm_ui.report.results import Cost
from swarm_ui.storage.run_directory import RunDirectory


class Saved:
    """A model whose adapters are one file."""

    adapters = ("agent_0",)
    counters = Cost()

    def save_adapters(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "weights").write_text("new")


class Silent:
    """A bar that shows nothing."""

    seconds = 1.0

    def update(self, done: float, note: str = "", *, left: float | None = None) -> None: ...


def test_the_learning_curve_has_the_adapters_of_every_iteration_with_a_checkpoint(
    tmp_path: Path,
) -> None:
    """A resumed run does not repeat an iteration that has a checkpoint, so its adapters are there
    before the checkpoint is."""
    run = RunDirectory.create(tmp_path / "run", config={})
    torn = stage2.adapters_after(run, 2)
    torn.mkdir(parents=True)
    (torn / "rest").touch()  # of an attempt that was killed
    recorder = stage2._Recorder(run, Saved(), cast(Bar, Silent()), 4, True, None)
    recorder.progress(1, "checkpoint", 0, 1)
    assert [path.name for path in torn.iterdir()] == ["weights"]
