"""The current screen as a picture, drawn with Pillow."""

from __future__ import annotations

import io
from functools import cache
from zlib import crc32

from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.phone.view import HEIGHT, MARGIN, TOP, WIDTH, Box, View
from swarm_ui.observation import Element

Pen = ImageDraw.ImageDraw
_PAPER, _INK, _FAINT, _LINE = "#f6f5fa", "#1c1b20", "#6f6c78", "#d8d5e0"
_ACCENT, _CARD, _DARK = "#4f56b8", "#ffffff", "#2e2d34"
_COLORS = ("#c0504d", "#4f81bd", "#5a9a4a", "#8064a2", "#d08a2e", "#3aa3a0", "#a04878", "#6b6f2a")
"""Backgrounds of the apps' icons."""


@cache
def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def draw_screen(view: View) -> bytes:
    """Draw a screen: a PNG of ``WIDTH`` x ``HEIGHT`` pixels, with the elements
    in their ``bounds``."""
    home = view.title == "home"
    image = Image.new("RGB", (WIDTH, HEIGHT), "#dfe3f3" if home else _PAPER)
    pen = ImageDraw.Draw(image)
    pen.text((MARGIN, 12), "9:41", _INK, font(18))
    if not home:
        pen.line([(40, 68), (24, 80), (40, 92)], _INK, 3)
        pen.text((64, 66), view.title.capitalize(), _INK, font(26))
        pen.line([(0, TOP - 16), (WIDTH, TOP - 16)], _LINE)
    if any(element.role == "dialog" for element in view.elements):
        bottom = max(_box(element)[3] for element in view.elements)
        pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#a5a3ad")
        pen.rounded_rectangle((8, TOP - 14, WIDTH - 8, bottom + 14), 22, fill=_CARD)
    for element in view.elements:
        _draw_element(pen, element)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _box(element: Element) -> Box:
    return element.bounds or (0, 0, 0, 0)


def _draw_element(pen: Pen, element: Element) -> None:
    role, text = element.role, element.text.capitalize()
    left, top, right, bottom = _box(element)
    middle = ((left + right) / 2, (top + bottom) / 2)
    if role == "app":
        color = _COLORS[crc32(element.text.encode()) % len(_COLORS)]
        pen.rounded_rectangle((left, top, right, bottom - 30), 24, fill=color)
        pen.text((middle[0], middle[1] - 15), text[:1], _CARD, font(42), "mm")
        pen.text((middle[0], bottom - 12), text, _INK, font(17), "mm")
    elif role == "field":
        pen.rounded_rectangle((left, top + 4, right, bottom), 8, outline=_FAINT, width=2)
        if element.value:
            pen.rectangle((left + 12, top, left + 20 + 8 * len(text), top + 10), fill=_PAPER)
            pen.text((left + 16, top - 3), text, _ACCENT, font(14))
        pen.text(
            (left + 16, top + 18),
            element.value or text,
            _INK if element.value else _FAINT,
            font(22),
        )
    elif role == "button":
        pen.rounded_rectangle((left + 90, top + 4, right - 90, bottom - 4), 24, fill=_ACCENT)
        pen.text(middle, text, _CARD, font(20), "mm")
    elif role == "tab":
        pen.line([(left + 90, bottom - 6), (right - 90, bottom - 6)], _ACCENT, 4)
        pen.text(middle, text, _ACCENT, font(20), "mm")
    elif element.scrollable:
        pen.text((WIDTH / 2, top + 26), "More above or below", _FAINT, font(17), "mm")
    elif role == "label":
        pen.rounded_rectangle((left + 110, top + 6, right - 110, bottom - 6), 20, fill=_DARK)
        pen.text(middle, text, _CARD, font(18), "mm")
    elif role == "dialog":
        pen.text((left + 16, top + 16), text, _INK, font(22))
    else:
        pen.rounded_rectangle((left, top, right, bottom), 10, fill=_CARD)
        pen.text((left + 16, middle[1]), text, _INK, font(22), "lm")
        if element.value is not None:
            pen.text((right - 16, middle[1]), element.value, _FAINT, font(20), "rm")
        if element.checked is not None:
            _draw_mark(pen, (right - 64, top + 13, right - 16, top + 43), element)


def _draw_mark(pen: Pen, box: Box, element: Element) -> None:
    """Draw a switch, check box or radio button."""
    left, top, right, bottom = box
    on = bool(element.checked)
    if element.role == "switch":
        pen.rounded_rectangle(box, 15, fill=_ACCENT if on else _LINE)
        knob = right - 27 if on else left + 3
        pen.ellipse((knob, top + 3, knob + 24, bottom - 3), fill=_CARD)
        return
    radius = 15 if element.role == "radio" else 5
    color = _ACCENT if on else _FAINT
    pen.rounded_rectangle((right - 30, top, right, bottom), radius, outline=color, width=3)
    if on:
        pen.rounded_rectangle((right - 22, top + 8, right - 8, bottom - 8), radius / 2, fill=color)
