"""Computed styles: colours, and the areas in which boxes and their contents are visible."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

STYLES = (
    "cursor", "border-left-width", "padding-left", "border-top-width", "padding-top", "display",
    "position", "overflow-x", "overflow-y", "opacity", "visibility", "filter", "transform", "clip",
    "clip-path", "-webkit-text-fill-color", "text-shadow", "-webkit-text-stroke-width",
    "background-color", "background-image", "background-clip", "direction", "z-index",
)  # fmt: skip
"""The computed styles that a snapshot must have."""
VISIBLE = ("visible", "visible")
LEAST = 2
"""Pixels of width and height that must be visible of something."""
SAME = 10
"""Difference of two colours, of 255, below which they look the same."""
Rect = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels of the window."""
Colour = tuple[float, float, float, float]
"""Red, green, blue (up to 255) and opacity (up to 1)."""
Style = Mapping[str, str]
NOWHERE: Rect = (0.0, 0.0, 0.0, 0.0)
EVERYWHERE: Rect = (-math.inf, -math.inf, math.inf, math.inf)


def common(one: Rect, other: Rect) -> Rect:
    left, top = max(one[0], other[0]), max(one[1], other[1])
    return left, top, min(one[2], other[2]), min(one[3], other[3])


def large(rect: Rect) -> bool:
    return rect[2] - rect[0] >= LEAST and rect[3] - rect[1] >= LEAST


def flows(style: Style) -> Sequence[str]:
    """How a box overflows on the two axes."""
    return style["overflow-x"], style["overflow-y"]


def reach(
    flows: Sequence[str], style: Style, own: Rect, scrolled: Sequence[float], base: Rect
) -> Rect:
    """Where the content of a box can be seen, if need be by scrolling the box.

    Args:
        flows: how it overflows on the two axes.
        style: its styles.
        own: the box.
        scrolled: how far it is scrolled.
        base: where the content can be seen if the box does not clip it.
    """
    left = -math.inf if style["direction"] == "rtl" else own[0] - scrolled[0]
    whole = left, own[1] - scrolled[1], math.inf, math.inf
    areas = {"auto": whole, "scroll": whole, "visible": base}
    x, y = (areas.get(flow, common(own, base)) for flow in flows)
    return x[0], y[1], x[2], y[3]


def cut_away(style: Style, own: Rect) -> bool:
    """Whether ``clip`` or ``clip-path`` leaves nothing of a box."""
    width, height = own[2] - own[0], own[3] - own[1]
    if style["clip"].startswith("rect(") and style["position"] in ("absolute", "fixed"):
        ends = zip(style["clip"][5:-1].split(", "), (0.0, width, height, 0.0), strict=True)
        cut = [end if edge == "auto" else pixels(edge) for edge, end in ends]
        return not large((cut[3], cut[0], cut[1], cut[2]))
    name, _, shape = style["clip-path"].partition("(")
    if name == "inset":
        edges = shape[:-1].partition(" round ")[0].split()
        edges = (edges * 4)[:4] if len(edges) < 3 else [*edges, edges[1]]
        top, bottom = (pixels(edge, height) for edge in edges[:3:2])
        right, left = (pixels(edge, width) for edge in edges[1:4:2])
        return not large((left, top, width - right, height - bottom))
    numbers = re.findall(r"\d+(?:\.\d+)?", shape.partition(" at ")[0])
    return name in ("circle", "ellipse", "polygon") and not any(map(float, numbers))


def pixels(length: str, whole: float = 0) -> float:
    """A computed length such as ``7px`` or ``50%``; 0 for any other."""
    found = re.fullmatch(r"(-?[\d.]+(?:e[-+]\d+)?)(px|%)", length)
    if found is None:
        return 0.0
    return float(found[1]) if found[2] == "px" else float(found[1]) / 100 * whole


def filtered(style: str) -> float:
    """The opacity that a filter gives."""
    found = re.search(r"\bopacity\(([\d.e-]+)\)", style)
    return 1.0 if found is None else float(found[1])


@lru_cache(maxsize=4096)
def colour(style: str) -> Colour | None:
    """A computed colour with red, green, blue and opacity; ``None`` for one in another notation."""
    found = re.fullmatch(r"rgba?\(([\d., ]+)\)", style)
    if found is None:
        return None
    red, green, blue, *alpha = map(float, found[1].split(","))
    return red, green, blue, alpha[0] if alpha else 1.0


def mixed(over: Colour, under: Colour) -> Colour:
    red, green, blue = (
        over[3] * a + (1 - over[3]) * b for a, b in zip(over[:3], under[:3], strict=True)
    )
    return red, green, blue, 1.0


def alike(one: Colour, other: Colour) -> bool:
    return all(abs(a - b) < SAME for a, b in zip(one, other, strict=True))
