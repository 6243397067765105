"""Screenshots of the multimodal copy as PNG files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from swarm_ui.environments.mind2web.raw_records import Picture
from swarm_ui.errors import ConfigError

_PNG = b"\x89PNG\r\n\x1a\n"


def picture_beside(file: Path) -> Picture:
    """A function that reads a row's ``screenshot``: bytes, or a path relative to ``file``."""

    def picture(screenshot: object, where: str) -> bytes:
        held = screenshot.get("bytes") if isinstance(screenshot, dict) else None
        name = screenshot.get("path") if isinstance(screenshot, dict) else screenshot
        if not isinstance(held, bytes):
            if not isinstance(name, str) or not (file.parent / name).is_file():
                raise ConfigError(
                    f"{where}: 'screenshot' is neither bytes nor the path of a picture beside the "
                    f"file: {name!r}; use screenshots=False"
                )
            held = (file.parent / name).read_bytes()
        return held if held.startswith(_PNG) else _converted(held, where)

    return picture


def _converted(held: bytes, where: str) -> bytes:
    from PIL import Image

    out = BytesIO()
    try:
        with Image.open(BytesIO(held)) as image:
            image.save(out, format="PNG")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{where}: 'screenshot' cannot be read as a picture: {error}") from error
    return out.getvalue()
