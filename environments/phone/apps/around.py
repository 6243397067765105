"""What is around the apps of a whole phone: the drawer, the notifications, two system pages."""

from __future__ import annotations

from swarm_ui.environments.phone.device.app import App
from swarm_ui.environments.phone.device.device import Device
from swarm_ui.environments.phone.device.effects import Go, Launch
from swarm_ui.environments.phone.device.gestures import (
    ClearNotices,
    DismissNotice,
    OpenNotice,
    PutBack,
    system,
)
from swarm_ui.environments.phone.device.schema import Table
from swarm_ui.environments.phone.device.system import HISTORY
from swarm_ui.environments.phone.parameters import Draw
from swarm_ui.environments.phone.ui.screen import Screen, Widget

DRAWER_PAGE = 12
"""Icons of the drawer that are shown at a time."""
_PAGES = {"updating": "updating the system", "store": "thank you for your interest"}


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "drawer":
        return _drawer(device)
    if screen.kind == "shade":
        return _shade(device)
    if screen.kind == "history":
        old = system(device).dismissed.items()
        back = [Widget("item", f"{n.app} {n.title}", n.text, effect=PutBack(key)) for key, n in old]
        return back or [Widget("label", "empty")]
    return [Widget("label", _PAGES[screen.kind])]


def _drawer(device: Device) -> list[Widget]:
    names = sorted(device.installed)
    shown = names[device.page * DRAWER_PAGE : (device.page + 1) * DRAWER_PAGE]
    icons = [Widget("app", name, effect=Launch(name), zone="icon") for name in shown]
    if len(names) > DRAWER_PAGE:
        icons.append(Widget("label", "more", scrollable=True))
    return icons


def _shade(device: Device) -> list[Widget]:
    around = system(device)
    widgets: list[Widget] = []
    for key, notice in around.notices.items():
        label = f"{notice.app} {notice.title}"
        widgets.append(Widget("item", label, notice.text, effect=OpenNotice(key)))
        widgets.append(Widget("button", f"dismiss {label}", effect=DismissNotice(key)))
    if not around.notices:
        widgets.append(Widget("label", "no notifications"))
    else:
        widgets.append(Widget("button", "clear all", effect=ClearNotices()))
    widgets.append(Widget("button", "history", effect=Go(HISTORY)))
    return widgets


def _last(device: Device, screen: Screen) -> int:
    return (len(device.installed) - 1) // DRAWER_PAGE if screen.kind == "drawer" else 0


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {}


AROUND = App(
    name="system",
    build=build,
    record=record,
    last=_last,
)
"""Not an app of its own: it is never installed or launched."""
