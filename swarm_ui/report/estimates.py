"""Estimates as text: a number, its interval and its count."""

from __future__ import annotations

import math

from swarm_ui.report.contents import Estimate


def figure(estimate: Estimate, value: float) -> str:
    """One number of an estimate, with a sign if it is a difference."""
    text = f"{100 * value:.1f}" if estimate.percent else f"{value:.4g}"
    text = "0.0" if text == "-0.0" else text
    if estimate.difference and value > 0 and text != "0.0":
        text = f"+{text}"
    return text.replace("-", "−")


def bounds(estimate: Estimate) -> str:
    """The interval as text, such as ``"[55.0, 66.0]"``; ``""`` if it is not known."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{figure(estimate, estimate.low)}, {figure(estimate, estimate.high)}]"


def ends(estimate: Estimate) -> tuple[float, float] | None:
    """The ends of the interval; ``None`` if it cannot be drawn. That of a single training run is
    infinite."""
    low, high = estimate.low, estimate.high
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return None
    return low, high


def interval(estimate: Estimate) -> str:
    """The number with its interval."""
    return f"{figure(estimate, estimate.value)} {bounds(estimate)}".strip()
