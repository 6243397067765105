"""Intervals as the numbers of a JSON object."""

from __future__ import annotations

from swarm_ui.stats import Interval


def numbers(interval: Interval | None) -> list[float] | None:
    """Mean, lower and upper end."""
    return None if interval is None else [interval.mean, interval.low, interval.high]
