"""Line charts as SVG that follows the page's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from swarm_ui.report.html_tables import note
from swarm_ui.viz.svg import Markup, join, number, tag, ticks

_WIDTH, _HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 12, 10, 40
_COLOURS = 6
"""The number of line colours in the style sheet. Further series are dashed."""


class Point(NamedTuple):
    """One point of a line, with the ends of its interval."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class Curve(NamedTuple):
    """A line chart, such as success per iteration."""

    title: str
    series: Sequence[tuple[str, Sequence[Point]]]
    """Name and points of each line."""
    note: str = ""
    percent: bool = False
    """Whether the values are fractions that are shown in percent."""


def chart(data: Curve) -> Markup:
    """A line chart over iterations, with bands for known intervals. Points that are not finite are
    left out."""
    lines = [
        (name, [p for p in points if all(v is None or math.isfinite(v) for v in p)])
        for name, points in data.series
    ]
    xs = [p.x for _, points in lines for p in points] or [0.0, 1.0]
    ys = [v for _, points in lines for p in points for v in p[1:] if v is not None] or [0.0, 1.0]
    axes = _Axes(ticks(min(xs), max(xs), 6, whole=all(x == int(x) for x in xs)),
                 ticks(min(ys), max(ys), 5))  # fmt: skip
    drawn, keys = [_grid(axes, data)], []
    for k, (name, points) in enumerate(lines):
        drawn.append(_series(name, points, k, axes, data.percent))
        keys.append(tag("li", tag("i", class_=f"key s{k % _COLOURS}"), name))
    legend = tag("ul", *keys, class_="legend") if len(keys) > 1 else Markup("")
    picture = tag("svg", *drawn, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="chart", role="img",
                  aria_label=data.title)  # fmt: skip
    return tag("figure", tag("figcaption", data.title), legend, picture, note(data.note))


class _Axes(NamedTuple):
    """Converts data to pixels."""

    x_ticks: Sequence[float]
    y_ticks: Sequence[float]

    def x(self, value: float) -> float:
        low, high = self.x_ticks[0], self.x_ticks[-1]
        return _LEFT + (_WIDTH - _RIGHT - _LEFT) * (value - low) / (high - low)

    def y(self, value: float) -> float:
        low, high = self.y_ticks[0], self.y_ticks[-1]
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        return " ".join(f"{number(self.x(x))},{number(self.y(y))}" for x, y in points)


def _grid(axes: _Axes, data: Curve) -> Markup:
    bottom, parts = _HEIGHT - _BOTTOM, list[Markup]()
    for value in axes.y_ticks:
        y = axes.y(value)
        parts.append(tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(_text(f"{100 * value if data.percent else value:g}", _LEFT - 6, y + 4, "end"))
    parts += [_text(f"{value:g}", axes.x(value), bottom + 16) for value in axes.x_ticks]
    parts.append(_text("iteration", (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6))
    return join(*parts)


def _series(name: str, points: Sequence[Point], k: int, axes: _Axes, percent: bool) -> Markup:
    style = f"s{k % _COLOURS}" + (" dashed" if k >= _COLOURS else "")
    upper = [(p.x, p.high) for p in points if p.high is not None]
    lower = [(p.x, p.low) for p in points if p.low is not None]
    parts: list[Markup] = []
    if len(upper) > 1:
        outline = axes.path([*upper, *reversed(lower)])
        parts.append(tag("polygon", points=outline, class_=f"band {style}"))
    line = axes.path([(p.x, p.y) for p in points])
    parts.append(tag("polyline", points=line, class_=f"line {style}"))
    for p in points:
        value = f"{100 * p.y:.4g} %" if percent else f"{p.y:.4g}"
        told, x, y = tag("title", f"{name}: {value} at {p.x:g}"), axes.x(p.x), axes.y(p.y)
        parts.append(tag("circle", told, cx=x, cy=y, r=3, class_=f"point {style}"))
    return join(*parts)


def _text(text: str, x: float, y: float, anchor: str = "middle") -> Markup:
    return tag("text", text, x=x, y=y, text_anchor=anchor)
