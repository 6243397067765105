"""Gallery: the photos and videos among the files."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App
from swarm_ui.environments.phone.apps.files import file_list, file_screen, last_of_app, of_app
from swarm_ui.environments.phone.apps.messages import MESSAGE
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.full_effects import Share
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if not screen.row:
        return file_list(device, "gallery", of_app(device, "gallery"))
    widgets = file_screen(device, screen)
    if screen.kind == "detail" and "messages" in device.installed:
        name = device.tables["file"][screen.row]["name"]
        share = Share(MESSAGE.path("new"), "text", name)
        widgets.append(Widget("button", "share in a message", effect=share))
    return widgets


GALLERY = App(
    name="gallery",
    widgets=widgets,
    last=last_of_app,
)
