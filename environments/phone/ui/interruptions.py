"""Dialogs, missing permissions and missing wifi, which hide a screen of the full device."""

from __future__ import annotations

from swarm_ui.environments.phone.apps import PLACES, SCREENS
from swarm_ui.environments.phone.apps.settings import grant_path
from swarm_ui.environments.phone.device.device import PERMISSIONS, Device, Interruption, System
from swarm_ui.environments.phone.device.effects import AnswerInterruption, Grant, Share
from swarm_ui.environments.phone.device.screen import Screen
from swarm_ui.environments.phone.device.widget import Widget

_OFFERS = {
    "update": ("a system update is available", "update now", "later"),
    "rating": ("do you like {app} ? rate it in the store", "rate now", "no thanks"),
    "battery": ("battery is low : {battery} percent left", "turn on battery saver", "close"),
}
"""Interruption -> its text, and the buttons that accept and close it."""


def current_interruption(device: Device) -> Interruption | None:
    """The interruption over the current screen, if there is one."""
    if device.system is None or not device.system.pending:
        return None
    first = device.system.pending[0]
    if device.moves < first.due:
        return None
    in_app = not first.app or (device.stack and device.stack[0].app == first.app)
    return first if in_app else None


def permission_key(screen: Screen) -> str:
    """The permission that a screen needs, such as ``"maps location"``, or an empty string."""
    needed = SCREENS[screen.app].needs.get(screen.kind, "")
    return f"{screen.app} {needed}" if needed in PERMISSIONS else ""


def denied_permission(device: Device, screen: Screen) -> str:
    """The permission that a screen needs and that was denied, or an empty string."""
    key = permission_key(screen)
    assert device.system is not None
    return key if key and device.system.grants.get(key) == "deny" else ""


def requested_permission(device: Device) -> str:
    """The permission that the current screen requests now, or an empty string."""
    screen, system = device.screen, device.system
    if screen is None or system is None:
        return ""
    key = permission_key(screen)
    return key if key and system.grants.get(key, "ask") == "ask" else ""


def offline(device: Device, screen: Screen) -> bool:
    """Whether a screen needs wifi and the device is offline."""
    needed = SCREENS[screen.app].needs.get(screen.kind)
    return needed == "wifi" and device.settings.get("wifi") == "off"


def dialog(device: Device, system: System) -> list[Widget] | None:
    """The dialog over the current screen, if there is one."""
    interruption = current_interruption(device)
    if interruption is not None:
        return _interruption(interruption, system)
    key = requested_permission(device)
    return _question(key) if key else None


def _interruption(shown: Interruption, system: System) -> list[Widget]:
    says, offers, leaves = _OFFERS[shown.kind]
    text = says.format(app=shown.app, battery=system.battery)
    return [
        Widget("dialog", text, zone="dialog"),
        Widget("button", offers, effect=AnswerInterruption(True)),
        Widget("button", leaves, effect=AnswerInterruption(False)),
    ]


def _question(key: str) -> list[Widget]:
    app, permission = key.split(" ")
    return [
        Widget("dialog", f"allow {app} to {PERMISSIONS[permission]} ?", zone="dialog"),
        Widget("button", "while using the app", effect=Grant(key, "allow")),
        Widget("button", "only this time", effect=Grant(key, "once")),
        Widget("button", "don't allow", effect=Grant(key, "deny")),
    ]


def blocked_screen(device: Device, screen: Screen) -> list[Widget] | None:
    """The widgets shown instead of a screen without its permission or wifi."""
    if key := denied_permission(device, screen):
        permission = key.split(" ")[1]
        return [
            Widget("label", f"{permission} permission is needed"),
            Widget("button", "open settings", effect=Share(grant_path(key), "", "")),
        ]
    if offline(device, screen):
        network = Share(PLACES["wifi"].path, "", "")
        return [
            Widget("label", "you are offline"),
            Widget("button", "network settings", effect=network),
        ]
    return None


def is_visible(device: Device) -> bool:
    """Whether no dialog, missing permission or missing wifi hides the current screen."""
    system, screen = device.system, device.screen
    if system is None or screen is None:
        return True
    return dialog(device, system) is None and blocked_screen(device, screen) is None
