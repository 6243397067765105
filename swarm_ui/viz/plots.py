"""Plots of a training run as .png or .svg files, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FORMATS = (".png", ".svg")


def plot_success(series: Mapping[str, Sequence[Interval | None]], path: Path) -> None:
    """Success per iteration, one line per label, with its 95 % band; ``None`` leaves a gap."""
    figure, axes = _figure(6.0, 3.6, path)
    for label, values in series.items():
        points = [(k, v) for k, v in enumerate(values) if v is not None]
        at = [k for k, _ in points]
        (line,) = axes.plot(at, [100 * v.mean for _, v in points], marker="o", label=label)
        low, high = [100 * v.low for _, v in points], [100 * v.high for _, v in points]
        axes.fill_between(at, low, high, alpha=0.15, color=line.get_color())
    axes.set(xlabel="iteration", ylabel="success, %", ylim=(0, 100))
    axes.locator_params(axis="x", integer=True)
    if series:
        axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def plot_credit(
    values: Sequence[Sequence[float | None]], agents: Sequence[str], path: Path, *, title: str = ""
) -> None:
    """A credit matrix, ``[rounds, agents]``, as a heat map; unscored cells are grey, not 0."""
    figure, axes = _figure(1.6 + 0.9 * len(agents), 1.4 + 0.55 * len(values), path)
    shown = [[float("nan") if value is None else value for value in row] for row in values]
    axes.set_facecolor("#e8e8e8")
    axes.imshow(shown, cmap="RdYlGn", vmin=0.0, vmax=1.0, aspect="auto")
    for r, row in enumerate(values):
        for k, value in enumerate(row):
            dark = value is not None and not 0.12 < value < 0.88
            text = "–" if value is None else f"{value:.2g}"
            ink = "white" if dark else "black"
            axes.text(k, r, text, ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(range(len(agents)), agents)
    axes.set_yticks(range(len(values)), [f"round {r + 1}" for r in range(len(values))])
    axes.set_title(title)
    figure.savefig(path, dpi=150)


def _figure(width: float, height: float, path: Path) -> tuple[Figure, Axes]:
    """A figure of this size in inches, and its axes.

    Raises:
        ConfigError: the file's name ends in neither .png nor .svg.
        MissingExtra: matplotlib is not installed.
    """
    if path.suffix not in _FORMATS:
        raise ConfigError(
            f"{path}: the name of a plot must end in {' or '.join(_FORMATS)}; choose another name"
        )
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Made
    except ImportError as error:
        raise MissingExtra("train", "drawing plots", "matplotlib") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without pyplot: no global state, no display, nothing to close.
    figure = Made(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
