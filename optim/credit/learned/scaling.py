"""Platt scaling, which calibrates the scores of a critic as probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

_STEEPEST, _FLATTEST = 20.0, 0.05
_LARGEST = 30.0
"""Bound of log-odds, since a probability may be exactly 0 or 1."""
_PRIOR = 1.0
"""Weight of the prior, in replies: few replies change the scores little."""


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """``sigmoid(slope * log-odds + offset)``; the default changes nothing."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, probability: float) -> float:
        """The scaled probability."""
        z = self.slope * log_odds(probability) + self.offset
        return 1.0 / (1.0 + math.exp(-z)) if z >= 0 else math.exp(z) / (1.0 + math.exp(z))


def log_odds(probability: float) -> float:
    """``log(p / (1 - p))``, within bounds."""
    if probability <= 0.0 or probability >= 1.0:
        return -_LARGEST if probability <= 0.0 else _LARGEST
    found = math.log(probability) - math.log1p(-probability)
    return max(-_LARGEST, min(_LARGEST, found))


def fit_scaling(probabilities: Sequence[float], right: Sequence[bool]) -> Scaling:
    """The maximum-likelihood scaling, by Newton's method (Platt 1999).

    The slope is positive, so the order of the scores does not change. If all replies have one
    label, the scores are left as they are.
    """
    if not any(right) or all(right):
        return Scaling()
    x = np.array([log_odds(p) for p in probabilities])
    features = np.stack([x, np.ones_like(x)], axis=1)
    target = np.array(right, dtype=float)
    start = np.array([1.0, 0.0])
    weights = start.copy()
    for _ in range(50):
        z = np.clip(features @ weights, -_LARGEST, _LARGEST)
        p = 1.0 / (1.0 + np.exp(-z))
        gradient = features.T @ (p - target) + _PRIOR * (weights - start)
        curvature = (features * (p * (1.0 - p))[:, None]).T @ features + _PRIOR * np.eye(2)
        change = np.linalg.solve(curvature, gradient)
        weights -= np.clip(change, -1.0, 1.0)
        if float(np.abs(change).max()) < 1e-9:
            break
    slope = min(_STEEPEST, max(_FLATTEST, float(weights[0])))
    return Scaling(slope=slope, offset=float(weights[1]))
