"""Success against the number of invented devices in training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.studies.invented_training.plan import BASE, GENERAL, SPLITS, Arm, design_of
from benchmarks.studies.invented_training.report import Record, Row, labels

_INKS = {"apps": "#b3541e", "templates": "#33658a", "parameters": "#55803c", "devices": "#7a5195"}
_LINES = {BASE: ("#8a9ba8", "--"), GENERAL: ("#2b2d42", ":")}
_MARKS = {"stage1": "D", "stage1-4e-3": "d", "outcome": "s", "untaught": "s"}
_SHIFTS = {"stage1": 0.16, "stage1-4e-3": 0.3}
"""Places of controls beside the arm of as many devices."""
_NOTE = "bars: 95 %, clustered by template and training run. Simulated phone, scripted critic"


def picture(record: Record, path: Path) -> None:
    """A panel for each split; needs matplotlib (extra ``train``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    splits = [s for s in ("apps", "templates", "parameters", "devices", "blind") if s in SPLITS
              and any(row.split == s for row in record.rows)]  # fmt: skip
    figure = Figure(figsize=(2.9 * len(splits), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(splits), squeeze=False)[0]
    for axes, split in zip(panels, splits, strict=True):
        rows = {row.name: row for row in record.rows if row.split == split}
        _panel(axes, split, rows, design_of(record.settings).by_name, labels(record.settings))
    panels[0].set_ylabel("success, %")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.suptitle(_NOTE, fontsize=9)
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)


def _panel(
    axes: Any, split: str, rows: dict[str, Row], arms: dict[str, Arm], named: dict[str, str]
) -> None:
    ink = _INKS.get(split, "#444444")
    curve = [name for name in rows if name in arms and not arms[name].control]
    counts = sorted(arms[name].devices for name in curve)
    at = {count: place for place, count in enumerate(counts)}
    for name, row in rows.items():
        if name in _LINES:
            color, style = _LINES[name]
            axes.axhline(100 * row.success, color=color, linestyle=style, label=named[name])
            axes.axhspan(100 * row.low, 100 * row.high, color=color, alpha=0.12, linewidth=0)
        else:
            control = arms[name].control
            x = at.get(arms[name].devices, 0) + _SHIFTS.get(name, -0.22) * control
            color = "#8a9ba8" if control else ink
            axes.plot([x, x], [100 * row.low, 100 * row.high], color=color, linewidth=1.4)
            axes.plot(
                x, 100 * row.success, _MARKS.get(name, "o"), color=color, markersize=6,
                label=named[name].replace(f", {arms[name].devices} invented devices", "")
                if control else None,
            )  # fmt: skip
    line = sorted((at[arms[name].devices], 100 * rows[name].success) for name in curve)
    axes.plot(*zip(*line, strict=True), color=ink, linewidth=1, alpha=0.6)
    axes.set_xticks(range(len(counts)), [str(count) for count in counts])
    axes.set(title=SPLITS[split], xlabel="invented devices in training")
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
