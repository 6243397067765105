"""A handset's screen as pixels: the phone's own picture, enlarged to Android's resolution."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont

from swarm_ui.environments.androidworld.handset.handset import Handset
from swarm_ui.environments.androidworld.handset.screen.geometry import (
    HEIGHT,
    SCALE,
    WIDTH,
    Placed,
    ScreenGeometry,
    lay_out,
)
from swarm_ui.environments.phone.render.screenshot import draw_screen
from swarm_ui.environments.phone.ui.layout import View
from swarm_ui.observation import Element, Role

_CLOCK = (20, 12, 110, 40)
_NARROW = 300
"""Pixels; the phone's buttons have wide margins, so narrower ones are drawn as cells."""


class Camera:
    """Draws a screen once as long as it stays the same."""

    def __init__(self) -> None:
        self._seen: object = None
        self._pixels = b""

    def pixels(self, handset: Handset) -> bytes:
        """RGB bytes, row by row."""
        glass = lay_out(handset)
        shown = [(e.role, e.text, e.value, e.checked, e.bounds) for e in elements(glass)]
        seen = (glass.title, handset.now // 60, shown)
        if seen != self._seen:
            self._seen = seen
            small = picture(handset, glass)
            large = small.resize((WIDTH * SCALE, HEIGHT * SCALE), Image.Resampling.NEAREST)
            self._pixels = large.tobytes()
        return self._pixels


def picture(handset: Handset, glass: ScreenGeometry) -> Image.Image:
    """The screen in the phone's own resolution, with the time of this device."""
    shown = elements(glass)
    widgets = [one.widget for one in glass.placed]
    drawn = draw_screen(View(glass.title, widgets, tuple(range(len(shown))), shown))
    with Image.open(io.BytesIO(drawn)) as opened:
        image = opened.convert("RGB")
    pen = ImageDraw.Draw(image)
    pen.rectangle(_CLOCK, fill=image.getpixel((0, 0)))
    pen.text(_CLOCK[:2], f"{handset.when():%H:%M}", "#1c1b20", ImageFont.load_default(18))
    return image


def elements(glass: ScreenGeometry) -> tuple[Element, ...]:
    """What is on the screen in the words of the observation."""
    return tuple(_element(k, one) for k, one in enumerate(glass.placed))


def _element(index: int, one: Placed) -> Element:
    widget = one.widget
    role: Role = widget.role
    narrow = one.box[2] - one.box[0] < _NARROW
    if role == "area":
        role = "field"
    elif narrow and role in ("button", "tab", "icon", "heading", "field"):
        role = "cell"
    elif role == "icon":
        role = "button"
    elif role in ("text", "heading", "image"):
        role = "cell"
    return Element(
        index=index,
        role=role,
        text=widget.text or widget.description,
        value=widget.value,
        checked=None if widget.role == "tab" else widget.checked,
        bounds=one.box,
    )
