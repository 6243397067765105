"""A screen as a picture, drawn with Pillow: of the phone, and of the simulated handset."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache
from zlib import crc32

from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.phone.view import HEIGHT, MARGIN, TOP, WIDTH, View
from swarm_ui.observation import Element

_PAPER, _INK, _FAINT, _LINE = "#f6f5fa", "#1c1b20", "#6f6c78", "#d8d5e0"
_ACCENT, _CARD, _DARK = "#4f56b8", "#ffffff", "#2e2d34"
_COLORS = ("#c0504d", "#4f81bd", "#5a9a4a", "#8064a2", "#d08a2e", "#3aa3a0", "#a04878", "#6b6f2a")
"""Backgrounds of the apps' icons."""
_CENTRED = {"button": (_ACCENT, _CARD), "icon": (_ACCENT, _CARD), "label": (_DARK, _CARD)}
"""Role -> background and ink of texts in the middle of their boxes."""


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def picture(title: str, elements: Iterable[Element], clock: str = "9:41") -> Image.Image:
    """Elements in their ``bounds`` on a screen of ``WIDTH`` x ``HEIGHT`` pixels."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    pen = ImageDraw.Draw(image)
    pen.text((MARGIN, 12), clock, _INK, font(18))
    pen.text((64, TOP - 64), title.capitalize(), _INK, font(26))
    pen.line([(0, TOP - 16), (WIDTH, TOP - 16)], _LINE)
    for element in elements:
        _draw(pen, element)
    return image


def draw_screen(view: View) -> bytes:
    """A screen of the phone as a PNG."""
    out = io.BytesIO()
    picture(view.title, view.elements).save(out, "PNG", compress_level=1)
    return out.getvalue()


def _draw(pen: ImageDraw.ImageDraw, element: Element) -> None:
    role, text = element.role, (element.text or element.description).capitalize()
    left, top, right, bottom = element.bounds or (0, 0, 0, 0)
    middle = ((left + right) / 2, (top + bottom) / 2)
    if role == "app":
        color = _COLORS[crc32(element.text.encode()) % len(_COLORS)]
        pen.rounded_rectangle((left, top, right, bottom - 30), 24, fill=color)
        pen.text((middle[0], middle[1] - 15), text[:1], _CARD, font(42), "mm")
        pen.text((middle[0], bottom - 12), text, _INK, font(17), "mm")
    elif role in _CENTRED:
        fill, ink = _CENTRED[role]
        pen.rounded_rectangle((left, top + 4, right, bottom - 4), 20, fill=fill)
        pen.text(middle, text, ink, font(20), "mm")
    else:
        edge = _FAINT if element.editable else _LINE
        pen.rounded_rectangle((left, top, right, bottom), 10, fill=_CARD, outline=edge)
        if element.value is None:
            pen.text((left + 16, middle[1]), text, _INK, font(22), "lm")
        else:
            pen.text((left + 16, top + 6), text, _INK, font(18))
            pen.text((left + 16, top + 28), element.value, _ACCENT, font(18))
        if element.checked is not None:
            box, radius = (
                (right - 48, top + 14, right - 20, top + 42),
                5 * (1 + (role != "checkbox")),
            )
            fill = _ACCENT if element.checked else _CARD
            pen.rounded_rectangle(box, radius, fill=fill, outline=_FAINT, width=3)
