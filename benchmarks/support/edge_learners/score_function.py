"""The loss of edges with an optimiser, as a learner with one ``step``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from swarm_ui.optim.edges.candidates import EdgeSample
from swarm_ui.optim.edges.distribution import EdgeDistribution
from swarm_ui.optim.edges.optim import ProbabilitySGD, edge_loss
from swarm_ui.trace.records import EdgeName

Utilities = Sequence[float | None]


class ScoreFunction:
    """:func:`~swarm_ui.optim.edges.optim.edge_loss` with an optimiser and an optional warm-up."""

    def __init__(
        self,
        edges: EdgeDistribution,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        warmup: tuple[float, int] | None = None,
        **loss: Any,
    ) -> None:
        """
        Args:
            edges: updated in place.
            optimizer: default: ``ProbabilitySGD(edges, lr=0.4)``.
            warmup: the first learning rate, and the number of samples after which the rate is that
                of the optimiser.
            loss: settings of the loss.
        """
        self.edges = edges
        self.optimizer = ProbabilitySGD(edges, lr=0.4) if optimizer is None else optimizer
        self._loss, self._warmup, self._seen = {"normalise": False, **loss}, warmup, 0
        self._lr = self.optimizer.param_groups[0]["lr"]

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Utilities,
        credit: Sequence[Mapping[EdgeName, float]] | None = None,
        *,
        groups: Sequence[object] | None = None,
    ) -> None:
        """One update; the arguments are those of ``edge_loss``."""
        if self._warmup is not None:
            first, samples_until = self._warmup
            done = min(1.0, self._seen / samples_until)
            for group in self.optimizer.param_groups:
                group["lr"] = first + (self._lr - first) * done
        self.optimizer.zero_grad()
        loss = edge_loss(self.edges, samples, utilities, credit, groups=groups, **self._loss)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self._seen += len(samples)
