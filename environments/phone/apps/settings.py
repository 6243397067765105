"""Settings: switches and choices in categories."""

from __future__ import annotations

from collections.abc import Mapping

from swarm_ui.environments.phone.app import App, Setting
from swarm_ui.environments.phone.device import Device
from swarm_ui.environments.phone.draw import Draw
from swarm_ui.environments.phone.effects import FlipSetting, Go, SetSetting
from swarm_ui.environments.phone.schema import Table
from swarm_ui.environments.phone.screen import Screen, Widget

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


def build(device: Device, screen: Screen) -> list[Widget]:
    if screen.kind == "category":
        return _category(device, screen.of)
    if screen.kind == "choice":
        chosen = device.settings[screen.of]
        return [
            Widget("radio", option, None, option == chosen, SetSetting(screen.of, option))
            for option in CHOICES[screen.of][1]
        ]
    return [
        Widget("item", category, effect=Go(Screen("settings", "category", category)))
        for category in SWITCHES
    ]


def _category(device: Device, category: str) -> list[Widget]:
    widgets = [
        Widget("switch", key, None, device.settings[key] == "on", FlipSetting(key))
        for key in SWITCHES[category]
    ]
    for key, (place, _) in CHOICES.items():
        if place == category:
            go = Go(Screen("settings", "choice", key))
            widgets.append(Widget("item", key, device.settings[key], effect=go))
    return widgets


def record(draw: Draw, table: Table) -> dict[str, str]:
    return {}


SETTINGS = App(name="settings", build=build, record=record, settings=_places())
