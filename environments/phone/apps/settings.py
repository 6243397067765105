"""Settings: switches and choices in categories."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.apps.app import App, Setting, setting_switch
from swarm_ui.environments.phone.device.device import Device, System
from swarm_ui.environments.phone.device.effects import Go, Grant, SetSetting
from swarm_ui.environments.phone.device.screen import Path, Screen
from swarm_ui.environments.phone.device.widget import Widget

ROOT = Screen("settings")
SWITCHES: Mapping[str, tuple[str, ...]] = {
    "network": ("wifi", "bluetooth", "hotspot", "roaming"),
    "display": ("dark mode", "auto rotate", "night light"),
    "sound": ("vibration", "touch sounds", "silent mode"),
    "privacy": ("location", "microphone", "usage data"),
}
CHOICES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "text size": ("display", ("small", "medium", "large")),
    "ringtone": ("sound", ("classic", "chime", "marimba")),
}
"""Choice -> its category and options."""


BATTERY: Mapping[str, Setting] = {
    key: Setting((ROOT, Screen("settings", "category", "battery")))
    for key in ("battery saver", "adaptive battery")
}
"""Switches that only the full device has."""
PERMISSIONS = Screen("settings", "permissions")
"""The permissions of the apps, on the full device."""


def grant_path(key: str) -> Path:
    """The screens that lead to a permission of an app, such as ``"maps location"``."""
    return (ROOT, PERMISSIONS, Screen("settings", "grant", key))


def _places() -> dict[str, Setting]:
    places = {
        key: Setting((ROOT, Screen("settings", "category", category)))
        for category, keys in SWITCHES.items()
        for key in keys
    }
    for key, (category, options) in CHOICES.items():
        path = (ROOT, Screen("settings", "category", category), Screen("settings", "choice", key))
        places[key] = Setting(path, options)
    return places


def widgets(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "category":
        return _category(device, screen.of)
    if screen.kind == "choice":
        chosen = device.settings[screen.of]
        return [
            Widget("radio", option, None, option == chosen, SetSetting(screen.of, option))
            for option in CHOICES[screen.of][1]
        ]
    if device.system is not None and screen.kind != "list":
        return _permissions(device.system, screen)
    shown = [
        Widget("item", category, effect=Go(Screen("settings", "category", category)))
        for category in SWITCHES
    ]
    if device.system is not None:
        go = Go(Screen("settings", "category", "battery"))
        shown.append(Widget("item", "battery", effect=go))
        shown.append(Widget("item", "permissions", effect=Go(PERMISSIONS)))
    return shown


def _permissions(system: System, screen: Screen) -> list[Widget]:
    """The list of permissions, or the possible answers for one of them."""
    if screen.kind == "permissions":
        return [
            Widget("item", key, _ANSWERS[value], effect=Go(Screen("settings", "grant", key)))
            for key, value in system.grants.items()
        ]
    now = system.grants.get(screen.of, "ask")
    return [
        Widget("radio", _ANSWERS[value], None, value == now, Grant(screen.of, value))
        for value in ("allow", "ask", "deny")
    ]


_ANSWERS = {"allow": "allow", "ask": "ask every time", "once": "only this time", "deny": "deny"}


def _category(device: Device, category: str) -> list[Widget]:
    if category == "battery":
        return [setting_switch(device, key) for key in BATTERY]
    shown = [setting_switch(device, key) for key in SWITCHES[category]]
    for key, (place, _) in CHOICES.items():
        if place == category:
            go = Go(Screen("settings", "choice", key))
            shown.append(Widget("item", key, device.settings[key], effect=go))
    return shown


SETTINGS = App(name="settings", widgets=widgets, settings=_places())
