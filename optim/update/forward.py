"""Forwards of an update, in parts that fit into memory, by one process or by several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from swarm_ui.optim.protocols import Trainable
from swarm_ui.optim.update.adapter_task import AdapterTask
from swarm_ui.optim.update.batches import (
    Example,
    Row,
    by_length,
    lengths_of,
    micro_batches,
    pad,
)
from swarm_ui.optim.update.distributed.processes import Processes
from swarm_ui.optim.update.update_config import UpdateConfig

_Divide = Callable[[Sequence[int]], list[list[int]]]
"""Divides rows, given by position, into parts for one forward each."""


class Forwards:
    """Runs the forward passes of updates with one model.

    With ``processes``, each process computes its share of the rows. If the base model is sharded,
    every process must run equally many forward passes; a process with a smaller share gets empty
    parts.
    """

    def __init__(
        self,
        model: Trainable,
        settings: UpdateConfig,
        limit: int,
        processes: Processes | None = None,
    ) -> None:
        """``limit``: tokens of one forward, padding included."""
        self._model, self._settings, self._limit = model, settings, limit
        self._processes = processes
        self._device = next(model.module.parameters()).device

    def __call__(self, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
        """Log-probability (nats) and number of tokens of each row's reply, both ``[rows]``."""
        batch = pad(rows, self._model.pad_id).to(self._device)
        return self._model.forward_logprobs(*batch)

    def parts(self, batch: Sequence[Example]) -> list[list[int]]:
        """The micro-batches of this process's share of a batch, as positions in the batch."""
        lengths, sides = [each.longest for each in batch], [each.sides for each in batch]

        def divided(share: Sequence[int]) -> list[list[int]]:
            found = micro_batches(
                [lengths[k] for k in share], [sides[k] for k in share], self._limit
            )
            return [[share[k] for k in part] for part in found]

        return self._own(len(batch), divided)

    @torch.no_grad()
    def references(self, task: AdapterTask) -> Tensor | None:
        """Reference log-probabilities, ``[2, examples]``; 0 for examples that no batch uses.

        For a pair, they are those of both sides under the reference. For a reply, the first is that
        under the policy that sampled it (computed with the adapter, or recorded if the reply is
        stale), the second that under the reference. ``None``: the method needs no references.
        """
        settings, examples = self._settings, task.examples
        if settings.method == "rft":
            return None
        values = torch.zeros(2, len(examples))
        used = sorted({row for batch in task.batches for row in batch})
        under = None if settings.reference == "base" else task.adapter
        if settings.method == "pg":
            values[:, used] = self._scored([examples[k].chosen for k in used], task.adapter)
            if under is None:
                values[1, used] = self._scored([examples[k].chosen for k in used], None)
            for k in used:
                said = examples[k].said
                if said is not None:
                    values[0, k] = said
            return values
        paired = [k for k in used if examples[k].rejected is not None]
        against = [row for k in paired if (row := examples[k].rejected) is not None]
        values[0, paired] = self._scored([examples[k].chosen for k in paired], under)
        values[1, paired] = self._scored(against, under)
        return values

    def _scored(self, rows: Sequence[Row], adapter: str | None) -> Tensor:
        """Log-probability of each row, ``[rows]``, under an adapter or the base model."""
        values = torch.zeros(len(rows))
        if not rows:
            return values
        model = self._model
        with model.reference() if adapter is None else model.activate(adapter):
            training = model.module.training
            model.module.eval()
            try:
                for part in self._own(len(rows), lambda share: self._pieces(rows, share)):
                    if part:
                        values[part] = self([rows[k] for k in part])[0].float().cpu()
                    else:
                        self(rows[:1])
            finally:
                model.module.train(training)
        # Rows of other processes are 0 here.
        return values if self._processes is None else self._processes.sum(values)

    def _pieces(self, rows: Sequence[Row], share: Sequence[int]) -> list[list[int]]:
        """Divide the rows into parts, one for each forward pass without gradients."""
        lengths = lengths_of([rows[k] for k in share])
        return [
            [share[piece[k]] for k in part]
            for piece in by_length(lengths, 2 * self._settings.batch_size)
            for part in micro_batches([lengths[k] for k in piece], [1] * len(piece), self._limit)
        ]

    def _own(self, count: int, divided: _Divide) -> list[list[int]]:
        """The parts that this process computes. If the base model is sharded, empty parts are
        added, so that all processes run the same number of forward passes."""
        group = self._processes
        if group is None:
            return divided(range(count)) if count else []
        own = divided(share) if (share := group.share(count)) else []
        if group.sharded and count:
            most = max(len(divided(s)) for k in range(group.size) if (s := group.share(count, k)))
            own += [[] for _ in range(most - len(own))]
        return own
