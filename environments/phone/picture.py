"""The current screen as a picture, drawn with Pillow."""

from __future__ import annotations

import io
from functools import cache
from zlib import crc32

from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.phone.view import HEIGHT, MARGIN, TOP, WIDTH, Box, View
from swarm_ui.observation import Element

Pen = ImageDraw.ImageDraw
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
_PAPER, _INK, _FAINT, _LINE = "#f6f5fa", "#1c1b20", "#6f6c78", "#d8d5e0"
_ACCENT, _CARD, _DARK = "#4f56b8", "#ffffff", "#2e2d34"
_COLORS = ("#c0504d", "#4f81bd", "#5a9a4a", "#8064a2", "#d08a2e", "#3aa3a0", "#a04878", "#6b6f2a")
"""Backgrounds of the apps' icons."""


@cache
def font(size: int) -> Font:
    return ImageFont.load_default(size)


def draw_screen(view: View) -> bytes:
    """Draw a screen: a PNG of ``WIDTH`` x ``HEIGHT`` pixels, with the elements
    in their ``bounds``."""
    home = view.title == "home"
    image = Image.new("RGB", (WIDTH, HEIGHT), "#dfe3f3" if home else _PAPER)
    pen = ImageDraw.Draw(image)
    _frame(pen, view.title, home)
    if any(element.role == "dialog" for element in view.elements):
        bottom = max(_box(element)[3] for element in view.elements)
        pen.rectangle((0, 0, WIDTH, HEIGHT), fill="#a5a3ad")
        pen.rounded_rectangle((8, TOP - 14, WIDTH - 8, bottom + 14), 22, fill=_CARD)
    for element in view.elements:
        _draw_element(pen, element)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _frame(pen: Pen, title: str, home: bool) -> None:
    """Draw the status bar, the title, and the bar with the buttons back and home."""
    pen.text((MARGIN, 12), "9:41", _INK, font(18))
    pen.rounded_rectangle((WIDTH - 56, 14, WIDTH - 24, 29), 4, outline=_INK, width=2)
    pen.rectangle((WIDTH - 53, 17, WIDTH - 33, 26), fill=_INK)
    if not home:
        pen.line([(40, 68), (24, 80), (40, 92)], _INK, 3)
        pen.text((64, 66), title.capitalize(), _INK, font(26))
        pen.line([(0, TOP - 16), (WIDTH, TOP - 16)], _LINE)
    x, y = WIDTH // 4, HEIGHT - 32
    pen.polygon([(x + 8, y - 10), (x - 8, y), (x + 8, y + 10)], _FAINT)
    pen.ellipse((WIDTH // 2 - 11, y - 11, WIDTH // 2 + 11, y + 11), outline=_FAINT, width=3)


def _draw_element(pen: Pen, element: Element) -> None:
    box = _box(element)
    role = element.role
    if role == "app":
        _icon(pen, box, element.text)
    elif role == "field":
        _field(pen, box, element)
    elif role in ("button", "tab"):
        _button(pen, box, element.text.capitalize(), filled=role == "button")
    elif element.scrollable:
        pen.text((WIDTH / 2, box[1] + 26), "More above or below", _FAINT, font(17), "mm")
    elif role == "label":
        _toast(pen, box, element.text.capitalize())
    elif role == "dialog":
        pen.text((box[0] + 16, box[1] + 16), element.text.capitalize(), _INK, font(22))
    else:
        _row(pen, box, element)


def _box(element: Element) -> Box:
    return element.bounds or (0, 0, 0, 0)


def _icon(pen: Pen, box: Box, name: str) -> None:
    left, top, right, bottom = box
    pen.rounded_rectangle(
        (left, top, right, bottom - 30), 24, fill=_COLORS[crc32(name.encode()) % len(_COLORS)]
    )
    middle = (left + right) / 2
    pen.text((middle, (top + bottom - 30) / 2), name[:1].upper(), _CARD, font(42), "mm")
    pen.text((middle, bottom - 12), name.capitalize(), _INK, font(17), "mm")


def _field(pen: Pen, box: Box, element: Element) -> None:
    left, top, right, bottom = box
    pen.rounded_rectangle((left, top + 4, right, bottom), 8, outline=_FAINT, width=2)
    if element.value:
        pen.rectangle((left + 12, top, left + 20 + 8 * len(element.text), top + 10), fill=_PAPER)
        pen.text((left + 16, top - 3), element.text.capitalize(), _ACCENT, font(14))
        pen.text((left + 16, top + 18), element.value, _INK, font(22))
    else:
        pen.text((left + 16, top + 18), element.text.capitalize(), _FAINT, font(22))


def _button(pen: Pen, box: Box, text: str, *, filled: bool) -> None:
    left, top, right, bottom = box
    left, right = left + 90, right - 90
    if filled:
        pen.rounded_rectangle((left, top + 4, right, bottom - 4), 24, fill=_ACCENT)
    else:
        pen.line([(left, bottom - 6), (right, bottom - 6)], _ACCENT, 4)
    color = _CARD if filled else _ACCENT
    pen.text(((left + right) / 2, (top + bottom) / 2), text, color, font(20), "mm")


def _toast(pen: Pen, box: Box, text: str) -> None:
    left, top, right, bottom = box
    pen.rounded_rectangle((left + 110, top + 6, right - 110, bottom - 6), 20, fill=_DARK)
    pen.text(((left + right) / 2, (top + bottom) / 2), text, _CARD, font(18), "mm")


def _row(pen: Pen, box: Box, element: Element) -> None:
    left, top, right, bottom = box
    pen.rounded_rectangle(box, 10, fill=_CARD)
    middle = (top + bottom) / 2
    pen.text((left + 16, middle), element.text.capitalize(), _INK, font(22), "lm")
    if element.value is not None:
        pen.text((right - 16, middle), element.value, _FAINT, font(20), "rm")
    if element.checked is not None:
        _mark(pen, (right - 64, int(middle) - 15, right - 16, int(middle) + 15), element)


def _mark(pen: Pen, box: Box, element: Element) -> None:
    """Draw a switch, check box or radio button."""
    left, top, right, bottom = box
    on = bool(element.checked)
    color = _ACCENT if on else _FAINT
    if element.role == "switch":
        pen.rounded_rectangle(box, 15, fill=_ACCENT if on else _LINE)
        knob = right - 27 if on else left + 3
        pen.ellipse((knob, top + 3, knob + 24, bottom - 3), fill=_CARD)
        return
    square = (right - 30, top, right, bottom)
    if element.role == "radio":
        pen.ellipse(square, outline=color, width=3)
        if on:
            pen.ellipse((right - 22, top + 8, right - 8, bottom - 8), fill=color)
        return
    pen.rounded_rectangle(square, 5, outline=color, width=3, fill=color if on else None)
    if on:
        tick = [(right - 24, top + 15), (right - 17, bottom - 7), (right - 6, top + 8)]
        pen.line(tick, _CARD, 4)
