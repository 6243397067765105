"""Metrics of team training as TensorBoard scalars, in addition to ``metrics.jsonl``.

    tensorboard --logdir runs/RUN/tensorboard

Needs the extra ``tensorboard``. ``metrics.jsonl`` remains the complete record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
            folder: where the event files are written; created when the first iteration is written.

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
    edges = metrics.edge_update
    groups: dict[str, Mapping[str, float | None]] = {
        "rollout": {
            "success": metrics.success, "guided": metrics.guided, "masked": metrics.masked,
        },
        "credit": {"mean": metrics.credit, "unscored": metrics.unscored},
        "pairs": metrics.pairs,
        "loss": {update.adapter: update.loss for update in metrics.updates},
        "accuracy": {update.adapter: update.accuracy for update in metrics.updates},
        "edges": {"entropy": edges.edge_entropy, "moved": edges.moved} if edges else {},
        "edge": metrics.edge_probabilities or {},
        "seconds": {
            "rollout": metrics.rollout_seconds, "update": metrics.update_seconds,
            "cpu": metrics.cpu_seconds,
        },
        "memory": {"peak_mb": metrics.peak_memory_mb},
    }  # fmt: skip
    for group, values in groups.items():
        for name, value in values.items():
            if value is not None:  # TensorBoard does not allow ">" in a name
                yield f"{group}/{name.replace('>', ' to ')}", float(value)
