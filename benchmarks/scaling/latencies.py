"""Latencies of a real model, from which the delays of a scripted one are drawn."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

RECORD = Path(__file__).with_name("latencies.json")


@dataclass(frozen=True, slots=True)
class Latencies:
    """A distribution of latencies in seconds, as evenly spaced quantiles."""

    seconds: tuple[float, ...]

    @classmethod
    def recorded(cls, mean: float | None = None) -> Latencies:
        """The recorded sample, scaled to ``mean`` seconds; if ``mean`` is ``None``, not scaled."""
        seconds = tuple(json.loads(RECORD.read_text(encoding="utf-8"))["seconds"])
        factor = 1.0 if mean is None else mean / fmean(seconds)
        return cls(tuple(value * factor for value in seconds))

    @classmethod
    def constant(cls, seconds: float) -> Latencies:
        return cls((seconds,))

    @property
    def mean(self) -> float:
        return fmean(self.seconds)

    def of(self, run: str) -> float:
        """The latency of the decision with that run id; equal ids have equal latencies."""
        return self.seconds[zlib.crc32(run.encode()) % len(self.seconds)]
