"""Camera: takes photos and videos, which gallery and files show. Settings hold while it is open."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import Choose, Go
from swarm_ui.environments.phone.device.gestures import Keep
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.screen import Path, Screen, Widget

ROOT = Screen("camera")
VIDEO = Screen("camera", "video")
ROLLING = Screen("camera", "rolling")
PHOTO_PATH: Path = (ROOT,)
VIDEO_PATH: Path = (ROOT, VIDEO, ROLLING)


def build(device: Device, screen: Screen) -> list[Widget]:
    draft = device.draft
    finder = Widget("image", "", description="viewfinder", zone="hero")
    if screen.kind == "rolling":
        return [finder, Widget("label", "filming"), Widget("button", "stop", effect=Keep("video"))]
    lens = _choice(draft, "lens", ("back", "front"), "camera")
    if screen.kind == "video":
        go = Go(ROLLING, draft)
        return [finder, *lens, Widget("button", "start video", effect=go)]
    return [
        finder,
        *lens,
        *_choice(draft, "flash", ("off", "on"), "flash"),
        Widget("button", "take photo", effect=Keep("photo")),
        Widget("tab", "video", effect=Go(VIDEO)),
    ]


def _choice(draft: Row, field: str, values: tuple[str, ...], word: str) -> list[Widget]:
    """Radio buttons such as ``front camera`` and ``flash on``."""
    chosen = draft.get(field, values[0])
    return [
        Widget(
            "radio",
            f"{word} {value}" if word == "flash" else f"{value} {word}",
            None,
            value == chosen,
            Choose(field, value),
        )
        for value in values
    ]


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {}


CAMERA = App(
    name="camera",
    build=build,
    record=record,
    needs={"list": "camera", "video": "camera", "rolling": "camera"},
)
