"""Recorder: voice recordings, which files shows too. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.files import file_list, file_screen, last_of_app, of_app
from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Back, Go
from swarm_ui.environments.phone.device.gestures import Keep
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.screen import Path, Screen, Widget

ROOT = Screen("recorder")
RECORDING = Screen("recorder", "recording")
RECORDING_PATH: Path = (ROOT, RECORDING)


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "recording":
        return [
            Widget("label", "recording"),
            Widget("field", "name", device.draft.get("name", ""), field="name"),
            Widget("button", "stop and save", effect=Keep("recording")),
            Widget("button", "discard", effect=Back()),
        ]
    if screen.row:
        return file_screen(device, screen)
    rows = of_app(device, "recorder")
    record = Widget("button", "record", effect=Go(RECORDING))
    return [*file_list(device, "recorder", rows), record]


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {}


RECORDER = App(
    name="recorder",
    build=build,
    record=record,
    needs={"recording": "microphone"},
    last=last_of_app,
)
