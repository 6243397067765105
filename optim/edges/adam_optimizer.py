"""Edge optimiser with Adam on the log-odds, and GPTSwarm's update as a reference."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from swarm_ui.optim.edges.score_function import Baseline, D, ScoreFunctionOptimizer


class AdamEdgeOptimizer(ScoreFunctionOptimizer[D]):
    """Adam with learning rate ``lr`` on all parameters of a distribution.

    Unlike :class:`~swarm_ui.optim.edges.optimizer.EdgeOptimizer`, it does not clamp the
    probabilities and scores.
    """

    steps_without_gradient = True

    @cached_property
    def _adam(self) -> torch.optim.Adam:
        return torch.optim.Adam(self.distribution.parameters(), self.lr)

    def _ascend(self, objective: Tensor) -> None:
        self._adam.param_groups[0]["lr"] = self.rate * self.lr
        self._adam.zero_grad()
        (-objective).backward()  # type: ignore[no-untyped-call]
        self._adam.step()


def gptswarm_rule(
    distribution: D, baseline: Literal["none", "half", "average"] = "half"
) -> AdamEdgeOptimizer[D]:
    """GPTSwarm's own update, as a reference: Adam with learning rate 0.1 on all log-odds, which
    are not clamped.

    Use it with ``SequentialEdges(sequence="listed")`` and batches of 4.

    Args:
        distribution: updated in place.
        baseline: ``"none"``: like GPTSwarm's code for MMLU. ``"half"``: like the rest of its code,
            which resets the moving average at every step, so that it stays at 0.5. ``"average"``:
            the moving average that was probably intended.
    """
    own: Baseline = 0.5 if baseline == "half" else baseline
    return AdamEdgeOptimizer(distribution, lr=0.1, baseline=own)
