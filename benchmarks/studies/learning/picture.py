"""The picture of the learning benchmark: gains over four untrained agents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.studies.learning.cells import SPLITS
from benchmarks.studies.learning.labels import ALONE, LABELS, Line, finder

_MARKS = (("", "o", 0.0), ("_vote", "s", 0.22), ("_greedy", "^", -0.22))
"""Marker of an arm in the picture, and its distance above the row."""


def picture(data: dict[str, Any], path: Path) -> None:
    """Paired difference to four untrained agents with its clustered interval, a panel for each
    split; needs matplotlib (extra ``train``)."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = {line["name"] for line in data["rows"]} - {"untrained", "base_x4"}
    names = [name for name in LABELS if shown & {name, f"{name}_vote", f"{name}_greedy"}]
    figure = Figure(figsize=(12, 0.4 * len(names) + 1.3), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(SPLITS), sharey=True)
    shapes = {suffix: mark for suffix, mark, _ in _MARKS}
    for axes, split in zip(panels, SPLITS.values(), strict=True):
        of = finder(data["rows"], split)
        axes.axvline(0.0, color="#c9b458", linewidth=1, linestyle="--")
        for height, name in enumerate(reversed(names)):
            for suffix, mark, shift in _MARKS:
                line = of(name + suffix)
                if line is not None and "over_base_x4" in line:
                    shape = mark if suffix else shapes[ALONE.get(name, "")]
                    _mark(axes, line, height + shift, shape, main=not suffix)
        axes.set_yticks(range(len(names)), [LABELS[n] for n in reversed(names)])
        axes.set(title=split.replace("_", " "), xlabel=f"points over base ×4 ({_rate(of)} %)")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    figure.suptitle(
        "circle: team on DAGs; square: vote without edges; triangle: one agent; bars: 95 %, "
        "paired, clustered by template. Simulated phone, scripted critic",
        fontsize=9,
    )
    with rc_context({"svg.hashsalt": "learning"}):  # equal data give an equal file
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _rate(of: Callable[[str], Line | None]) -> str:
    base = of("base_x4")
    return "–" if base is None else f"{100 * base['success']:.1f}"


def _mark(axes: Any, line: Line, height: float, mark: str, *, main: bool) -> None:
    ink = "#b3541e" if line["name"].startswith("full") else "#33658a" if main else "#8a9ba8"
    axes.plot(
        [100 * line["beats_base_x4_low"], 100 * line["over_high"]], [height, height], color=ink,
        linewidth=1.6 if main else 0.9, solid_capstyle="round",
    )  # fmt: skip
    axes.plot(100 * line["over_base_x4"], height, mark, color=ink, markersize=5.5 if main else 3.5)
