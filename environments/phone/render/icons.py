"""Icons of apps, and pictures of camera and maps, drawn with simple shapes."""

from __future__ import annotations

from zlib import crc32

from PIL import ImageDraw

Pen = ImageDraw.ImageDraw
Box = tuple[int, int, int, int]
_WHITE = "#ffffff"
_COLORS = ("#c0504d", "#4f81bd", "#5a9a4a", "#8064a2", "#d08a2e", "#3aa3a0", "#a04878", "#6b6f2a")
_SKIES = ("#9ec9ea", "#f3c58b", "#c7b8e8", "#a9dcc3", "#f0a7a0")
_HILLS = ("#4c7a55", "#6f5f4b", "#3f6f7f", "#7a4f6d", "#5a6b2f")

_Shape = tuple[str, tuple[int, ...]]
_GLYPHS: dict[str, tuple[_Shape, ...]] = {
    "settings": (
        ("line", (12, 14, 48, 14)), ("line", (12, 30, 48, 30)), ("line", (12, 46, 48, 46)),
        ("dot", (18, 8, 30, 20)), ("dot", (32, 24, 44, 36)), ("dot", (16, 40, 28, 52)),
    ),
    "contacts": (("dot", (20, 8, 40, 28)), ("pie", (8, 32, 52, 76, 180, 360))),
    "messages": (("box", (8, 12, 52, 40)), ("tri", (16, 38, 30, 38, 16, 52))),
    "clock": (
        ("ring", (8, 8, 52, 52)), ("line", (30, 30, 30, 16)), ("line", (30, 30, 41, 36)),
    ),
    "notes": (
        ("frame", (12, 8, 48, 52)), ("line", (20, 20, 40, 20)), ("line", (20, 30, 40, 30)),
        ("line", (20, 40, 34, 40)),
    ),
    "tasks": (("frame", (10, 10, 50, 50)), ("line", (19, 30, 27, 40)), ("line", (27, 40, 43, 20))),
    "expenses": (
        ("ring", (8, 8, 52, 52)), ("line", (30, 16, 30, 44)), ("line", (22, 24, 38, 24)),
        ("line", (22, 36, 38, 36)),
    ),
    "calendar": (
        ("frame", (8, 12, 52, 52)), ("line", (8, 24, 52, 24)), ("line", (20, 6, 20, 16)),
        ("line", (40, 6, 40, 16)), ("dot", (30, 34, 42, 46)),
    ),
    "recipes": (
        ("box", (12, 26, 48, 50)), ("line", (6, 26, 54, 26)), ("line", (24, 8, 24, 18)),
        ("line", (36, 8, 36, 18)),
    ),
    "music": (
        ("dot", (10, 38, 26, 52)), ("dot", (34, 34, 50, 48)), ("line", (25, 44, 25, 12)),
        ("line", (49, 40, 49, 8)), ("line", (25, 12, 49, 8)),
    ),
    "files": (("box", (6, 18, 54, 50)), ("box", (6, 10, 28, 22))),
    "browser": (
        ("ring", (8, 8, 52, 52)), ("line", (8, 30, 52, 30)), ("ring", (20, 8, 40, 52)),
    ),
    "camera": (("frame", (6, 16, 54, 50)), ("ring", (20, 22, 40, 42)), ("box", (22, 8, 38, 16))),
    "gallery": (
        ("frame", (6, 10, 54, 50)), ("tri", (10, 48, 26, 24, 42, 48)), ("dot", (38, 16, 48, 26)),
    ),
    "recorder": (
        ("box", (22, 6, 38, 34)), ("arc", (14, 16, 46, 44, 0, 180)), ("line", (30, 44, 30, 54)),
    ),
    "maps": (("dot", (14, 6, 46, 38)), ("tri", (17, 30, 43, 30, 30, 56))),
    "all apps": tuple(
        ("dot", (x, y, x + 10, y + 10)) for x in (8, 25, 42) for y in (8, 25, 42)
    ),
}  # fmt: skip
"""App -> shapes on a square of 60 by 60."""


def app_color(name: str) -> str:
    """The background of an app's icon."""
    return _COLORS[crc32(name.encode()) % len(_COLORS)]


def glyph(pen: Pen, name: str, left: int, top: int) -> bool:
    """Draw the symbol of an app, 60 by 60 pixels. Returns false if the app has no symbol."""
    for kind, numbers in _GLYPHS.get(name, ()):
        at = tuple(n + (left, top)[k % 2] for k, n in enumerate(numbers[:4]))
        if kind == "line":
            pen.line(at, _WHITE, 4)
        elif kind == "dot":
            pen.ellipse(at, fill=_WHITE)
        elif kind == "ring":
            pen.ellipse(at, outline=_WHITE, width=4)
        elif kind == "box":
            pen.rounded_rectangle(at, 5, fill=_WHITE)
        elif kind == "frame":
            pen.rounded_rectangle(at, 5, outline=_WHITE, width=4)
        elif kind == "arc":
            pen.arc(at, numbers[4], numbers[5], _WHITE, 4)
        elif kind == "pie":
            pen.pieslice(at, numbers[4], numbers[5], fill=_WHITE)
        else:
            all_at = [n + (left, top)[k % 2] for k, n in enumerate(numbers)]
            pen.polygon(all_at, fill=_WHITE)
    return name in _GLYPHS


def landscape(pen: Pen, box: Box, name: str) -> None:
    """Draw the picture that stands for a photo; it depends on the photo's name."""
    left, top, right, bottom = box
    number = crc32(name.encode())
    pen.rectangle(box, fill=_SKIES[number % len(_SKIES)])
    wide, high = right - left, bottom - top
    sun = left + wide * (1 + number // 7 % 6) // 8
    size = high // 6
    pen.ellipse((sun, top + size // 2, sun + size, top + size // 2 + size), fill="#fff3b0")
    peak = left + wide * (2 + number // 50 % 5) // 8
    foot, hill = bottom, _HILLS[number // 300 % len(_HILLS)]
    pen.polygon([(left, foot), (peak, top + high // 3), (right, foot)], fill=hill)


def chart(pen: Pen, box: Box) -> None:
    """Draw a map with roads, a river and a pin."""
    left, top, right, bottom = box
    pen.rectangle(box, fill="#dcead2")
    wide, high = right - left, bottom - top
    river = [(left, top + high // 4), (left + wide // 3, top + high // 2), (right, top + high // 3)]
    pen.line(river, "#9cc7e8", 18)
    for part in (1, 3, 5):
        x, y = left + wide * part // 6, top + high * part // 6
        pen.line([(x, top), (x + 20, bottom)], _WHITE, 8)
        pen.line([(left, y), (right, y)], _WHITE, 6)
    x, y = (left + right) // 2, (top + bottom) // 2
    pen.ellipse((x - 12, y - 26, x + 12, y - 2), fill="#d23c3c")
    pen.polygon([(x - 10, y - 8), (x + 10, y - 8), (x, y + 12)], fill="#d23c3c")


def viewfinder(pen: Pen, box: Box) -> None:
    """Draw the view of the camera, with marks at the corners."""
    landscape(pen, box, "viewfinder")
    left, top, right, bottom = box
    for x, y in ((left + 24, top + 24), (right - 24, bottom - 24)):
        across, down = (34, 34) if x < (left + right) / 2 else (-34, -34)
        pen.line([(x, y), (x + across, y)], _WHITE, 4)
        pen.line([(x, y), (x, y + down)], _WHITE, 4)
    x, y = (left + right) // 2, (top + bottom) // 2
    pen.rectangle((x - 30, y - 30, x + 30, y + 30), outline=_WHITE, width=2)


def wifi(pen: Pen, x: int, y: int, color: str, *, on: bool) -> None:
    """Draw the wifi symbol, crossed out if wifi is off."""
    for size in (4, 11, 18):
        pen.arc((x - size, y - size, x + size, y + size), 225, 315, color, 3)
    if not on:
        pen.line([(x - 13, y - 18), (x + 11, y + 4)], color, 3)


def battery(pen: Pen, x: int, y: int, color: str, percent: int) -> None:
    """Draw the battery symbol, filled by its level."""
    pen.rounded_rectangle((x, y, x + 30, y + 16), 4, outline=color, width=2)
    pen.rectangle((x + 31, y + 5, x + 33, y + 11), fill=color)
    pen.rectangle((x + 3, y + 3, x + 3 + 24 * percent // 100, y + 13), fill=color)
