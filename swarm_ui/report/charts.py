"""Line charts as SVG that follows the page's colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from swarm_ui.report.contents import Arm, Arms, Curve, CurvePoint, Series
from swarm_ui.report.estimates import ends, interval
from swarm_ui.report.html import Markup, join, note, tag
from swarm_ui.viz.svg import ticks

_WIDTH, _HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 12, 10, 40
_ARM = 18  # pixels between two arms, and between the arms and the curve
COLOURS = 6
"""The number of line colours in the style sheet. Further series are dashed."""


class _Axes:
    """Converts data to pixels. ``aside``: pixels on the right that the curve leaves free."""

    def __init__(self, points: Sequence[CurvePoint], arms: Sequence[Arm]) -> None:
        xs = [p.x for p in points] or [0.0, 1.0]
        tested = [(arm.value.value, *(ends(arm.value) or ())) for arm in arms]
        drawn: list[tuple[float | None, ...]] = [(p.y, p.low, p.high) for p in points]
        drawn += tested
        ys = [v for values in drawn for v in values if v is not None] or [0.0, 1.0]
        self.x_ticks = ticks(min(xs), max(xs), 6, whole=all(x == int(x) for x in xs))
        self.y_ticks = ticks(min(ys), max(ys), 5)
        self._x = min(self.x_ticks[0], *xs), max(self.x_ticks[-1], *xs)
        self._y = min(self.y_ticks[0], *ys), max(self.y_ticks[-1], *ys)
        self.right = _WIDTH - _RIGHT - (_ARM * (len(arms) + 1) if arms else 0)
        self.has_arms = bool(arms)

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (self.right - _LEFT) * (value - low) / ((high - low) or 1.0)

    def y(self, value: float) -> float:
        low, high = self._y
        tall = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - tall * (value - low) / ((high - low) or 1.0)

    def arm(self, number: int) -> float:
        return self.right + _ARM * (number + 1)


def curve(data: Curve, arms: Arms | None = None) -> Markup:
    """A line chart with bands for known intervals. Points that are not finite are left out.

    ``arms`` are whiskers with letters on the right, on the same vertical axis, and a list of their
    names beside the chart.
    """
    lines = [
        Series(name=s.name, points=tuple(p for p in s.points if _finite(p))) for s in data.series
    ]
    tested = arms.arms if arms is not None else ()
    axes = _Axes([p for s in lines for p in s.points], tested)
    whiskers = (_whisker(arm, k, axes) for k, arm in enumerate(tested))
    drawn = [
        _grid(axes, data),
        *(_series(s, i, axes, data.percent) for i, s in enumerate(lines)),
        *whiskers,
    ]
    keys = (tag("i", class_=f"key s{i % COLOURS}") for i in range(len(lines)))
    names = [tag("li", key, s.name) for key, s in zip(keys, lines, strict=True)]
    legend = tag("ul", *names, class_="legend") if len(names) > 1 else Markup("")
    picture = tag("svg", *drawn, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", class_="chart", role="img",
                  aria_label=data.title)  # fmt: skip
    if arms is not None and tested:
        picture = tag("div", picture, arm_list(arms), class_="with-arms")
    return tag("figure", tag("figcaption", data.title), legend, picture, note(data.note))


def _grid(axes: _Axes, data: Curve) -> Markup:
    left, right, bottom = _LEFT, axes.right, _HEIGHT - _BOTTOM
    parts: list[Markup] = []
    for value in axes.y_ticks:
        y = axes.y(value)
        parts.append(tag("line", x1=left, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(_text(f"{100 * value if data.percent else value:g}", left - 6, y + 4, "end"))
    for value in axes.x_ticks:
        parts.append(_text(f"{value:g}", axes.x(value), bottom + 16, "middle"))
    if axes.has_arms:
        x = right + _ARM / 2
        parts.append(tag("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="border"))
    parts.append(_text(data.x_label, (left + right) / 2, _HEIGHT - 6, "middle"))
    y = (_TOP + bottom) / 2
    parts.append(_text(data.y_label, 13, y, "middle", rotate=y))
    return join(*parts)


def _series(series: Series, number: int, axes: _Axes, percent: bool) -> Markup:
    ordered = sorted(series.points, key=lambda p: p.x)
    style = f"s{number % COLOURS}" + (" dashed" if number >= COLOURS else "")
    band = [p for p in ordered if p.low is not None and p.high is not None]
    parts: list[Markup] = []
    if len(band) > 1:
        upper = [(p.x, p.high or 0.0) for p in band]
        lower = [(p.x, p.low or 0.0) for p in reversed(band)]
        outline = _path([*upper, *lower], axes)
        parts.append(tag("polygon", points=outline, class_=f"band {style}"))
    line = _path([(p.x, p.y) for p in ordered], axes)
    parts.append(tag("polyline", points=line, class_=f"line {style}"))
    for point in ordered:
        x, y = axes.x(point.x), axes.y(point.y)
        value = f"{100 * point.y:.4g} %" if percent else f"{point.y:.4g}"
        tooltip = tag("title", f"{series.name}: {value} at {point.x:g}")
        parts.append(tag("circle", tooltip, cx=x, cy=y, r=3.0, class_=f"point {style}"))
    return join(*parts)


def _whisker(arm: Arm, number: int, axes: _Axes) -> Markup:
    """The interval of an arm, with its letter at the foot."""
    value, x = arm.value, axes.arm(number)
    style = "arm chosen" if arm.chosen else "arm"
    parts = [tag("title", f"{arm.name}: {interval(value)}")]
    known = ends(value)
    if known is not None:
        parts.append(tag("line", x1=x, x2=x, y1=axes.y(known[0]), y2=axes.y(known[1])))
    parts.append(tag("circle", cx=x, cy=axes.y(value.value), r=4.0))
    parts.append(_text(_letter(number), x, _HEIGHT - _BOTTOM + 16, "middle"))
    return tag("g", *parts, class_=style)


def arm_list(data: Arms) -> Markup:
    """A list of the arms by letter, with their values."""
    lines = [
        tag("li", tag("b" if arm.chosen else "span", arm.name), " ",
            tag("small", interval(arm.value)))
        for arm in data.arms
    ]  # fmt: skip
    title = tag("p", data.title, class_="note")
    return tag("div", title, tag("ol", *lines, class_="arms", type="A"))


def _letter(number: int) -> str:
    """``A`` to ``Z``, then ``AA``, as HTML counts in lists."""
    head, last = divmod(number, 26)
    return (_letter(head - 1) if head else "") + chr(ord("A") + last)


def _path(points: Sequence[tuple[float, float]], axes: _Axes) -> str:
    return " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in points)


def _text(text: str, x: float, y: float, anchor: str, rotate: float | None = None) -> Markup:
    turned = None if rotate is None else f"rotate(-90 {x:g} {rotate:g})"
    return tag("text", text, x=x, y=y, text_anchor=anchor, transform=turned)


def _finite(point: CurvePoint) -> bool:
    return all(v is None or math.isfinite(v) for v in (point.x, point.y, point.low, point.high))
