"""The rows and differences of the record, and how tables show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from benchmarks.studies.windows.arms import Split
from benchmarks.studies.windows.held_out import TemplateSet
from swarm_ui.stats import over_seeds


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One arm under one condition, on one set of templates."""

    name: str
    templates: TemplateSet | Split
    success: float
    low: float
    high: float
    """95 % interval, clustered by template and run."""
    t_low: float | None
    t_high: float | None
    """95 % interval over seeds (Student's t); ``None``: fewer than 3 seeds."""
    seeds: int
    """Training runs of stage 2; the untrained agent has one."""
    episodes: int
    """Of each seed."""
    calls: float
    tokens: float
    """Means of an episode; tokens of prompts and replies."""


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A difference on the same seeds and episodes."""

    name: str
    templates: TemplateSet | Split
    difference: float
    low: float
    high: float
    t_low: float | None
    t_high: float | None
    seeds: int
    named: bool
    """Whether the contrast was named before the study was run. If not, it is exploratory."""


def bounds_over_seeds(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's t over seeds; ``None``: fewer than three, or all equal."""
    found = over_seeds(values) if len(values) >= 3 else None
    if found is None or math.isinf(found.low):
        return None, None
    return round(found.low, 4), round(found.high, 4)


def percent(mean: float, low: float, high: float, form: str = ".1f") -> str:
    return f"{100 * mean:{form}} [{100 * low:{form}}, {100 * high:{form}}]"


def percent_range(low: float | None, high: float | None, form: str = ".1f") -> str:
    if low is None or high is None:
        return "–"
    return f"[{100 * low:{form}}, {100 * high:{form}}]"
