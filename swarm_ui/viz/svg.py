"""SVG and HTML as text, and the elements that all pictures share.

Every text is escaped. Colours suit light and dark pages: inside a page, lines and text have the
colour of the page's text, and fills are half transparent; a separate file has its own background.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import blake2b
from html import escape
from typing import NamedTuple

INK = "currentColor"
BLUE, RED, GREY = "#5b8def", "#e5484d", "#8b919a"
NAME, WORDS, SMALL = 12.0, 11.0, 9.5
"""Font sizes in pixels: names, messages, figures."""

_ID = "\0"
"""A placeholder for the picture's hash in ids. No text of a user can contain it."""
# `svg:root` matches in a file of its own only; inside a page the page's colours are used. As
# `<img>` a picture follows the system, not the page, so it has its own ground: dark lines on a
# page that is dark by its own choice could not be read.
_STYLE = (
    "<style>svg:root{color:#24292f;background:#fff;border-radius:8px}"
    "@media(prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#161b22}}"
    ".swarm-edge:hover{opacity:1;stroke-width:2.6}</style>"
)
_EM = (
    dict.fromkeys("ijlI|'.,:;! ’‘", 0.34)
    | dict.fromkeys('frt()[]{}/\\-"*“”', 0.44)
    | dict.fromkeys("mwMW@%—…", 0.95)
)
"""Widths of characters that differ much from the others."""


# -- markup -----------------------------------------------------------------------------------


class Markup(str):
    """A text that is SVG or HTML already. :func:`tag` escapes all other texts."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """An element. Children that are not :class:`Markup` are escaped, and so are attributes.

    ``class_`` is written ``class``, and ``stroke_width`` is written ``stroke-width``; ``None`` is
    left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_quoted(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """The children, one after the other. Children that are not markup are escaped."""
    return Markup("".join(c if isinstance(c, Markup) else _escaped(c) for c in children))


def _quoted(value: str | float) -> str:
    if isinstance(value, str):
        return escape(xml_safe(value, keep=_ID))
    return number(value) if abs(value) >= 1 else f"{value:.2f}".rstrip("0").rstrip(".")


def _escaped(words: str) -> str:
    return escape(xml_safe(words), quote=False)


def xml_safe(words: str, keep: str = "") -> str:
    """Replace characters that XML forbids: control characters and lone surrogates."""
    if words.isprintable():
        return words
    return "".join(c if c in "\t\n\r" or c in keep or _allowed(ord(c)) else "\ufffd" for c in words)


def _allowed(code: int) -> bool:
    return code >= 0x20 and code != 0x7F and not 0xD800 <= code < 0xE000 and code & 0xFFFE != 0xFFFE


# -- text -------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A length, rounded to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def width(words: str, size: float) -> float:
    """An upper estimate of the width of a text in pixels."""
    return size * sum(map(_em, words))


def _em(character: str) -> float:
    if character.isascii():
        return _EM.get(character, 0.72 if character.isupper() else 0.6)
    if unicodedata.combining(character):
        return 0.0
    return _EM.get(character, 1.1 if unicodedata.east_asian_width(character) in "WF" else 0.75)


def cut(words: str, room: float, size: float) -> str:
    """A text on one line, cut to ``room`` pixels. A cut text ends with ``…``."""
    head = words[:400]
    short = " ".join(head.split())
    if len(head) == len(words) and width(short, size) <= room:
        return short
    left, kept = room - width("…", size), 0
    for character in short:
        left -= size * _em(character)
        if left < 0:
            break
        kept += 1
    return short[:kept].rstrip() + "…"


def clipped(words: str, most: int) -> str:
    """The first ``most`` characters; a text that was cut ends with its full length."""
    if len(words) <= most:
        return words
    return f"{words[:most]}… ({len(words):,} characters)"


def listed(names: Iterable[str], most: int = 12) -> str:
    """The first names, joined by commas, and the number of the others."""
    found = list(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def counted(count: int, what: str) -> str:
    """``"1 agent"``, ``"2 agents"``."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


# -- shapes -----------------------------------------------------------------------------------


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
        self.below: list[Markup] = []
        self.lines: list[Markup] = []
        self.over: list[Markup] = []
        self._labels: list[Markup] = []
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

    def document(self, wide: float, high: float, label: str) -> Markup:
        """The picture as an SVG document. ``label`` describes it to screen readers."""
        lines = join(*self.lines)
        if self._gaps:
            name, whole = f"gap-{_ID}", Box(0.0, 0.0, wide, high)._asdict()
            holes = (tag("rect", **b._asdict(), fill="#000") for b in self._gaps)
            shown = tag("rect", **whole, fill="#fff")
            mask = tag(
                "mask", shown, *holes, stroke="none", id=name, maskUnits="userSpaceOnUse", **whole
            )
            lines = join(mask, tag("g", lines, mask=f"url(#{name})"))
        parts = [_arrow_heads(), *self.below, lines, *self.over, *self._labels]
        body = "\n".join([_STYLE, *parts])
        own = blake2b(body.encode(), digest_size=6).hexdigest()
        return tag(
            "svg",
            Markup(f"\n{body.replace(_ID, own)}\n"),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(wide)} {number(high)}",
            width=wide,
            height=high,
            role="img",
            style="max-width:none",
            font_family="Helvetica, Arial, sans-serif",
            fill="none",
            stroke=INK,
            aria_label=xml_safe(label),
        )


def scrolling(picture: str) -> str:
    """A picture as HTML that scrolls sideways where the page is too narrow."""
    return f'<div style="overflow-x:auto;overflow-y:hidden;max-width:100%">{picture}</div>'


def group(tooltip: str, *parts: Markup, opacity: float | None = None) -> Markup:
    title = [tag("title", tooltip)] if tooltip else []
    return tag("g", *title, *parts, opacity=opacity)


def rect(
    box: Box,
    colour: str,
    *,
    alpha: float = 0.16,
    stroke: str | None = INK,
    thick: float = 1.2,
    radius: float = 6.0,
    dash: str | None = None,
) -> Markup:
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


frame = partial(rect, colour=GREY, alpha=0.07, thick=0.6, dash="2 3", radius=10)
"""A dashed line around a part of a picture."""


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
) -> Markup:
    """One line of text, cut to ``room`` pixels."""
    shown = " ".join(words.split()) if room is None else cut(words, room, size)
    return tag(
        "text",
        shown,
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
) -> Markup:
    """A line with an arrow head and a tooltip."""
    head = "red" if colour == RED else "blue" if colour == BLUE else "ink"
    return tag(
        "path",
        tag("title", tooltip),
        d=curve,
        class_="swarm-edge",
        stroke=None if colour == INK else colour,
        stroke_width=thick,
        stroke_dasharray=dash,
        opacity=opacity,
        marker_end=f"url(#{head}-{_ID})",
    )


def _arrow_heads() -> Markup:
    place: dict[str, str | float] = {
        "viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerUnits": "userSpaceOnUse",
        "markerWidth": 8, "markerHeight": 8, "orient": "auto",
    }  # fmt: skip
    return tag("defs", *(
        tag("marker", tag("path", d="M0 0L8 4L0 8z", fill=colour, stroke="none"),
            id=f"{name}-{_ID}", **place)
        for name, colour in (("ink", INK), ("red", RED), ("blue", BLUE))
    ))  # fmt: skip


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
