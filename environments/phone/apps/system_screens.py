"""Screens of the system UI of a full device: the drawer, the notifications, two system pages."""

from __future__ import annotations

from swarm_ui.environments.phone.apps.app import App, paged
from swarm_ui.environments.phone.device.device import HISTORY, Device
from swarm_ui.environments.phone.device.effects import (
    DismissNotices,
    Go,
    Launch,
    OpenNotice,
    RestoreNotice,
    system_of,
)
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget

DRAWER_PAGE = 12
"""Icons on one page of the drawer."""
_PAGES = {"updating": "updating the system", "store": "thank you for your interest"}


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "drawer":
        return _drawer(device)
    if screen.kind == "shade":
        return _shade(device)
    if screen.kind == "history":
        old = system_of(device).dismissed.items()
        back = [
            Widget("item", f"{n.app} {n.title}", n.text, effect=RestoreNotice(key))
            for key, n in old
        ]
        return back or [Widget("label", "empty")]
    return [Widget("label", _PAGES[screen.kind])]


def _drawer(device: Device) -> list[Widget]:
    names = sorted(device.installed)
    icons = [Widget("app", name, effect=Launch(name), zone="icon") for name in names]
    return paged(device, icons, DRAWER_PAGE, DRAWER_PAGE)


def _shade(device: Device) -> list[Widget]:
    system = system_of(device)
    widgets: list[Widget] = []
    for key, notice in system.notices.items():
        label = f"{notice.app} {notice.title}"
        widgets.append(Widget("item", label, notice.text, effect=OpenNotice(key)))
        widgets.append(Widget("button", f"dismiss {label}", effect=DismissNotices((key,))))
    if not system.notices:
        widgets.append(Widget("label", "no notifications"))
    else:
        widgets.append(Widget("button", "clear all", effect=DismissNotices(tuple(system.notices))))
    widgets.append(Widget("button", "history", effect=Go(HISTORY)))
    return widgets


def _last(device: Device, screen: Screen) -> int:
    return (len(device.installed) - 1) // DRAWER_PAGE if screen.kind == "drawer" else 0


SYSTEM_UI = App(
    name="system",
    widgets=widgets,
    last=_last,
)
"""The system UI, which builds screens like an app but is never installed or launched."""
