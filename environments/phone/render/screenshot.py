"""The current screen as a picture, drawn with Pillow."""

from __future__ import annotations

import io
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.phone.render import icons
from swarm_ui.environments.phone.render.icons import Pen
from swarm_ui.environments.phone.ui.geometry import (
    HEIGHT,
    KEY_ROW,
    KEY_TOP,
    KEY_WIDTH,
    LETTERS,
    MARGIN,
    WIDTH,
    Box,
)
from swarm_ui.environments.phone.ui.layout import TOP, View
from swarm_ui.observation import Element

_PAPER, _INK, _FAINT, _LINE = "#f6f5fa", "#1c1b20", "#6f6c78", "#d8d5e0"
_ACCENT, _CARD, _DARK = "#4f56b8", "#ffffff", "#2e2d34"
_WALL, _SHADE, _BLUE, _KEYS, _SCRIM = "#cfd6ef", "#e4e1ee", "#2457c5", "#d5d7df", "#8d8b96"
_TOAST_DEPTH, _STATUS_DEPTH, _KEY_DEPTH = 3, 4, 6

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


@cache
def font(size: int) -> Font:
    return ImageFont.load_default(size)


def draw_screen(view: View) -> bytes:
    """Draw a screen of the core device: a PNG of ``WIDTH`` x ``HEIGHT`` pixels, with the elements
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
        draw_element(pen, element)
    return _png(image)


def _frame(pen: Pen, title: str, home: bool) -> None:
    """Draw the status bar, the title, and the bar with the buttons back and home."""
    pen.text((MARGIN, 12), "9:41", _INK, font(18))
    pen.rounded_rectangle((WIDTH - 56, 14, WIDTH - 24, 29), 4, outline=_INK, width=2)
    pen.rectangle((WIDTH - 53, 17, WIDTH - 33, 26), fill=_INK)
    if not home:
        pen.line([(40, 68), (24, 80), (40, 92)], _INK, 3)
        pen.text((64, 66), title.capitalize(), _INK, font(26))
        pen.line([(0, TOP - 16), (WIDTH, TOP - 16)], _LINE)
    _navigation(pen)


def _navigation(pen: Pen) -> None:
    """Draw the buttons back and home."""
    x, y = WIDTH // 4, HEIGHT - 32
    pen.polygon([(x + 8, y - 10), (x - 8, y), (x + 8, y + 10)], _FAINT)
    pen.ellipse((WIDTH // 2 - 11, y - 11, WIDTH // 2 + 11, y + 11), outline=_FAINT, width=3)


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def draw_element(pen: Pen, element: Element) -> None:
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
    pen.rounded_rectangle((left, top, right, bottom - 30), 24, fill=icons.app_color(name))
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


def draw_full_screen(view: View) -> bytes:
    """Draw a screen of the full device, as a PNG like that of :func:`draw_screen`."""
    elements = view.elements
    roles = {element.role for element in elements}
    home = view.title == "home" and "dialog" not in roles
    ground = _WALL if home else _SHADE if "notification" in view.title else _PAPER
    image = Image.new("RGB", (WIDTH, HEIGHT), ground)
    pen = ImageDraw.Draw(image)
    if "dialog" in roles:
        _dialog(pen, elements)
    if any(element.description == "keyboard" for element in elements):
        pen.rectangle((0, KEY_TOP - 4, WIDTH, HEIGHT), fill=_KEYS)
    _buttons(pen)
    for element in elements:
        _full_element(pen, element)
    return _png(image)


def _dialog(pen: Pen, elements: tuple[Element, ...]) -> None:
    """Draw a card over a darkened screen."""
    boxes = [_box(element) for element in elements if element.depth > _KEY_DEPTH]
    pen.rectangle((0, 44, WIDTH, HEIGHT - 64), fill=_SCRIM)
    top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
    pen.rounded_rectangle((10, top - 18, WIDTH - 10, bottom + 16), 26, fill=_CARD)


def _buttons(pen: Pen) -> None:
    """Draw the bar with the buttons back, home and recent apps."""
    _navigation(pen)
    x, y = WIDTH * 3 // 4, HEIGHT - 32
    pen.rounded_rectangle((x - 9, y - 9, x + 9, y + 9), 3, outline=_FAINT, width=3)


def _full_element(pen: Pen, element: Element) -> None:
    box, role = _box(element), element.role
    if element.depth == _STATUS_DEPTH:
        _status(pen, box, element)
    elif element.depth == _TOAST_DEPTH:
        pen.rounded_rectangle(box, 22, fill=_DARK)
        _centre(pen, box, element.text.capitalize(), _CARD, 18)
    elif element.description == "keyboard":
        _keyboard(pen)
    elif role in ("app", "icon"):
        _full_icon(pen, box, element.text)
    elif element.depth == _KEY_DEPTH:
        pen.rounded_rectangle((box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2), 8, fill=_CARD)
        _centre(pen, box, element.text.capitalize(), _INK, 16)
    elif role == "heading":
        pen.line([(40, 66), (24, 78), (40, 90)], _INK, 3)
        pen.text((box[0], 64), element.text.capitalize(), _INK, font(26))
        pen.line([(0, 106), (WIDTH, 106)], _LINE)
    elif role == "image":
        _image(pen, box, element)
    else:
        _full_row(pen, box, element)


def _status(pen: Pen, box: Box, element: Element) -> None:
    """Draw an element of the status bar: clock, battery, wifi, or the number of notifications."""
    left, top, right, _ = box
    says = element.description.split(" ")
    if element.text:
        pen.text((left + 4, top + 5), element.text, _INK, font(20))
    elif says[0] == "battery":
        icons.battery(pen, right - 36, top + 9, _INK, int(says[1]))
        pen.text((right - 42, top + 17), says[1], _INK, font(17), "rm")
    elif says[0] == "wifi":
        icons.wifi(pen, (left + right) // 2, top + 27, _INK, on=says[1] == "on")
    else:
        x, y = left + 8, top + 6
        pen.pieslice((x, y, x + 22, y + 26), 180, 360, fill=_INK)
        pen.rectangle((x, y + 12, x + 22, y + 18), fill=_INK)
        pen.ellipse((x + 8, y + 18, x + 14, y + 24), fill=_INK)
        pen.text((x + 30, top + 17), says[0], _INK, font(17), "lm")


def _full_icon(pen: Pen, box: Box, name: str) -> None:
    left, top, right, bottom = box
    color = _FAINT if name == "all apps" else icons.app_color(name)
    pen.rounded_rectangle((left, top, right, bottom - 30), 24, fill=color)
    icons.glyph(pen, name, (left + right) // 2 - 30, (top + bottom - 30) // 2 - 30)
    _centre(pen, (left - 16, bottom - 28, right + 16, bottom), name.capitalize(), _INK, 17)


def _image(pen: Pen, box: Box, element: Element) -> None:
    """Draw a picture: a thumbnail, a photo or video, the view of the camera, or a map."""
    left, top, right, bottom = box
    if element.text:
        icons.landscape(pen, (left, top, right, bottom - 28), element.text)
        _centre(pen, (left, bottom - 28, right, bottom), element.text.capitalize(), _INK, 17)
    elif element.description == "map":
        icons.chart(pen, box)
    elif element.description == "viewfinder":
        icons.viewfinder(pen, box)
    else:
        kind, _, name = element.description.partition(" ")
        icons.landscape(pen, box, name)
        if kind == "video":
            x, y = (left + right) // 2, (top + bottom) // 2
            pen.polygon([(x - 24, y - 30), (x - 24, y + 30), (x + 32, y)], fill=_CARD)


def _keyboard(pen: Pen) -> None:
    """Draw the letters of the keyboard."""
    for row, letters in enumerate(LETTERS):
        for column, letter in enumerate(letters):
            left, top = column * KEY_WIDTH, KEY_TOP + row * KEY_ROW
            box = (left + 3, top + 3, left + KEY_WIDTH - 3, top + KEY_ROW - 5)
            pen.rounded_rectangle(box, 7, fill=_CARD)
            _centre(pen, box, letter, _INK, 22)


def _full_row(pen: Pen, box: Box, element: Element) -> None:
    """Draw an element of the full device that fills a row."""
    left, top, right, bottom = box
    role = element.role
    text = element.text.capitalize()
    if role == "dialog":
        _centre(pen, box, text, _INK, 21)
    elif role == "label":
        text = "More above or below" if element.scrollable else text
        pen.text((left + 8, (top + bottom) / 2), text, _FAINT, font(19), "lm")
    elif role == "link":
        pen.text((left + 8, (top + bottom) / 2), element.text, _BLUE, font(21), "lm")
        wide = pen.textlength(element.text, font(21))
        pen.line([(left + 8, bottom - 10), (left + 8 + wide, bottom - 10)], _BLUE, 2)
    elif role == "button":
        pen.rounded_rectangle((left + 60, top + 4, right - 60, bottom - 4), 22, fill=_ACCENT)
        _centre(pen, (left + 66, top, right - 66, bottom), text, _CARD, 20)
    else:
        draw_element(pen, element)
        if element.focused:
            pen.rounded_rectangle((left, top + 4, right, bottom), 8, outline=_ACCENT, width=3)
            if element.value:  # the outline goes through its name
                wide = pen.textlength(text, font(14))
                pen.rectangle((left + 12, top, left + 20 + wide, top + 10), fill=_PAPER)
                pen.text((left + 16, top - 3), text, _ACCENT, font(14))
            x = left + 18 + pen.textlength(element.value or "", font(22))
            pen.line([(x, top + 16), (x, bottom - 8)], _ACCENT, 2)


def _centre(pen: Pen, box: Box, text: str, color: str, size: int) -> None:
    """Draw a text in the middle of a box, in a size that fits."""
    left, top, right, bottom = box
    while size > 11 and pen.textlength(text, font(size)) > right - left - 8:
        size -= 1
    pen.text(((left + right) / 2, (top + bottom) / 2), text, color, font(size), "mm")
