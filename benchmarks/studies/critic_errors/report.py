"""The effect of critics' errors, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.studies.critic_errors.cells import CRITICS, TRUST, WITHOUT, CriticCell
from benchmarks.studies.intervals import numbers
from benchmarks.studies.struct_files import read_struct
from swarm_ui.stats import Interval, Outcomes, over_seeds, paired_difference, wilson
from swarm_ui.storage.run_directory import write_atomic

_LABEL = "The phone is simulated, the critics scripted: scores on it are not AndroidWorld scores."
_TITLES = {"full": "trusted blindly", "learned": "learned weight"}


def summary(folder: Path) -> str:
    """The table as Markdown. Writes it and ``summary.json`` into the folder."""
    cells = [read_struct(path, CriticCell) for path in sorted((folder / "cells").glob("*.json"))]
    base = read_struct(folder / "base.json", list[float | None])
    without = {cell.seed: cell for cell in cells if cell.arm == WITHOUT}
    rows, figures = [_row("untrained", [], base, without)], {}
    order = [(WITHOUT, "without a critic (outcome)")] + [
        (f"{critic}-{trust}", f"{errors.label}, {_TITLES[trust]}")
        for critic, errors in CRITICS.items()
        for trust in TRUST
    ]
    for name, label in order:
        ours = [cell for cell in cells if cell.arm == name]
        if ours:
            rows.append(_row(label, ours, None, without))
            figures[name] = _figures(ours, without)
    head = [
        "| critic | seeds | success % | minus no critic, paired | over seeds | each seed | "
        "weight at the end | CPU-s of training |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    text = "\n".join([*head, *rows, "", _LABEL])
    write_atomic(folder / "summary.md", text + "\n")
    write_atomic(folder / "summary.json", json.dumps(figures, indent=1) + "\n")
    return text


def _row(
    label: str,
    cells: Sequence[CriticCell],
    outcomes: Outcomes | None,
    without: dict[int, CriticCell],
) -> str:
    pooled = outcomes if outcomes is not None else _pooled(cells)
    rate = wilson(pooled)
    paired, seeds = (None, None)
    if cells and cells[0].arm != WITHOUT:
        paired, seeds = _against(cells, without)
    each = ", ".join(f"{100 * _mean(cell.outcomes):.1f}" for cell in cells) or "–"
    weights = ", ".join("/".join(f"{w:.2f}" for w in c.weights[-1]) for c in cells if c.weights[-1])
    spent = f"{fmean([c.training_seconds for c in cells]):.0f}" if cells else "–"
    return (
        f"| {label} | {len(cells) or '–'} | {'–' if rate is None else rate.percent()} | "
        f"{_percent(paired)} | {_percent(seeds)} | {each} | {weights or '–'} | {spent} |"
    )


def _against(
    cells: Sequence[CriticCell], without: dict[int, CriticCell]
) -> tuple[Interval | None, Interval | None]:
    """Paired difference to training without a critic: over all episodes, and over seeds."""
    both = [(cell, without[cell.seed]) for cell in cells if cell.seed in without]
    ours = _pooled([cell for cell, _ in both])
    theirs = _pooled([other for _, other in both])
    gaps = [_mean(cell.outcomes) - _mean(other.outcomes) for cell, other in both]
    # One run says nothing about the variance between runs.
    return paired_difference(ours, theirs), over_seeds(gaps) if len(gaps) > 1 else None


def _figures(cells: Sequence[CriticCell], without: dict[int, CriticCell]) -> dict[str, object]:
    paired, seeds = _against(cells, without)
    return {
        "seeds": [cell.seed for cell in cells],
        "success": numbers(wilson(_pooled(cells))),
        "minus_no_critic": numbers(paired),
        "minus_no_critic_over_seeds": numbers(seeds),
        "weights": [cell.weights for cell in cells],
        "training_cpu_seconds": [round(cell.training_seconds, 1) for cell in cells],
    }


def _pooled(cells: Sequence[CriticCell]) -> list[float | None]:
    return [outcome for cell in cells for outcome in cell.outcomes]


def _mean(outcomes: Sequence[float | None]) -> float:
    return fmean([value for value in outcomes if value is not None])


def _percent(interval: Interval | None) -> str:
    return "–" if interval is None else interval.percent(signed=True)
