"""The picture of a study: the success of its shown arms with intervals, a panel for each split."""

from __future__ import annotations

import io
from pathlib import Path
from textwrap import fill

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.study import Study
from benchmarks.table import Table
from swarm_ui.files import write_atomic

_WIDTH, _LINE = 9.0, 0.32
"""Inches: of the picture, and of an arm."""
_TITLE = 26
"""Letters of a line of a panel's title."""


def draw(study: Study, found: Table, path: Path) -> None:
    """Draw the rows that are on the page as SVG; equal rows give equal files."""
    arms = [arm for arm in study.shown if any(row.arm == arm for row in found.rows)]
    splits = list(dict.fromkeys(row.split for row in found.rows if row.arm in arms))
    figure = Figure(figsize=(_WIDTH, 0.8 + _LINE * max(3, len(arms))), layout="constrained")
    panels = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    for panel, split in zip(panels, splits, strict=True):
        rows = [row for row in found.rows if row.split == split and row.arm in arms]
        at = [len(arms) - arms.index(row.arm) for row in rows]
        means = [100 * row.success for row in rows]
        ends = [
            [100 * (row.success - row.low) for row in rows],
            [100 * (row.high - row.success) for row in rows],
        ]
        panel.errorbar(means, at, xerr=ends, fmt="o", color="#3f51b5", capsize=3)
        panel.set_title(fill(f"{split}, success %", _TITLE), fontsize=9)
        panel.set_yticks(range(len(arms), 0, -1), arms, fontsize=8)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="x", alpha=0.3)
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "swarm-ui"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_atomic(path, drawn.getvalue())
