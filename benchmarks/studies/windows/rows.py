"""The rows and differences of the record."""

from __future__ import annotations

import msgspec

from benchmarks.studies.windows.arms import Split
from benchmarks.studies.windows.held_out import TemplateSet


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
