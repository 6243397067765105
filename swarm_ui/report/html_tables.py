"""Tables of results. One column is also drawn as dots and intervals where this is useful."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.report.contents import Estimate, Link, ReportTable, TableCell
from swarm_ui.report.estimates import bounds, ends, figure
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.viz.svg import ticks

_WIDTH, _HEIGHT, _MARGIN = 210.0, 16.0, 14.0


class _Axis(NamedTuple):
    """The axis of a table's dots."""

    column: int
    """The column whose estimates are drawn."""
    ticks: Sequence[float]
    percent: bool
    difference: bool

    def at(self, value: float) -> float:
        """Pixels from the left end of the drawing."""
        low, high = self.ticks[0], self.ticks[-1]
        share = min(1.0, max(0.0, (value - low) / ((high - low) or 1.0)))
        return _MARGIN + (_WIDTH - 2 * _MARGIN) * share


def table(data: ReportTable, *, footnote: bool = True) -> Markup:
    """A table with its title.

    The first column of differences with two or more intervals, or else the first such column of
    other estimates, is also drawn: as dots and intervals, on one axis for the whole table, with a
    line at 0. A single interval, equal ones and estimates without intervals are not drawn.

    Args:
        data: the contents.
        footnote: whether the note below the table is included.
    """
    axis = _axis(data)
    numbers = [_numbers(column) for column in zip(*data.rows, strict=True)] or [False] * len(
        data.columns
    )
    heads = [
        tag("th", name, scope="col", class_="number" if right else None)
        for name, right in zip(data.columns, numbers, strict=True)
    ]
    body = []
    for row in data.rows:
        cells = [_cell(value, k, numbers[k]) for k, value in enumerate(row)]
        if axis is not None:
            cells.insert(axis.column + 1, _dot(row[axis.column], axis))
        body.append(tag("tr", *cells))
    if axis is not None:
        heads.insert(axis.column + 1, tag("td", _ticks(axis), class_="plot"))
    grid = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body))
    box = tag("div", grid, class_="wide")
    below = note(data.note) if footnote else Markup("")
    return tag("section", tag("h3", data.title), box, below, class_="result")


def _axis(data: ReportTable) -> _Axis | None:
    columns = range(1, len(data.columns))
    drawn = {k: [row[k] for row in data.rows if _has_interval(row[k])] for k in columns}
    fit = [k for k in columns if len(drawn[k]) > 1 and any(c != drawn[k][0] for c in drawn[k])]
    chosen = next((k for k in fit if all(_differs(cell) for cell in drawn[k])), None)
    column = chosen if chosen is not None else next(iter(fit), None)
    if column is None:
        return None
    cells = [cell for cell in drawn[column] if isinstance(cell, Estimate)]
    drawn_values = [v for c in cells for v in (c.value, *(ends(c) or ()))]
    percent, difference = all(c.percent for c in cells), all(c.difference for c in cells)
    low, high = min(0.0, *drawn_values), max(0.0, *drawn_values)
    if percent and not difference and low == 0.0 and high <= 1.0:
        high = 1.0  # shares are drawn on the whole axis
    return _Axis(column, ticks(low, high, 4), percent, difference)


def _has_interval(cell: TableCell) -> bool:
    return isinstance(cell, Estimate) and ends(cell) is not None


def _differs(cell: TableCell) -> bool:
    return isinstance(cell, Estimate) and cell.difference


def _numbers(column: Sequence[TableCell]) -> bool:
    """Whether a column holds plain numbers, which are set to the right."""
    known = [cell for cell in column if cell is not None]
    return bool(known) and all(isinstance(cell, int | float) for cell in known)


def _cell(value: TableCell, column: int, right: bool) -> Markup:
    if isinstance(value, Estimate):
        return tag("td", _estimate(value), class_="estimate")
    if isinstance(value, Link):
        shown = tag("a", value.text, href=value.address, class_="words")
        return tag("th", shown, scope="row") if column == 0 else tag("td", shown)
    if isinstance(value, str):
        words = tag("span", value, class_="words")
        return tag("th", words, scope="row") if column == 0 else tag("td", words)
    text = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return tag("td", text, class_="number" if right else None)


def _estimate(value: Estimate) -> Markup:
    name = "b" if value.excludes_zero and value.difference else "span"
    parts = [tag(name, figure(value, value.value))]
    if bounds(value):
        parts.append(tag("small", f" {bounds(value)}"))
    if value.count is not None:
        parts.append(tag("small", f" n = {value.count}"))
    return join(*parts)


def _dot(cell: TableCell, axis: _Axis) -> Markup:
    drawn, middle = [], _HEIGHT / 2
    if isinstance(cell, Estimate):
        marks = []
        known = ends(cell)
        if known is not None:
            left, right = map(axis.at, known)
            marks.append(tag("line", x1=left, x2=right, y1=middle, y2=middle, class_="whisker"))
        marks.append(tag("circle", cx=axis.at(cell.value), cy=middle, r=4, class_="dot"))
        drawn = [_drawing(*marks)]
    return tag("td", *drawn, class_="plot", style=f"--zero:{axis.at(0.0):.1f}px")


def _ticks(axis: _Axis) -> Markup:
    """The numbers of the axis."""
    marks = []
    for value in axis.ticks:
        shown = Estimate(value=value, percent=axis.percent, difference=axis.difference)
        text = figure(shown, value).removesuffix(".0")
        marks.append(tag("text", text, x=axis.at(value), y=12, text_anchor="middle"))
    return _drawing(*marks)


def _drawing(*marks: Markup) -> Markup:
    return tag("svg", *marks, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", width=_WIDTH, height=_HEIGHT,
               class_="dots", aria_hidden="true")  # fmt: skip
