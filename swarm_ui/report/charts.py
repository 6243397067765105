"""Line charts and heat maps as SVG that follows the page's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from swarm_ui.report.contents import Curve, CurvePoint, HeatMap, Series
from swarm_ui.report.html import Attribute, Markup, join, note, tag
from swarm_ui.viz.svg import ticks

_WIDTH, _HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 12, 42
_NARROW = 5  # heat maps with no more columns than these are placed side by side
COLOURS = 6
"""The number of line colours in the style sheet. Further series are dashed."""


class _Axes:
    """Converts data to pixels."""

    def __init__(self, points: Sequence[CurvePoint]) -> None:
        xs = [p.x for p in points] or [0.0, 1.0]
        ys = [v for p in points for v in (p.y, p.low, p.high) if v is not None] or [0.0, 1.0]
        self.x_ticks = ticks(min(xs), max(xs), 6, whole=all(x == int(x) for x in xs))
        self.y_ticks = ticks(min(ys), max(ys), 5)
        self._x = min(self.x_ticks[0], *xs), max(self.x_ticks[-1], *xs)
        self._y = min(self.y_ticks[0], *ys), max(self.y_ticks[-1], *ys)

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / ((high - low) or 1.0)

    def y(self, value: float) -> float:
        low, high = self._y
        tall = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - tall * (value - low) / ((high - low) or 1.0)


def curve(data: Curve) -> Markup:
    """A line chart with bands for known intervals. Points that are not finite are left out."""
    lines = [
        Series(name=s.name, points=tuple(p for p in s.points if _finite(p))) for s in data.series
    ]
    axes = _Axes([p for s in lines for p in s.points])
    drawn = [_grid(axes, data), *(_series(s, i, axes) for i, s in enumerate(lines))]
    keys = (tag("i", attrs={"class": f"key s{i % COLOURS}"}) for i in range(len(lines)))
    names = [tag("li", key, s.name) for key, s in zip(keys, lines, strict=True)]
    legend = tag("ul", *names, attrs={"class": "legend"})
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    picture = tag("svg", *drawn, attrs={"viewBox": box, "role": "img", "aria-label": data.title})
    return tag("figure", tag("figcaption", data.title), legend, picture, note(data.note))


def heat_map(data: HeatMap) -> Markup:
    """A matrix of shaded cells with the numbers in them."""
    head = tag("tr", tag("td"), *(tag("th", c, attrs={"scope": "col"}) for c in data.columns))
    details = data.details or (("",) * len(data.columns),) * len(data.rows)
    rows = []
    for name, values, small in zip(data.rows, data.values, details, strict=True):
        cells = [_shade(v, data, more) for v, more in zip(values, small, strict=True)]
        rows.append(tag("tr", tag("th", name, attrs={"scope": "row"}), *cells))
    grid = tag("table", head, *rows, attrs={"class": "heat"})
    size = {"class": "full" if len(data.columns) > _NARROW else "part"}
    box = tag("div", grid, attrs={"class": "wide"})
    return tag("figure", tag("figcaption", data.title), box, note(data.note), attrs=size)


def _grid(axes: _Axes, data: Curve) -> Markup:
    left, right, bottom = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts: list[Markup] = []
    for value in axes.y_ticks:
        y = axes.y(value)
        line: dict[str, Attribute] = {"x1": left, "x2": right, "y1": y, "y2": y, "class": "grid"}
        parts.append(tag("line", attrs=line))
        parts.append(_text(f"{value:g}", left - 6, y + 4, "end"))
    for value in axes.x_ticks:
        parts.append(_text(f"{value:g}", axes.x(value), bottom + 16, "middle"))
    parts.append(_text(data.x_label, (left + right) / 2, _HEIGHT - 6, "middle"))
    y = (_TOP + bottom) / 2
    parts.append(_text(data.y_label, 13, y, "middle", rotate=y))
    return join(*parts)


def _series(series: Series, number: int, axes: _Axes) -> Markup:
    ordered = sorted(series.points, key=lambda p: p.x)
    style = f"s{number % COLOURS}" + (" dashed" if number >= COLOURS else "")
    band = [p for p in ordered if p.low is not None and p.high is not None]
    parts: list[Markup] = []
    if len(band) > 1:
        upper = [(p.x, p.high or 0.0) for p in band]
        lower = [(p.x, p.low or 0.0) for p in reversed(band)]
        outline = _path([*upper, *lower], axes)
        parts.append(tag("polygon", attrs={"points": outline, "class": f"band {style}"}))
    line = _path([(p.x, p.y) for p in ordered], axes)
    parts.append(tag("polyline", attrs={"points": line, "class": f"line {style}"}))
    for point in ordered:
        where: dict[str, Attribute] = {"cx": axes.x(point.x), "cy": axes.y(point.y), "r": 3.0}
        tooltip = tag("title", f"{series.name}: {point.y:.4g} at {point.x:g}")
        parts.append(tag("circle", tooltip, attrs={**where, "class": f"point {style}"}))
    return join(*parts)


def _path(points: Sequence[tuple[float, float]], axes: _Axes) -> str:
    return " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in points)


def _text(text: str, x: float, y: float, anchor: str, rotate: float | None = None) -> Markup:
    where: dict[str, Attribute] = {"x": x, "y": y, "text-anchor": anchor}
    if rotate is not None:
        where["transform"] = f"rotate(-90 {x:g} {rotate:g})"
    return tag("text", text, attrs=where)


def _shade(value: float | None, data: HeatMap, detail: str) -> Markup:
    if value is None or not math.isfinite(value):
        return tag("td", "–", attrs={"class": "unscored", "title": detail or "unscored"})
    share = (value - data.low) / ((data.high - data.low) or 1.0)
    strength = round(100 * min(1.0, max(0.0, share)))
    shown = f"{100 * value:.0f}" if data.percent else f"{value:.2f}"
    small = tag("small", detail) if detail else Markup("")
    return tag("td", shown, small, attrs={"style": f"--share:{strength}%"})


def _finite(point: CurvePoint) -> bool:
    return all(v is None or math.isfinite(v) for v in (point.x, point.y, point.low, point.high))
