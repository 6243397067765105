"""The widgets, the title and the pages of the screen in front."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import APPS, SCREENS, TABLES
from swarm_ui.environments.phone.apps.record_screens import last_page_of
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Launch
from swarm_ui.environments.phone.device.system import SYSTEM_TITLES
from swarm_ui.environments.phone.device.widget import Widget
from swarm_ui.environments.phone.ui.geometry import seen


def widgets(device: Device) -> list[Widget]:
    """The widgets of the screen in front, in reading order, without toast and decoys."""
    if device.system is not None:
        return seen(device, device.system, title(device))
    screen = device.screen
    if screen is None:
        return [Widget("app", name, effect=Launch(name)) for name in device.installed]
    return APPS[screen.app].build(device, screen)


def title(device: Device) -> str:
    """The title of the screen in front."""
    screen = device.screen
    if screen is None:
        return "home"
    if screen.app == "system":
        return SYSTEM_TITLES[screen.kind]
    if screen.kind in ("category", "choice", "grant", "folder"):
        return f"{screen.app} {screen.of}"
    if screen.kind == "list":
        return f"{screen.app} {screen.of}s" if screen.of else screen.app
    return f"{screen.app} {screen.kind}"


def last_page(device: Device) -> int:
    """Number of the last page of the list in front; 0 if it does not scroll."""
    screen = device.screen
    if screen is None:
        return 0
    app = SCREENS[screen.app]
    if app.last is not None and (last := app.last(device, screen)):
        return last
    if screen.kind not in ("list", "remove"):
        return 0
    table = TABLES.get(screen.of)
    if table is None:
        tables = app.tables
        if not tables:
            return 0
        table = tables[0]
    return last_page_of(len(device.tables[table.name]))
