"""Camera: takes photos and videos, which gallery and files show. Closing it resets its settings."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.device.device import Device, Row
from swarm_ui.environments.phone.device.effects import Choose, Go, SaveCapture
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget

ROOT = Screen("camera")
VIDEO = Screen("camera", "video")
ROLLING = Screen("camera", "rolling")
PHOTO_PATH: Path = (ROOT,)
VIDEO_PATH: Path = (ROOT, VIDEO, ROLLING)


def widgets(device: Device, screen: Screen) -> list[Widget]:
    draft = device.draft
    finder = Widget("image", "", description="viewfinder", zone="hero")
    if screen.kind == "rolling":
        return [
            finder,
            Widget("label", "filming"),
            Widget("button", "stop", effect=SaveCapture("video")),
        ]
    lens = _choice(draft, "lens", ("back", "front"), "camera")
    if screen.kind == "video":
        go = Go(ROLLING, draft)
        return [finder, *lens, Widget("button", "start video", effect=go)]
    return [
        finder,
        *lens,
        *_choice(draft, "flash", ("off", "on"), "flash"),
        Widget("button", "take photo", effect=SaveCapture("photo")),
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


CAMERA = App(
    name="camera",
    widgets=widgets,
    needs={"list": "camera", "video": "camera", "rolling": "camera"},
)
