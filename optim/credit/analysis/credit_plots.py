"""Plots of critics, drawn without a display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.optim.credit.analysis.calibration import Calibration
from swarm_ui.optim.credit.analysis.compare import Comparison
from swarm_ui.optim.plots import heat_map, new_figure, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(reports: Sequence[Calibration], path: Path) -> None:
    """Share of messages that are right against their score, with one line for each critic.

    On the diagonal a score is the probability of being right. The area of a mark grows with the
    number of messages; bars are 95 % intervals. Reports without bins are left out.
    """
    figure, (axes,) = new_figure(8.0, 4.6)
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=1, linestyle="--")
    shown = [report for report in reports if report.bins]
    for report in shown:
        scores = [cell.score for cell in report.bins]
        shares = [cell.right.mean for cell in report.bins]
        below = [max(0.0, c.right.mean - c.right.low) for c in report.bins]
        above = [max(0.0, c.right.high - c.right.mean) for c in report.bins]
        most = max(cell.right.n for cell in report.bins)
        label = report.source if report.error is None else f"{report.source} ({report.error:.2f})"
        drawn = axes.errorbar(scores, shares, [below, above], linewidth=1.2, capsize=2, label=label)
        sizes = [20 + 120 * cell.right.n / most for cell in report.bins]
        axes.scatter(scores, shares, s=sizes, color=drawn[0].get_color(), alpha=0.6)
    said = shown[0].reference if shown else "a reference"
    axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="score")
    axes.set_ylabel(f"share right, says {said}")
    if shown:
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0),
                    title="calibration error in brackets", title_fontsize=8)  # fmt: skip
    save_figure(figure, path)


def plot_comparison(comparison: Comparison, path: Path) -> None:
    """Rank correlations of all pairs, and the AUC and the cost of each critic."""
    sides = comparison.sides
    n = len(sides)
    figure, (left, right) = new_figure(5.5 + 1.05 * n, 2.2 + 0.45 * n, columns=2)
    heat_map(left, comparison.ranks, (-1.0, 1.0), "RdBu")
    left.set_xticks(range(n), [f"{k + 1}" for k in range(n)])
    left.set_yticks(range(n), [f"{k + 1}  {side.name}" for k, side in enumerate(sides)], fontsize=8)
    left.set_title("rank correlation", fontsize=10)
    _against_reference(right, comparison)
    save_figure(figure, path)


def _against_reference(axes: Axes, comparison: Comparison) -> None:
    axes.axvline(0.5, color="#999999", linewidth=1, linestyle="--")
    for k, side in enumerate(comparison.sides):
        drawn = ((-0.2, "o", side.auc), (0.0, "s", side.inside), (0.2, "^", side.outcome_auc))
        for shift, mark, value in drawn:
            if value is not None:
                bars = [[max(0.0, value.mean - value.low)], [max(0.0, value.high - value.mean)]]
                color = {"o": "#1f6fb4", "s": "#2c8c4e", "^": "#d97b29"}[mark]
                axes.errorbar([value.mean], [k + shift], xerr=bars, fmt=mark, color=color,
                              capsize=2, markersize=5)  # fmt: skip
        calls = "–" if side.calls is None else f"{side.calls}"
        axes.text(1.03, k, f"{calls} calls, {side.seconds:.1f} s", va="center", fontsize=8,
                  transform=axes.get_yaxis_transform())  # fmt: skip
    axes.set_yticks(range(len(comparison.sides)), [])
    axes.set(ylim=(len(comparison.sides) - 0.5, -0.5), xlim=(-0.02, 1.02))
    axes.set_title("tells apart (AUC, 95 %)", fontsize=10)
    said = f"● right from wrong, says {comparison.reference}   ■ the same inside a decision\n"
    axes.set_xlabel((said if comparison.reference else "") + "▲ solved from failed", fontsize=8)
