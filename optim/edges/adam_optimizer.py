"""Edge optimiser with Adam on the log-odds, and GPTSwarm's update as a reference."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from swarm_ui.optim.edges.score_function import Baseline, D, ScoreFunctionOptimizer

__all__ = ["AdamEdgeOptimizer", "gptswarm_rule"]


class AdamEdgeOptimizer(ScoreFunctionOptimizer[D]):
    """Adam on all parameters of a distribution, without bounds."""

    steps_without_gradient = True

    def __init__(
        self,
        distribution: D,
        *,
        lr: float = 0.4,
        first_lr: float | None = None,
        warmup: int = 0,
        credit_weight: float = 0.1,
        normalise: bool = False,
        baseline: Baseline = "others",
    ) -> None:
        """
        Args:
            distribution: updated in place.
            lr: Adam's learning rate.
            first_lr, warmup, credit_weight, normalise, baseline: see
                :class:`~swarm_ui.optim.edges.optimizer.EdgeOptimizer`.

        Raises:
            ConfigError: a setting is outside its range.
        """
        super().__init__(
            distribution, lr=lr, first_lr=first_lr, warmup=warmup, credit_weight=credit_weight,
            normalise=normalise, baseline=baseline,
        )  # fmt: skip
        self._adam = torch.optim.Adam(distribution.parameters(), lr)

    def _ascend(self, objective: Tensor) -> None:
        self._adam.param_groups[0]["lr"] = self.rate * self.lr
        self._adam.zero_grad()
        (-objective).backward()  # type: ignore[no-untyped-call]
        self._adam.step()


def gptswarm_rule(
    distribution: D, baseline: Literal["none", "half", "average"] = "half"
) -> AdamEdgeOptimizer[D]:
    """GPTSwarm's own update, as a reference: Adam at 0.1 on all log-odds, without bounds.

    Use it with ``SequentialEdges(sequence="listed")`` and batches of 4.

    Args:
        distribution: updated in place.
        baseline: ``"none"``: as GPTSwarm's code for MMLU. ``"half"``: as its code elsewhere, which
            resets the moving average at every step, so that it stays at 0.5. ``"average"``: the
            moving average that was probably intended.
    """
    own: Baseline = 0.5 if baseline == "half" else baseline
    return AdamEdgeOptimizer(distribution, lr=0.1, baseline=own)
