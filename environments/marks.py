"""Set-of-marks screenshots: numbered boxes, with the numbers that actions refer to."""

from __future__ import annotations

import io
from collections.abc import Sequence

from swarm_ui.observation import Element

_COLOURS = ("#d00000", "#0050d0", "#007a33", "#a000a0", "#b35900")


def marked(png: bytes, elements: Sequence[Element]) -> bytes:
    """The picture, with a box and an index drawn on every element that it shows.

    Args:
        png: a PNG file, in the pixels of the elements' bounds.
    """
    from PIL import Image, ImageDraw, ImageFont

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        picture = image.convert("RGB")
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(8)
    for element in elements:
        left, top, right, bottom = element.bounds or (0, 0, 0, 0)
        if right <= max(left, 0) or bottom <= max(top, 0):
            continue
        if left >= picture.width or top >= picture.height:
            continue
        colour = _COLOURS[element.index % len(_COLOURS)]
        pen.rectangle((left, top, right - 1, bottom - 1), outline=colour)
        label = str(element.index)
        width, height = (round(edge) for edge in pen.textbbox((0, 0), label, font)[2:])
        # Beside the box where there is room, so that the number covers no text of the element.
        x = left - width - 1 if left > width else min(max(left, 0), picture.width - width)
        at = x, min(max(top, 0), picture.height - height)
        pen.rectangle((*at, at[0] + width, at[1] + height), fill=colour)
        pen.text(at, label, "white", font)
    picture.save(out, "PNG", compress_level=1)
    return out.getvalue()
