"""The picture of a study: the success of its shown arms with intervals, a panel for each split."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.cell import Cell
from benchmarks.study import Study
from benchmarks.table import Table
from swarm_ui.files import write_atomic

_WIDTH, _LINE, _CURVES = 9.0, 0.32, 2.4
"""Inches: of the picture, of an arm, and of the learning curves."""
_TITLE = 26
"""Letters of a line of a panel's title."""


def draw(study: Study, found: Table, cells: Sequence[Cell], path: Path) -> None:
    """Draw the rows that are on the page as SVG; equal rows give equal files."""
    arms = [arm for arm in study.shown if any(row.arm == arm for row in found.rows)]
    splits = list(dict.fromkeys(row.split for row in found.rows if row.arm in arms))
    high = 0.8 + _LINE * max(3, len(arms))
    figure = Figure(figsize=(_WIDTH, high + (_CURVES if study.curves else 0)), layout="constrained")
    part: Any = figure
    if study.curves:
        part, lower = figure.subfigures(2, 1, height_ratios=[high, _CURVES])
        _draw_curves(lower.subplots(), [cell for cell in cells if cell.arm in arms])
    panels = part.subplots(1, len(splits), sharey=True, squeeze=False)[0]
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


def _draw_curves(panel: Any, cells: Sequence[Cell]) -> None:
    """Success in the rollouts of each training, by iteration; a line for each seed."""
    trained = [cell for cell in cells if "rollouts" in cell.notes]
    arms = list(dict.fromkeys(cell.arm for cell in trained))
    for cell in trained:
        rates = [100 * rate for rate in cell.notes["rollouts"]]
        color = f"C{arms.index(cell.arm)}"
        panel.plot(range(1, len(rates) + 1), rates, "o-", color=color, label=cell.arm)
    named = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    panel.legend(named.values(), named.keys(), fontsize=8)
    panel.set_title("training pages, success % of the rollouts of each seed", fontsize=9)
    panel.set_xlabel("iteration", fontsize=8)
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.3)
