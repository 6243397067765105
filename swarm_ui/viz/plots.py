"""Plots of a training run, drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.stats import Interval
from swarm_ui.trace.records import EdgeName

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_FORMATS = (".png", ".svg")


def plot_success(series: Mapping[str, Sequence[Interval | None]], path: Path) -> None:
    """Success per iteration, one line per label, with its 95 % band; ``None`` leaves a gap.

    Like all plots of this module, it is written as ``.png`` or ``.svg``.
    """
    figure, (axes,) = new_figure(6.0, 3.6)
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
    save_figure(figure, path)


def plot_credit(
    values: Sequence[Sequence[float | None]], agents: Sequence[str], path: Path, *, title: str = ""
) -> None:
    """A credit matrix, ``[rounds, agents]``, as a heat map; unscored cells are grey, not 0."""
    figure, (axes,) = new_figure(1.6 + 0.9 * len(agents), 1.4 + 0.55 * len(values))
    heat_map(axes, values, (0.0, 1.0), "RdYlGn", form=".2g")
    axes.set_xticks(range(len(agents)), agents)
    axes.set_yticks(range(len(values)), [f"round {r + 1}" for r in range(len(values))])
    axes.set_title(title)
    save_figure(figure, path)


def plot_edges(probabilities: Mapping[EdgeName, float], path: Path) -> None:
    """Probability of each edge, sender by row and listener by column."""
    names = sorted({name for edge in probabilities for name in edge})
    figure, (axes,) = new_figure(1.8 + 0.8 * len(names), 1.6 + 0.6 * len(names))
    cells = [[probabilities.get((a, b)) for b in names] for a in names]
    image = heat_map(axes, cells, (0.0, 1.0), "Blues")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="listener", ylabel="sender")
    figure.colorbar(image, ax=axes, shrink=0.8)
    save_figure(figure, path)


def heat_map(
    axes: Axes,
    values: Sequence[Sequence[float | None]],
    limits: tuple[float, float],
    colors: str,
    *,
    form: str = ".2f",
) -> AxesImage:
    """Draw a matrix with its numbers; a cell that is ``None`` is grey, which is not 0.

    ``limits`` are the values at both ends of the color map. Numbers on dark cells are white.
    """
    shown = [[float("nan") if v is None else v for v in row] for row in values]
    axes.set_facecolor("#e8e8e8")
    low, high = limits
    image = axes.imshow(shown, cmap=colors, vmin=low, vmax=high, aspect="auto")
    dark = _dark(image)
    for r, row in enumerate(values):
        for k, value in enumerate(row):
            text = "–" if value is None else format(value, form)
            ink = "white" if value is not None and dark[r][k] else "black"
            axes.text(k, r, text, ha="center", va="center", fontsize=8, color=ink)
    return image


def _dark(image: AxesImage) -> list[list[bool]]:
    """Mask of the heat map cells that need white text."""
    data = image.get_array()
    assert data is not None  # it was made from values
    red, green, blue = image.to_rgba(data)[..., :3].transpose(2, 0, 1)
    found: list[list[bool]] = (0.299 * red + 0.587 * green + 0.114 * blue < 0.45).tolist()
    return found


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure of this size in inches, and its axes side by side.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Made
    except ImportError as error:
        raise MissingExtra("train", "drawing plots", "matplotlib") from error
    # Without pyplot: no global state, no display, nothing to close.
    figure = Made(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(1, columns, k + 1) for k in range(columns)]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure. Raises ``ConfigError`` if the name ends in neither .png nor .svg."""
    if path.suffix not in _FORMATS:
        raise ConfigError(
            f"{path}: the name of a plot must end in {' or '.join(_FORMATS)}; choose another name"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
