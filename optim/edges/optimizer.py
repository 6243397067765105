"""The default edge optimiser: natural-gradient steps on the edges' probabilities."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from swarm_ui.errors import ConfigError
from swarm_ui.optim.edges.score_function import D, EdgeUpdate, ScoreFunctionOptimizer, Settings

__all__ = ["EdgeOptimizer", "EdgeUpdate"]


class EdgeOptimizer(ScoreFunctionOptimizer[D]):
    """Steps in probability space: ``p += lr * dJ/dlogit``.

    This is the natural gradient of a Bernoulli up to a constant. At probabilities close to 0 or 1
    it neither vanishes nor diverges, as steps on log-odds do. It needs a distribution with
    ``logits``, and perhaps ``scores``.
    """

    def __init__(
        self,
        distribution: D,
        *,
        min_probability: float = 0.03,
        max_score: float = 3.0,
        **settings: Unpack[Settings],
    ) -> None:
        """
        Args:
            distribution: updated in place.
            min_probability: every edge keeps a probability in ``[this, 1 - this]``, so that the
                entropy never becomes 0 and every edge can come back.
            max_score: bound on the absolute value of an order score.
            settings: see :class:`~swarm_ui.optim.edges.score_function.ScoreFunctionOptimizer`;
                ``lr`` is the step of a probability, or of an order score, for an advantage of 1.

        Raises:
            ConfigError: a setting is outside its range.
        """
        super().__init__(distribution, **settings)
        if not 0.0 <= min_probability < 0.5:
            raise ConfigError(
                f"EdgeOptimizer: min_probability must be in [0, 0.5), got {min_probability}"
            )
        self.min_probability, self.max_score = min_probability, max_score

    def _ascend(self, objective: Tensor) -> None:
        logits, scores = self.distribution.logits, getattr(self.distribution, "scores", None)
        parameters = [logits] if scores is None else [logits, scores]
        slopes = torch.autograd.grad(objective, parameters, allow_unused=True)
        step = self.rate * self.lr
        if not step:  # the bounds below would move edges too
            return
        with torch.no_grad():
            p = logits.sigmoid()
            if slopes[0] is not None:
                p = p + step * slopes[0]
            low = max(self.min_probability, 1e-6)
            logits.copy_(torch.logit(p.clamp(low, 1.0 - low)))
            if scores is not None and slopes[1] is not None:
                moved = scores + step * slopes[1]
                # Only differences of scores matter; centring keeps the bound symmetric.
                scores.copy_((moved - moved.mean()).clamp(-self.max_score, self.max_score))
