"""Pixels of a handset's screen: the phone's picture, enlarged to Android's resolution."""

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
from swarm_ui.environments.phone.picture import draw_screen
from swarm_ui.environments.phone.view import View
from swarm_ui.observation import Element, Role

_CLOCK = (20, 12, 110, 40)
_NARROW = 300
"""Buttons narrower than this, in pixels, are drawn as cells, which have smaller margins."""


class Camera:
    """Draws screens. It keeps the last picture and draws again only if the screen has changed."""

    def __init__(self) -> None:
        self._seen: object = None
        self._pixels = b""

    def pixels(self, handset: Handset) -> bytes:
        """The screen as RGB bytes, row by row."""
        geometry = lay_out(handset)
        shown = [(e.role, e.text, e.value, e.checked, e.bounds) for e in elements(geometry)]
        seen = (geometry.title, handset.now // 60, shown)
        if seen != self._seen:
            self._seen = seen
            small = picture(handset, geometry)
            large = small.resize((WIDTH * SCALE, HEIGHT * SCALE), Image.Resampling.NEAREST)
            self._pixels = large.tobytes()
        return self._pixels


def picture(handset: Handset, geometry: ScreenGeometry) -> Image.Image:
    """The screen in the phone's resolution, with the time of this handset."""
    shown = elements(geometry)
    widgets = [one.widget for one in geometry.placed]
    drawn = draw_screen(View(geometry.title, widgets, tuple(range(len(shown))), shown))
    with Image.open(io.BytesIO(drawn)) as opened:
        image = opened.convert("RGB")
    pen = ImageDraw.Draw(image)
    pen.rectangle(_CLOCK, fill=image.getpixel((0, 0)))
    pen.text(_CLOCK[:2], f"{handset.when():%H:%M}", "#1c1b20", ImageFont.load_default(18))
    return image


def elements(geometry: ScreenGeometry) -> tuple[Element, ...]:
    """The widgets on the screen as elements of an observation."""
    return tuple(_element(k, one) for k, one in enumerate(geometry.placed))


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
