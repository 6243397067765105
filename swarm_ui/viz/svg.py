"""The SVG elements that all pictures share, as text.

Every text is escaped. Colours suit light and dark pages: inside a page, lines and text have the
colour of the page's text, and fills are half transparent; a separate file has its own background.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

from swarm_ui.viz.svg_text import PICTURE_ID, cut, number, plain, quoted, width, xml_safe

INK = "currentColor"
BLUE, RED, AMBER, GREY = "#5b8def", "#e5484d", "#d9930d", "#8b919a"
NAME, WORDS, SMALL = 12.0, 11.0, 9.5
"""Font sizes in pixels: names, messages, figures."""

# `svg:root` matches in a file of its own only; inside a page the page's colours are used. As
# `<img>` a picture follows the system, not the page, so it has its own ground: dark lines on a
# page that is dark by its own choice could not be read.
_STYLE = (
    "<style>svg:root{color:#24292f;background:#fff;border-radius:8px}"
    "@media(prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#161b22}}"
    ".swarm-edge:hover{opacity:1;stroke-width:2.6}</style>"
)


class Box(NamedTuple):
    """A rectangle: left, top, width and height in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> float:
        return self.x + self.width / 2

    @property
    def middle(self) -> float:
        """The vertical centre."""
        return self.y + self.height / 2

    @staticmethod
    def around(boxes: Iterable[Box], margin: float) -> Box:
        """The box around all boxes, with a margin."""
        found = list(boxes)
        x, y = min(b.x for b in found), min(b.y for b in found)
        right, bottom = max(b.right for b in found), max(b.bottom for b in found)
        return Box(x, y, right - x, bottom - y).grown(margin)

    def moved(self, x: float, y: float) -> Box:
        return Box(self.x + x, self.y + y, self.width, self.height)

    def grown(self, by: float) -> Box:
        return Box(self.x - by, self.y - by, self.width + 2 * by, self.height + 2 * by)

    def meets(self, other: Box) -> bool:
        across = self.x < other.right and other.x < self.right
        return across and self.y < other.bottom and other.y < self.bottom


class Canvas:
    """The elements of a picture in three layers: frames, lines above them, boxes and text on top.

    Lines are interrupted behind a label.
    """

    __slots__ = ("_gaps", "_labels", "below", "lines", "over")

    def __init__(self) -> None:
        self.below: list[str] = []
        self.lines: list[str] = []
        self.over: list[str] = []
        self._labels: list[str] = []
        self._gaps: list[Box] = []

    def label(
        self, places: Sequence[tuple[float, float]], words: str, tooltip: str, opacity: float = 0.9
    ) -> None:
        """Write a label on a line, centred at the first of ``places`` that is still free."""
        wide = width(words, SMALL) + 4
        boxes = [Box(x - wide / 2, y - 6, wide, 12) for x, y in places]
        free = (b for b in boxes if not any(b.meets(gap) for gap in self._gaps))
        box = next(free, boxes[0])
        self._gaps.append(box)
        x, y = box.centre, box.middle + 3.3
        self._labels.append(group(tooltip, small(x, y, words, anchor="middle", opacity=opacity)))

    def document(self, wide: float, high: float, label: str) -> str:
        """The picture as an SVG document. ``label`` describes it to screen readers."""
        parts = [_STYLE, _arrow_heads(), *self.below]
        if self._gaps:
            name, frame = f"gap-{PICTURE_ID}", Box(0.0, 0.0, wide, high)._asdict()
            whole = tag("rect", width=wide, height=high, fill="#fff")
            mask = whole + "".join(tag("rect", **b._asdict(), fill="#000") for b in self._gaps)
            parts.append(
                tag("mask", mask, stroke="none", id=name, maskUnits="userSpaceOnUse", **frame)
            )
            parts.append(tag("g", "".join(self.lines), mask=f"url(#{name})"))
        else:
            parts.extend(self.lines)
        body = "\n".join([*parts, *self.over, *self._labels])
        own = blake2b(body.encode(), digest_size=6).hexdigest()
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(wide)} {number(high)}" '
            f'width="{number(wide)}" height="{number(high)}" role="img" style="max-width:none" '
            f'font-family="Helvetica, Arial, sans-serif" fill="none" stroke="{INK}" '
            f'aria-label="{quoted(xml_safe(label))}">'
        )
        return f"{head}\n{body.replace(PICTURE_ID, own)}\n</svg>"


def scrolling(picture: str) -> str:
    """A picture as HTML that scrolls sideways where the page is too narrow."""
    return f'<div style="overflow-x:auto;overflow-y:hidden;max-width:100%">{picture}</div>'


def tag(name: str, body: str = "", /, **attributes: str | float | None) -> str:
    """One element. ``stroke_width`` is written ``stroke-width``; ``None`` is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{quoted(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{body}</{name}>" if body else f"<{name}{written}/>"


def group(tooltip: str, *parts: str, opacity: float | None = None) -> str:
    title = tag("title", plain(tooltip)) if tooltip else ""
    return tag("g", title + "".join(parts), opacity=opacity)


def rect(
    box: Box,
    colour: str,
    *,
    alpha: float = 0.16,
    stroke: str | None = INK,
    thick: float = 1.2,
    radius: float = 6.0,
    dash: str | None = None,
) -> str:
    """A filled box. ``alpha`` is the opacity of the fill."""
    return tag(
        "rect",
        **box._asdict(),
        rx=radius,
        fill=colour,
        fill_opacity=alpha,
        stroke="none" if stroke is None else stroke,
        stroke_width=None if stroke is None else thick,
        stroke_dasharray=dash,
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = NAME,
    anchor: str | None = None,
    room: float | None = None,
    bold: bool = False,
    colour: str = INK,
    opacity: float | None = None,
) -> str:
    """One line of text, cut to ``room`` pixels."""
    shown = words if room is None else cut(words, room, size)
    return tag(
        "text",
        plain(" ".join(shown.split())),
        x=x,
        y=y,
        font_size=size,
        text_anchor=anchor,
        font_weight="bold" if bold else None,
        fill=colour,
        stroke="none",
        opacity=opacity,
    )


small = partial(text, size=SMALL)
"""A line of small print."""


def arrow(
    curve: str,
    tooltip: str,
    *,
    colour: str = INK,
    opacity: float = 0.75,
    thick: float = 1.2,
    dash: str | None = None,
) -> str:
    """A line with an arrow head and a tooltip."""
    head = "red" if colour == RED else "blue" if colour == BLUE else "ink"
    return tag(
        "path",
        tag("title", plain(tooltip)),
        d=curve,
        class_="swarm-edge",
        stroke=None if colour == INK else colour,
        stroke_width=thick,
        stroke_dasharray=dash,
        opacity=opacity,
        marker_end=f"url(#{head}-{PICTURE_ID})",
    )


def frame(box: Box) -> str:
    """A dashed line with round corners around a part of a picture."""
    x, y, r = box.x, box.y, 10.0
    across, down = box.width - 2 * r, box.height - 2 * r
    arc = f"a{number(r)} {number(r)} 0 0 1 "
    path = (
        f"M{number(x + r)} {number(y)}h{number(across)}{arc}{number(r)} {number(r)}"
        f"v{number(down)}{arc}{number(-r)} {number(r)}h{number(-across)}"
        f"{arc}{number(-r)} {number(-r)}v{number(-down)}{arc}{number(r)} {number(-r)}z"
    )
    return tag("path", d=path, opacity=0.45, stroke_dasharray="2 3", fill=GREY, fill_opacity=0.07)


def ticks(low: float, high: float, about: int, *, whole: bool = False) -> list[float]:
    """Ticks of an axis: approximately ``about`` round (or ``whole``) numbers.

    The first and the last one enclose ``[low, high]``.
    """
    if not high > low:
        low, high = low - (abs(low) or 1.0) / 2, low + (abs(low) or 1.0) / 2
    raw = (high - low) / max(1, about - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * power >= raw * 0.999)
    if whole:
        step = max(1.0, float(math.ceil(step)))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def _arrow_heads() -> str:
    place: dict[str, str | float] = {
        "viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerUnits": "userSpaceOnUse",
        "markerWidth": 8, "markerHeight": 8, "orient": "auto",
    }  # fmt: skip
    heads = []
    for name, colour in (("ink", INK), ("red", RED), ("blue", BLUE)):
        shape = tag("path", d="M0 0L8 4L0 8z", fill=colour, stroke="none")
        heads.append(tag("marker", shape, id=f"{name}-{PICTURE_ID}", **place))
    return tag("defs", "".join(heads))
