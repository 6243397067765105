"""The picture of a study: the success of its shown arms with intervals, a panel for each split."""

from __future__ import annotations

import io
import math
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

_WIDTH, _LINE, _CURVES = 9.0, 0.32, 3.2
"""Inches: of the picture, an arm, and the curves."""
_TITLE = 26
"""Letters of a line of a panel's title."""


def draw(study: Study, found: Table, cells: Sequence[Cell], path: Path) -> None:
    """Draw the rows that are on the page as SVG; equal rows give equal files."""
    arms = [arm for arm in study.shown if any(row.arm == arm for row in found.rows)]
    splits = list(dict.fromkeys(row.split for row in found.rows if row.arm in arms))
    high = 0.8 + _LINE * max(3, len(arms))
    figure = Figure(figsize=(_WIDTH, high + (_CURVES if study.curves else 0)), layout="constrained")
    parts: Any = [figure]
    if study.curves:
        parts = figure.subfigures(2, 1, height_ratios=[high, _CURVES])
        _draw_curves(parts[1].subplots(), [cell for cell in cells if cell.arm in arms])
    panels = parts[0].subplots(1, len(splits), sharey=True, squeeze=False)[0]
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
        panel.set_ylim(0.5, len(arms) + 0.5)
        panel.tick_params(axis="x", labelsize=8)
        panel.grid(axis="x", alpha=0.3)
    drawn = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "swarm-ui"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_atomic(path, drawn.getvalue())


def _draw_curves(panel: Any, cells: Sequence[Cell]) -> None:
    """Success in the rollouts of each training, by iteration; a line for each seed."""
    for cell in sorted(cells, key=lambda cell: (cell.arm, cell.seed or 0)):
        rates = [math.nan if r is None else 100 * r for r in cell.notes.get("rollouts", ())]
        label = f"{cell.arm}, seed {cell.seed}" if rates else None
        panel.plot(range(1, len(rates) + 1), rates, "o-", label=label)
    panel.figure.legend(
        *panel.get_legend_handles_labels(), fontsize=8, ncols=2, loc="outside lower left"
    )
    panel.set_title("success % of the rollouts of each training, by iteration", fontsize=9)
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.3)
