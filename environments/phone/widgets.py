"""The widgets of whatever screen a device has in front."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import APPS, TABLES
from swarm_ui.environments.phone.device import Device
from swarm_ui.environments.phone.effects import Launch
from swarm_ui.environments.phone.records import pages
from swarm_ui.environments.phone.screen import Widget


def widgets(device: Device) -> list[Widget]:
    """What can be seen, in the order a person would see it, without toast or decoys."""
    screen = device.screen
    if screen is None:
        return [Widget("app", name, effect=Launch(name)) for name in device.installed]
    return APPS[screen.app].build(device, screen)


def title(device: Device) -> str:
    """What the bar at the top says."""
    screen = device.screen
    if screen is None:
        return "home"
    if screen.kind in ("category", "choice"):
        return f"{screen.app} {screen.of}"
    if screen.kind == "list":
        return f"{screen.app} {screen.of}s" if screen.of else screen.app
    return f"{screen.app} {screen.kind}"


def last_page(device: Device) -> int:
    """The page at the end of the list in front; 0 if it does not scroll."""
    screen = device.screen
    if screen is None or screen.kind not in ("list", "remove"):
        return 0
    table = TABLES.get(screen.of)
    if table is None:
        tables = APPS[screen.app].tables
        if not tables:
            return 0
        table = tables[0]
    return pages(device, table) - 1
