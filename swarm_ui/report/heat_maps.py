"""Heat maps as HTML tables, and the scale of their colours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from swarm_ui.report.contents import HeatMap
from swarm_ui.report.html import Markup, note, tag

_NARROW = 5  # heat maps with no more columns than these are placed side by side


def heat_map(data: HeatMap, *, caption: bool = True) -> Markup:
    """A matrix of shaded cells with the numbers in them. ``caption``: whether to show its title."""
    head = tag("tr", tag("td"), *(tag("th", c, scope="col") for c in data.columns))
    details = data.details or (("",) * len(data.columns),) * len(data.rows)
    rows = []
    for name, values, small in zip(data.rows, data.values, details, strict=True):
        cells = [_shade(v, data, more) for v, more in zip(values, small, strict=True)]
        rows.append(tag("tr", tag("th", name, scope="row", title=name), *cells))
    grid = tag("table", head, *rows, class_="heat")
    size = "full" if len(data.columns) > _NARROW else "part"
    box = tag("div", grid, class_="wide")
    title = tag("figcaption", data.title) if caption else Markup("")
    return tag("figure", title, box, note(data.note), class_=size)


def scale(maps: Sequence[HeatMap]) -> Markup:
    """The colours between the ends of a scale that all maps share; nothing if they share none."""
    ends = {(data.low, data.high) for data in maps}
    if len(ends) != 1:
        return Markup("")
    low, high = next(iter(ends))
    bar = tag("span", class_="gradient", aria_hidden="true")
    return tag("p", f"{low:.2f} ", bar, f" {high:.2f}", class_="note scale")


def _shade(value: float | None, data: HeatMap, detail: str) -> Markup:
    if value is None or not math.isfinite(value):
        return tag("td", "–", class_="unscored", title=detail or "unscored")
    share = (value - data.low) / ((data.high - data.low) or 1.0)
    strength = round(100 * min(1.0, max(0.0, share)))
    shown = f"{100 * value:.0f}" if data.percent else f"{value:.2f}"
    small = tag("small", detail) if detail else Markup("")
    return tag("td", shown, small, style=f"--share:{strength}%")
