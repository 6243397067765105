"""Tables with intervals drawn next to the numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, zip_longest

from swarm_ui.report.contents import Estimate, Link, ReportTable, TableCell
from swarm_ui.report.html import Attribute, Markup, join, note, tag

_WIDTH, _HEIGHT = 96, 14


def table(data: ReportTable) -> Markup:
    """A table. All estimates of a column share one scale."""
    head = tag("tr", *(tag("th", c, attrs={"scope": "col"}) for c in data.columns))
    scales = [_scale(column) for column in zip_longest(*data.rows)]
    body = [tag("tr", *map(_cell, row, scales, count())) for row in data.rows]
    grid = tag("table", tag("thead", head), tag("tbody", *body))
    box = tag("div", grid, attrs={"class": "wide"})
    return tag("section", tag("h2", data.title), box, note(data.note))


def _cell(value: TableCell, scale: tuple[float, float], column: int) -> Markup:
    if isinstance(value, Estimate):
        return tag("td", _estimate(value), _whisker(value, *scale), attrs={"class": "estimate"})
    if isinstance(value, Link):
        shown = tag("a", value.text, attrs={"href": value.address})
        return tag("th", shown, attrs={"scope": "row"}) if column == 0 else tag("td", shown)
    if isinstance(value, str):
        return tag("th", value, attrs={"scope": "row"}) if column == 0 else tag("td", value)
    if value is None:
        return tag("td", "–", attrs={"class": "number"})
    text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return tag("td", text, attrs={"class": "number"})


def _estimate(value: Estimate) -> Markup:
    name = "b" if value.excludes_zero and value.difference else "span"
    parts = [tag(name, _number(value, value.value))]
    if value.low is not None and value.high is not None:
        text = f" [{_number(value, value.low)}, {_number(value, value.high)}]"
        parts.append(tag("small", text))
    if value.count is not None:
        parts.append(tag("small", f" n = {value.count}"))
    return tag("div", *parts)


def _number(estimate: Estimate, value: float) -> str:
    text = f"{100 * value:.1f}" if estimate.percent else f"{value:.4g}"
    text = "0.0" if text == "-0.0" else text
    if estimate.difference and value > 0:
        text = f"+{text}"
    return text.replace("-", "−")


def _scale(cells: Iterable[TableCell]) -> tuple[float, float]:
    """The ends of a column's scale: 0 and 1 for fractions, symmetric for differences."""
    found = [c for c in cells if isinstance(c, Estimate)]
    ends = [v for c in found for v in (c.value, c.low, c.high) if v is not None]
    if not ends:
        return 0.0, 1.0
    if any(c.difference for c in found):
        reach = max(abs(v) for v in ends) or 1.0
        return -reach, reach
    if all(c.percent for c in found) and min(ends) >= 0 and max(ends) <= 1:
        return 0.0, 1.0
    return min(0.0, *ends), max(ends) if max(ends) > 0 else 1.0


def _whisker(value: Estimate, low: float, high: float) -> Markup:
    def at(v: float) -> float:
        return 4 + (_WIDTH - 8) * min(1.0, max(0.0, (v - low) / ((high - low) or 1.0)))

    middle = _HEIGHT / 2
    zero = at(0.0) if value.difference else at(low)
    marks = [_line(zero, 1, zero, _HEIGHT - 1, "axis")]
    if value.low is not None and value.high is not None:
        marks.append(_line(at(value.low), middle, at(value.high), middle, "whisker"))
    marks.append(tag("circle", attrs={"cx": at(value.value), "cy": middle, "r": 3, "class": "dot"}))
    box: dict[str, Attribute] = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "width": _WIDTH}
    return tag("svg", join(*marks), attrs={**box, "height": _HEIGHT, "aria-hidden": "true"})


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return tag("line", attrs={"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})
