"""A model for commands in other processes: it clicks at random, after a short and random time."""

from __future__ import annotations

from benchmarks.speed.paced import Latencies, PacedModel


def paced() -> PacedModel:
    return PacedModel(Latencies.recorded(mean=0.05))
