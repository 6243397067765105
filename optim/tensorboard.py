"""Metrics of team training as TensorBoard scalars, beside ``metrics.jsonl``.

    tensorboard --logdir runs/RUN/tensorboard

Needs the extra ``tensorboard``. ``metrics.jsonl`` stays the record; this is a view of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from swarm_ui.errors import MissingExtra
from swarm_ui.optim.metrics import IterationMetrics


class TensorBoard:
    """Writes iterations into a folder.

    ``Callbacks(on_iteration=TensorBoard(folder).write)`` draws the curves of a training run.
    """

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: for the event files; created when the first iteration is written.

        Raises:
            MissingExtra: the package tensorboard is not installed.
        """
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("tensorboard", "TensorBoard", error.name or "tensorboard") from error
        self._folder, self._make_writer = folder, SummaryWriter
        self._writer: SummaryWriter | None = None

    def write(self, metrics: IterationMetrics) -> None:
        """Write the metrics of one iteration and flush them to disk.

        If a killed run already wrote points for this or a later iteration, the first call removes
        them from the curves.
        """
        if self._writer is None:
            self._writer = self._make_writer(str(self._folder), purge_step=metrics.iteration)
        for name, value in scalars(metrics):
            self._writer.add_scalar(name, value, metrics.iteration)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def scalars(metrics: IterationMetrics) -> Iterator[tuple[str, float]]:
    """The figures of an iteration that were measured, by name."""
    yield from _known(
        "rollout", {"success": metrics.success, "guided": metrics.guided, "masked": metrics.masked}
    )
    yield from _known("credit", {"mean": metrics.credit, "unscored": metrics.unscored})
    yield from _known("pairs", metrics.pairs)
    for update in metrics.updates:
        yield from _known("loss", {update.adapter: update.loss})
        yield from _known("accuracy", {update.adapter: update.accuracy})
    if metrics.edge_update is not None:
        entropy, moved = metrics.edge_update.edge_entropy, metrics.edge_update.moved
        yield from _known("edges", {"entropy": entropy, "moved": moved})
    yield from _known("edge", metrics.edge_probabilities or {})
    yield from _known(
        "seconds",
        {
            "rollout": metrics.rollout_seconds,
            "update": metrics.update_seconds,
            "cpu": metrics.cpu_seconds,
        },
    )
    yield from _known("memory", {"peak_mb": metrics.peak_memory_mb})


def _known(group: str, values: dict[str, float | None] | dict[str, int] | dict[str, float]) -> (
    Iterator[tuple[str, float]]
):  # fmt: skip
    """The known values with names in a group. TensorBoard does not allow ``>`` in a name."""
    for name, value in values.items():
        if value is not None:
            yield f"{group}/{name.replace('>', ' to ')}", float(value)
