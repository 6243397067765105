"""Recorder: voice recordings, which files shows too. A test app: no training template opens it."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.files import file_list, file_screen, last_of_app, of_app
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Back, Go
from swarm_ui.environments.phone.device.full_effects import SaveCapture
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget

ROOT = Screen("recorder")
RECORDING = Screen("recorder", "recording")
RECORDING_PATH: Path = (ROOT, RECORDING)


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "recording":
        return [
            Widget("label", "recording"),
            Widget("field", "name", device.draft.get("name", ""), field="name"),
            Widget("button", "stop and save", effect=SaveCapture("recording")),
            Widget("button", "discard", effect=Back()),
        ]
    if screen.row:
        return file_screen(device, screen)
    rows = of_app(device, "recorder")
    record = Widget("button", "record", effect=Go(RECORDING))
    return [*file_list(device, "recorder", rows), record]


RECORDER = App(
    name="recorder",
    widgets=widgets,
    needs={"recording": "microphone"},
    last=last_of_app,
)
