"""Computed styles: colours, and the areas in which boxes and their contents are visible."""

from __future__ import annotations

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
LEAST = 2
"""Pixels of width and height that must be visible of something."""
SAME = 10
"""Difference of two colours, of 255, below which they look the same."""

Rect = tuple[float, float, float, float]
"""Left, top, right and bottom."""
Colour = tuple[float, float, float, float]
"""Red, green, blue (up to 255) and opacity (up to 1)."""
NOWHERE: Rect = (0.0, 0.0, 0.0, 0.0)


Style = Mapping[str, str]
"""Computed styles of a node by the names in ``STYLES``."""


def common(one: Rect, other: Rect) -> Rect:
    left, top = max(one[0], other[0]), max(one[1], other[1])
    return left, top, min(one[2], other[2]), min(one[3], other[3])


def large(rect: Rect) -> bool:
    return rect[2] - rect[0] >= LEAST and rect[3] - rect[1] >= LEAST


def reach(
    flows: Sequence[str], own: Rect, seen: Rect, base: Rect, scrolled: Sequence[float], rtl: bool
) -> Rect:
    """Where the content of a box can be seen, if need be by scrolling the box.

    Args:
        flows: the styles ``overflow-x`` and ``overflow-y``.
        own: the box.
        seen: its visible part.
        base: where the content can be seen if the box does not clip it.
        scrolled: how far it is scrolled, and the size of its content.
        rtl: whether the content begins at the right.
    """
    sides = []
    for axis, flow in enumerate(flows):
        if flow in ("auto", "scroll"):
            size = max(scrolled[axis + 2], own[axis + 2] - own[axis])
            begin = own[axis] - scrolled[axis]
            if rtl and axis == 0:
                begin += own[2] - own[0] - size
            sides.append((begin, begin + size))
        else:
            limit = base if flow == "visible" else seen
            sides.append((limit[axis], limit[axis + 2]))
    (left, right), (top, bottom) = sides
    return left, top, right, bottom


def cut(own: Rect, style: Style) -> Rect | None:
    """What ``clip`` and ``clip-path`` leave of a box; ``None``: they cut nothing, or any shape."""
    if style["clip"].startswith("rect(") and style["position"] in ("absolute", "fixed"):
        edges = style["clip"][5:-1].split(", ")
        ends = (0.0, own[2] - own[0], own[3] - own[1], 0.0)
        top, right, bottom, left = (
            end if edge == "auto" else pixels(edge) for edge, end in zip(edges, ends, strict=True)
        )
        return own[0] + left, own[1] + top, own[0] + right, own[1] + bottom
    name, _, shape = style["clip-path"].partition("(")
    if name == "inset":
        edges = shape[:-1].partition(" round ")[0].split()
        edges = (edges * 4)[:4] if len(edges) < 3 else [*edges, edges[1]][:4]
        sizes = (own[3] - own[1], own[2] - own[0]) * 2
        top, right, bottom, left = (
            pixels(edge, size) for edge, size in zip(edges, sizes, strict=True)
        )
        return own[0] + left, own[1] + top, own[2] - right, own[3] - bottom
    if name not in ("circle", "ellipse", "polygon"):
        return None
    numbers = re.findall(r"\d+(?:\.\d+)?", shape.partition(" at ")[0])
    return None if any(map(float, numbers)) else NOWHERE


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
