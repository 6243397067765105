"""The screen of a full device as a picture."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw

from swarm_ui.environments.phone.render import icons, screenshot
from swarm_ui.environments.phone.ui.keyboard import KEY_ROW, KEY_TOP, KEY_WIDTH, LETTERS
from swarm_ui.environments.phone.ui.layout import HEIGHT, WIDTH, Box, View
from swarm_ui.observation import Element

_PAPER, _INK, _FAINT, _CARD, _DARK = "#f6f5fa", "#1c1b20", "#6f6c78", "#ffffff", "#2e2d34"
_ACCENT, _WALL, _SHADE, _BLUE = "#4f56b8", "#cfd6ef", "#e4e1ee", "#2457c5"
_KEYS, _SCRIM = "#d5d7df", "#8d8b96"
_TOAST_DEPTH, _STATUS_DEPTH, _KEY_DEPTH = 3, 4, 6


def draw_full_screen(view: View) -> bytes:
    """A PNG of the screen; elements are drawn in their ``bounds``."""
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
        _draw(pen, element)
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _dialog(pen: ImageDraw.ImageDraw, elements: tuple[Element, ...]) -> None:
    """A card over a darkened screen."""
    boxes = [_box(element) for element in elements if element.depth > _KEY_DEPTH]
    pen.rectangle((0, 44, WIDTH, HEIGHT - 64), fill=_SCRIM)
    top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
    pen.rounded_rectangle((10, top - 18, WIDTH - 10, bottom + 16), 26, fill=_CARD)


def _buttons(pen: ImageDraw.ImageDraw) -> None:
    """The bar with back, home and recent apps."""
    y = HEIGHT - 32
    x = WIDTH // 4
    pen.polygon([(x + 8, y - 10), (x - 8, y), (x + 8, y + 10)], _FAINT)
    pen.ellipse((WIDTH // 2 - 11, y - 11, WIDTH // 2 + 11, y + 11), outline=_FAINT, width=3)
    x = WIDTH * 3 // 4
    pen.rounded_rectangle((x - 9, y - 9, x + 9, y + 9), 3, outline=_FAINT, width=3)


def _draw(pen: ImageDraw.ImageDraw, element: Element) -> None:
    box, role = _box(element), element.role
    if element.depth == _STATUS_DEPTH:
        _status(pen, box, element)
    elif element.depth == _TOAST_DEPTH:
        pen.rounded_rectangle(box, 22, fill=_DARK)
        _centre(pen, box, element.text.capitalize(), _CARD, 18)
    elif element.description == "keyboard":
        _keyboard(pen)
    elif role in ("app", "icon"):
        _icon(pen, box, element.text)
    elif element.depth == _KEY_DEPTH:
        pen.rounded_rectangle((box[0] + 2, box[1] + 2, box[2] - 2, box[3] - 2), 8, fill=_CARD)
        _centre(pen, box, element.text.capitalize(), _INK, 16)
    elif role == "heading":
        pen.line([(40, 66), (24, 78), (40, 90)], _INK, 3)
        pen.text((box[0], 64), element.text.capitalize(), _INK, screenshot.font(26))
        pen.line([(0, 106), (WIDTH, 106)], "#d8d5e0")
    elif role == "image":
        _image(pen, box, element)
    else:
        _row(pen, box, element)


def _status(pen: ImageDraw.ImageDraw, box: Box, element: Element) -> None:
    """Clock, battery, wifi, or the number of notifications."""
    left, top, right, _ = box
    says = element.description.split(" ")
    if element.text:
        pen.text((left + 4, top + 5), element.text, _INK, screenshot.font(20))
    elif says[0] == "battery":
        icons.battery(pen, right - 36, top + 9, _INK, int(says[1]))
        pen.text((right - 42, top + 17), says[1], _INK, screenshot.font(17), "rm")
    elif says[0] == "wifi":
        icons.wifi(pen, (left + right) // 2, top + 27, _INK, on=says[1] == "on")
    else:
        x, y = left + 8, top + 6
        pen.pieslice((x, y, x + 22, y + 26), 180, 360, fill=_INK)
        pen.rectangle((x, y + 12, x + 22, y + 18), fill=_INK)
        pen.ellipse((x + 8, y + 18, x + 14, y + 24), fill=_INK)
        pen.text((x + 30, top + 17), says[0], _INK, screenshot.font(17), "lm")


def _icon(pen: ImageDraw.ImageDraw, box: Box, name: str) -> None:
    left, top, right, bottom = box
    color = _FAINT if name == "all apps" else icons.app_color(name)
    pen.rounded_rectangle((left, top, right, bottom - 30), 24, fill=color)
    icons.glyph(pen, name, (left + right) // 2 - 30, (top + bottom - 30) // 2 - 30)
    _centre(pen, (left - 16, bottom - 28, right + 16, bottom), name.capitalize(), _INK, 17)


def _image(pen: ImageDraw.ImageDraw, box: Box, element: Element) -> None:
    """A thumbnail, a photo or video, what the camera sees, or a map."""
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


def _keyboard(pen: ImageDraw.ImageDraw) -> None:
    """The letters of the keyboard."""
    for row, letters in enumerate(LETTERS):
        for column, letter in enumerate(letters):
            left, top = column * KEY_WIDTH, KEY_TOP + row * KEY_ROW
            box = (left + 3, top + 3, left + KEY_WIDTH - 3, top + KEY_ROW - 5)
            pen.rounded_rectangle(box, 7, fill=_CARD)
            _centre(pen, box, letter, _INK, 22)


def _row(pen: ImageDraw.ImageDraw, box: Box, element: Element) -> None:
    """An element in a row; it looks as on the core device."""
    left, top, right, bottom = box
    role = element.role
    text = element.text.capitalize()
    if role == "dialog":
        _centre(pen, box, text, _INK, 21)
    elif role == "label":
        text = "More above or below" if element.scrollable else text
        pen.text((left + 8, (top + bottom) / 2), text, _FAINT, screenshot.font(19), "lm")
    elif role == "link":
        pen.text((left + 8, (top + bottom) / 2), element.text, _BLUE, screenshot.font(21), "lm")
        wide = pen.textlength(element.text, screenshot.font(21))
        pen.line([(left + 8, bottom - 10), (left + 8 + wide, bottom - 10)], _BLUE, 2)
    elif role == "button":
        pen.rounded_rectangle((left + 60, top + 4, right - 60, bottom - 4), 22, fill=_ACCENT)
        _centre(pen, (left + 66, top, right - 66, bottom), text, _CARD, 20)
    else:
        screenshot.draw_element(pen, element)
        if element.focused:
            pen.rounded_rectangle((left, top + 4, right, bottom), 8, outline=_ACCENT, width=3)
            if element.value:  # the outline goes through its name
                wide = pen.textlength(text, screenshot.font(14))
                pen.rectangle((left + 12, top, left + 20 + wide, top + 10), fill=_PAPER)
                pen.text((left + 16, top - 3), text, _ACCENT, screenshot.font(14))
            x = left + 18 + pen.textlength(element.value or "", screenshot.font(22))
            pen.line([(x, top + 16), (x, bottom - 8)], _ACCENT, 2)


def _centre(pen: ImageDraw.ImageDraw, box: Box, text: str, color: str, size: int) -> None:
    """Draw a text in the middle of a box, in a size that fits."""
    left, top, right, bottom = box
    while size > 11 and pen.textlength(text, screenshot.font(size)) > right - left - 8:
        size -= 1
    pen.text(((left + right) / 2, (top + bottom) / 2), text, color, screenshot.font(size), "mm")


def _box(element: Element) -> Box:
    return element.bounds or (0, 0, 0, 0)
