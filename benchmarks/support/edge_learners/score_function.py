"""Edge learners that the benchmarks compare, each with one ``step``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch

from benchmarks.support.edge_learners.sequential_edges import SequentialEdges
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


class GPTSwarmRule:
    """GPTSwarm's own update, as a reference: Adam with learning rate 0.1 on all log-odds.

    ``baseline`` is ``"none"`` as in its code for MMLU; ``"half"`` as in the rest of its code, which
    resets the moving average at every step, so that it stays at 0.5; or ``"average"``, the moving
    average that was probably intended.
    """

    def __init__(self, edges: SequentialEdges, baseline: Literal["none", "half", "average"]):
        self.edges, self.baseline = edges, baseline
        self.optimizer = torch.optim.Adam(edges.parameters(), lr=0.1)
        self._average: float | None = None

    def step(
        self,
        samples: Sequence[EdgeSample],
        utilities: Utilities,
        credit: object = None,
        *,
        groups: object = None,
    ) -> None:
        """One update; ``credit`` and ``groups`` are not used."""
        values = [value for value in utilities if value is not None]
        mean = sum(values) / len(values)
        known = mean if self._average is None else self._average
        self._average = mean if self._average is None else 0.9 * known + 0.1 * mean
        subtracted = {"none": 0.0, "half": 0.5, "average": known}[self.baseline]
        advantages = torch.tensor(values) - subtracted
        self.optimizer.zero_grad()
        loss = -(advantages * self.edges.log_prob(samples)).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
